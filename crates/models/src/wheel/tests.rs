//! Cases of `wheel`.
