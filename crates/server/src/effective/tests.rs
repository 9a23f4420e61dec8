//! Cases of the effective policy.
