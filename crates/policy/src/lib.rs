//! Logits in, one token and its reasons out.
