//! Arithmetic on quantised weights, the same bits on every path.
