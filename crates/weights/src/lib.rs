//! Reads a model file into named, shaped, typed tensors.
//!
//! It knows what a file says, never what a tensor means; it does not reach for the network.
//! file → mapping → directory (GGUF or safetensors) → `ModelFile` → `Tensor` → blocks → `f32`.
//!
//! A model file is hostile input: each fault is one sentence, nothing panics, and nothing is
//! allocated on the word of a count that the file's own length does not bear out.

mod dtype;
mod error;
mod file;
mod folder;
pub mod gguf;
mod layout;
mod look;
mod mapping;
mod metadata;
pub mod quant;
pub mod safetensors;
mod split;
mod summary;
mod value;

pub use dtype::DType;
pub use error::{IndexFault, JsonFault, WeightsError};
pub use file::{Format, ModelFile, Tensor};
pub use layout::{TensorEntry, TensorFault, TensorFaultKind, shown};
pub use look::Look;
pub use metadata::Metadata;
pub use quant::{ValuesError, dequantize};
pub use split::SplitFault;
pub use summary::Summary;
pub use value::{Array, Strings, Value, ValueType};
