//! Reads a model file into named, shaped, typed tensors.
