//! An architecture as data: every number and choice that the forward pass reads.

use causeway_kv_cache::LayerShape;

use crate::families::{HeadNorms, Norms};
use crate::rope::{RopeConfig, to_f32};
use crate::{Activation, ConfigError};

/// The sizes of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub vocab_size: usize,
    pub hidden_dim: usize,
    pub n_layers: usize,
    pub n_heads: usize,
    pub n_kv_heads: usize,
    pub head_dim: usize,
    pub ffn_dim: usize,
    /// Positions the model was made for.
    pub context_len: usize,
}

/// What sets one layer apart from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerConfig {
    /// Positions a query reads, its own among them; `None` reads all.
    pub window: Option<usize>,
    /// Which of `Config::ropes` turns its queries and keys; `None` leaves them.
    pub rope: Option<usize>,
    /// Its feed-forward part is `Config::experts`.
    pub has_experts: bool,
}

/// A feed-forward part of several, of which each row goes through a few.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Experts {
    pub count: usize,
    /// How many a row goes through: those with the largest router logits.
    pub used: usize,
    pub ffn_dim: usize,
    /// Shares are a softmax over the chosen experts' logits, else over all experts'.
    pub renormalised: bool,
}

/// Everything that distinguishes one model from another, but its weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The name the file gives its architecture, and of what it is only a part.
    pub architecture: String,
    pub shape: Shape,
    pub norm_eps: f32,
    pub activation: Activation,
    /// Embeddings are multiplied by this; 1 where the architecture has none.
    pub embedding_scale: f32,
    /// Queries are multiplied by this before they meet the keys.
    pub attention_scale: f32,
    /// What a part adds to the stream is multiplied by this before.
    pub residual_scale: f32,
    /// Logits are divided by this.
    pub logit_divisor: f32,
    /// Soft cap of attention's scores; 0 for none.
    pub score_cap: f32,
    /// Soft cap of logits; 0 for none.
    pub logit_cap: f32,
    pub norms: Norms,
    pub head_norms: HeadNorms,
    /// Each head has a score that joins its softmax and brings no value.
    pub has_sinks: bool,
    pub ropes: Vec<RopeConfig>,
    pub layers: Vec<LayerConfig>,
    pub experts: Option<Experts>,
    /// Added to every norm weight at load: 1 where the file stores `weight - 1`.
    pub norm_offset: f32,
    /// Rows of the query and key weights lie in interleaved pairs and are put back in order.
    pub pairs_interleaved: bool,
}

/// Most layers, heads and so on that a model may declare; far above any published model.
pub(crate) const LAYERS_MAX: usize = 1_024;
const HEADS_MAX: usize = 1_024;
const DIM_MAX: usize = 1 << 20;
const CONTEXT_MAX: usize = 1 << 24;
const EXPERTS_MAX: usize = 4_096;

impl Shape {
    /// Refuses sizes that no model has, and heads that cannot share.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let Self {
            vocab_size,
            hidden_dim,
            n_layers,
            n_heads,
            n_kv_heads,
            head_dim,
            ffn_dim,
            context_len,
        } = *self;
        for (name, value, most) in [
            ("vocabulary size", vocab_size, 1 << 24),
            ("hidden size", hidden_dim, DIM_MAX),
            ("layer count", n_layers, LAYERS_MAX),
            ("head count", n_heads, HEADS_MAX),
            ("KV head count", n_kv_heads, HEADS_MAX),
            ("head size", head_dim, 4_096),
            ("feed-forward size", ffn_dim, DIM_MAX),
            ("context length", context_len, CONTEXT_MAX),
        ] {
            check_size(name, value, most)?;
        }
        if !n_heads.is_multiple_of(n_kv_heads) {
            return Err(ConfigError::HeadGroups { n_heads, n_kv_heads });
        }
        if !head_dim.is_multiple_of(2) {
            return Err(ConfigError::OddHead { head_dim });
        }
        Ok(())
    }
}

impl Config {
    /// Refuses numbers that no forward pass can follow; the shape is checked.
    ///
    /// # Errors
    /// `ConfigError` names the first with its value and limit.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        for window in self.layers.iter().filter_map(|layer| layer.window) {
            check_size("sliding window", window, CONTEXT_MAX)?;
        }
        if let Some(experts) = self.experts {
            let Experts { count, used, ffn_dim, renormalised: _ } = experts;
            check_size("expert count", count, EXPERTS_MAX)?;
            check_size("experts of a row", used, count)?;
            check_size("feed-forward size of an expert", ffn_dim, DIM_MAX)?;
        }
        self.ropes.iter().try_for_each(|rope| rope.check(self.shape.head_dim))
    }

    /// The longest row between the two halves of a feed-forward part.
    pub(crate) fn inner_dim(&self) -> usize {
        self.shape.ffn_dim.max(self.experts.map_or(0, |experts| experts.ffn_dim))
    }

    /// What each layer keeps per position.
    #[must_use]
    pub fn layer_shapes(&self) -> Vec<LayerShape> {
        let Shape { n_kv_heads, head_dim, .. } = self.shape;
        let shape = |layer: &LayerConfig| LayerShape { n_kv_heads, head_dim, window: layer.window };
        self.layers.iter().map(shape).collect()
    }
}

fn check_size(name: &'static str, value: usize, most: usize) -> Result<(), ConfigError> {
    let is_within = (1..=most).contains(&value);
    is_within.then_some(()).ok_or(ConfigError::Size { name, value, most })
}

/// `1 / sqrt(size)`, the usual attention scale of a head size.
pub(crate) fn root_scale(size: usize) -> f32 {
    1.0 / to_f32(size).sqrt()
}
