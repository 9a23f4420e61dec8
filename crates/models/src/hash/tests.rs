//! Cases of `hash`.
