//! Logits for the scheduled tokens: one forward pass, an architecture is data.
