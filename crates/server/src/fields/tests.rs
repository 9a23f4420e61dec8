//! Cases of reading fields.
