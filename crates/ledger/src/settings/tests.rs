//! Cases to come.
