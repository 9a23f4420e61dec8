//! Cases of `pull`.
