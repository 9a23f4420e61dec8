//! Why a model cannot be loaded or a pass cannot be computed.

use causeway_kernels::{NonFinite, PackError};
use causeway_weights::WeightsError;

/// A config that no forward pass can follow.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("architecture `{name}` is not supported: {known} are")]
    Architecture { name: String, known: String },
    #[error("`{key}` is missing")]
    Missing { key: String },
    #[error("`{key}` is {value}, wanted {wanted}")]
    Value { key: String, value: String, wanted: String },
    #[error("{name} is {value}, the limits are 1 and {most}")]
    Size { name: &'static str, value: usize, most: usize },
    #[error("{name} is {value}, it must be a positive number")]
    Number { name: &'static str, value: f32 },
    #[error("{n_heads} heads cannot share {n_kv_heads} KV heads evenly")]
    HeadGroups { n_heads: usize, n_kv_heads: usize },
    #[error("head size {head_dim} is odd, RoPE turns pairs")]
    OddHead { head_dim: usize },
    #[error("{found} RoPE factors are given, a head has {wanted} pairs")]
    RopeFactors { found: usize, wanted: usize },
    #[error(
        "`{field}` is {says}, but tensor `{name}` is {}: set it to {}, or take the weights that \
         belong to this config", if *says { "missing" } else { "there" }, !says
    )]
    Bias { field: &'static str, says: bool, name: String },
    #[error("the factors of RoPE cannot be read")]
    Factors(#[from] WeightsError),
}

/// Why a model cannot be loaded, or a pass cannot be computed.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("the model's config cannot be used")]
    Config(#[from] ConfigError),
    #[error("a context of {asked} positions was asked for, the limits are 1 and {context_len}")]
    Context { asked: usize, context_len: usize },
    #[error("tensor `{name}` is missing")]
    MissingTensor { name: String },
    #[error("tensor `{name}` has shape {found:?}, the config says {wanted:?}")]
    TensorShape { name: String, found: Vec<usize>, wanted: Vec<usize> },
    #[error("tensor `{name}` is of type {dtype}, which cannot be computed with")]
    TensorType { name: String, dtype: String },
    #[error(
        "tensor `{name}` belongs to no part of architecture `{architecture}` with {n_layers} \
         layers"
    )]
    UnusedTensor { name: String, architecture: String, n_layers: usize },
    #[error("tensor `{name}` cannot be re-laid")]
    Pack { name: String, source: PackError },
    #[error("the model cannot be computed")]
    Memory { source: PackError },
    #[error("the model's values cannot be read")]
    Weights(#[from] WeightsError),
    #[error("token {token} is outside the vocabulary of {vocab_size}")]
    Token { token: u32, vocab_size: usize },
    #[error("position {position} is outside the context of {context_len}")]
    Position { position: usize, context_len: usize },
    #[error("layer {layer}, position {position}")]
    NotFinite { layer: usize, position: usize, source: NonFinite },
}

impl ModelError {
    /// Whether the caller can mend it: a request, not a file.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        matches!(self, Self::Token { .. } | Self::Position { .. } | Self::Context { .. })
    }
}
