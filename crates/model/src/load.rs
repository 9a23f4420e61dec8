//! From an opened file to a model ready to compute.

use std::sync::Arc;

use causeway_kernels::{Kernels, KvType, PackedMatrix, Pool};
use causeway_kv_cache::KvShape;
use causeway_weights::ModelFile;

use crate::fields::Fields;
use crate::loader::Loader;
use crate::names::Names;
use crate::rope::Rope;
use crate::{Config, ConfigError, ModelError, read};

/// What is fixed when a model is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Positions a sequence may have; the model's own context where not given.
    pub context_len: Option<usize>,
    pub kv_type: KvType,
    pub threads: usize,
}

/// One matrix and its bias.
#[derive(Debug)]
pub(crate) struct Linear {
    pub(crate) weight: PackedMatrix,
    /// `(rows)`, empty where there is none.
    pub(crate) bias: Vec<f32>,
}

/// `down(act(gate(x)) * up(x))`, the three matrices of a feed-forward part.
#[derive(Debug)]
pub(crate) struct Gated {
    pub(crate) gate: Linear, // (ffn_dim, hidden_dim)
    pub(crate) up: Linear,   // (ffn_dim, hidden_dim)
    pub(crate) down: Linear, // (hidden_dim, ffn_dim)
}

impl Gated {
    fn parts(&self) -> [(&'static str, &Linear); 3] {
        [("gate", &self.gate), ("up", &self.up), ("down", &self.down)]
    }
}

/// What the second half of a layer is.
#[derive(Debug)]
pub(crate) enum FeedForward {
    One(Gated),
    /// Each row goes through those experts that its router's logits (experts, hidden_dim) choose.
    Experts {
        router: Linear,
        experts: Vec<Gated>,
    },
}

/// One layer's weights; norms are empty where the architecture has none.
#[derive(Debug)]
pub(crate) struct LayerWeights {
    pub(crate) attention_norm: Vec<f32>,      // (hidden_dim)
    pub(crate) query: Linear,                 // (n_heads * head_dim, hidden_dim)
    pub(crate) key: Linear,                   // (n_kv_heads * head_dim, hidden_dim)
    pub(crate) value: Linear,                 // (n_kv_heads * head_dim, hidden_dim)
    pub(crate) query_norm: Vec<f32>,          // (head_dim), or (n_heads * head_dim)
    pub(crate) key_norm: Vec<f32>,            // (head_dim), or (n_kv_heads * head_dim)
    pub(crate) sinks: Vec<f32>,               // (n_heads)
    pub(crate) output: Linear,                // (hidden_dim, n_heads * head_dim)
    pub(crate) post_attention_norm: Vec<f32>, // (hidden_dim)
    pub(crate) ffn_norm: Vec<f32>,            // (hidden_dim)
    pub(crate) feed_forward: FeedForward,
    pub(crate) post_ffn_norm: Vec<f32>, // (hidden_dim)
}

impl LayerWeights {
    /// Every matrix by the part it plays.
    fn parts(&self) -> Vec<(&'static str, &Linear)> {
        let Self { query, key, value, output, .. } = self;
        let mut all =
            vec![("query", query), ("key", key), ("value", value), ("attention output", output)];
        match &self.feed_forward {
            FeedForward::One(one) => all.extend(one.parts()),
            FeedForward::Experts { router, experts } => {
                all.push(("router", router));
                all.extend(experts.iter().flat_map(Gated::parts));
            }
        }
        all
    }
}

/// A loaded model: config, re-laid weights, and the threads that compute with them.
#[derive(Debug)]
pub struct Model {
    pub(crate) config: Config,
    pub(crate) settings: Settings,
    pub(crate) context_len: usize,
    pub(crate) kernels: Kernels,
    pub(crate) pool: Pool,
    pub(crate) file: Arc<ModelFile>,
    pub(crate) embedding: String,
    pub(crate) layers: Vec<LayerWeights>,
    pub(crate) output_norm: Vec<f32>, // (hidden_dim)
    pub(crate) output: PackedMatrix,  // (vocab_size, hidden_dim)
    pub(crate) ropes: Vec<Rope>,
}

impl Model {
    /// Reads the config, re-lays every weight and refuses what does not fit together.
    ///
    /// # Errors
    /// `ModelError` names the first key or tensor that is wrong.
    pub fn load(
        file: Arc<ModelFile>,
        settings: Settings,
        kernels: Kernels,
    ) -> Result<Self, ModelError> {
        let (fields, family) = Fields::of(&file)?;
        let config = read::config(&file, &fields, &family)?;
        let pool = Pool::new(settings.threads);
        let mut loader = Loader::new(&file, &fields, &config, Names::of(&file, family));
        let embedding = loader.embedding()?;
        let context_len = settings.context_len.unwrap_or(config.shape.context_len);
        if context_len == 0 || context_len > config.shape.context_len {
            let model = config.shape.context_len;
            return Err(ModelError::Context { asked: context_len, context_len: model });
        }
        file.will_need();
        let layers = (0..config.shape.n_layers)
            .map(|layer| loader.layer(layer))
            .collect::<Result<_, _>>()?;
        let output_norm = loader.output_norm()?;
        let output = loader.output()?;
        loader.finish(&pool)?;
        let ropes = config.ropes.iter().map(|rope| Rope::new(rope, context_len)).collect();
        file.release_pages();
        Ok(Self {
            settings,
            context_len,
            kernels,
            embedding,
            layers,
            output_norm,
            output,
            ropes,
            config,
            pool,
            file,
        })
    }

    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Positions a sequence may have.
    #[must_use]
    pub fn context_len(&self) -> usize {
        self.context_len
    }

    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    #[must_use]
    pub fn kernels(&self) -> &Kernels {
        &self.kernels
    }

    /// Threads that compute.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// Every re-laid matrix by the part it plays, layer by layer, the output last.
    pub fn matrices(&self) -> impl Iterator<Item = (&'static str, &PackedMatrix)> {
        let parts = self.layers.iter().flat_map(LayerWeights::parts);
        let layers = parts.map(|(part, linear)| (part, &linear.weight));
        layers.chain(std::iter::once(("output", &self.output)))
    }

    /// The threads that compute.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The cache that this model needs for `sequences_max` sequences.
    #[must_use]
    pub fn kv_shape(&self, sequences_max: usize, chunk_max: usize) -> KvShape {
        self.config.kv_shape(&self.settings, sequences_max, chunk_max)
    }
}

impl Config {
    /// The config of a model file; no weight is read.
    ///
    /// # Errors
    /// The first key that is missing or wrong.
    pub fn of(file: &ModelFile) -> Result<Self, ConfigError> {
        let (fields, family) = Fields::of(file)?;
        read::config(file, &fields, &family)
    }

    /// The cache that `sequences_max` sequences need when the model is loaded by these settings.
    #[must_use]
    pub fn kv_shape(&self, settings: &Settings, sequences_max: usize, chunk_max: usize) -> KvShape {
        let context_len = settings.context_len.unwrap_or(self.shape.context_len);
        KvShape {
            layers: self.layer_shapes(),
            kind: settings.kv_type,
            positions_max: context_len.saturating_mul(sequences_max),
            chunk_max,
            sequences_max,
        }
    }
}
