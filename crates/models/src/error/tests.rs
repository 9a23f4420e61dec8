//! Cases of `error`.
