//! The loop on a tiny model: steps, stops, refusals, cancels and recomputation.
