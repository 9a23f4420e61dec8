//! Tiny models against their references, and every way to the same bits.
