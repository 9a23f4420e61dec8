//! Cases of `catalogue`.
