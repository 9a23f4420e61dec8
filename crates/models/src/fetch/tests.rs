//! Cases of `fetch`.
