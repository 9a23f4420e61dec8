//! Cases of `home`.
