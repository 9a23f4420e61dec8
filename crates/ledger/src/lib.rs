//! What happened, step by step: stored, replayed and compared.
