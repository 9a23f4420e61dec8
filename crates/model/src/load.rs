//! From an opened file to a model ready to compute.

use std::collections::BTreeSet;
use std::sync::Arc;

use causeway_kernels::{Kernels, KvType, PackedMatrix, Packing, Pool};
use causeway_kv_cache::KvShape;
use causeway_weights::{Format, ModelFile, Tensor};

use crate::names::{Global, Names, Part};
use crate::relay::{self, Rows};
use crate::rope::Rope;
use crate::{Config, ConfigError, ModelError, Shape, gguf, hf};

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

/// One layer's weights; norms are empty where the architecture has none.
#[derive(Debug)]
pub(crate) struct LayerWeights {
    pub(crate) attention_norm: Vec<f32>,      // (hidden_dim)
    pub(crate) query: Linear,                 // (n_heads * head_dim, hidden_dim)
    pub(crate) key: Linear,                   // (n_kv_heads * head_dim, hidden_dim)
    pub(crate) value: Linear,                 // (n_kv_heads * head_dim, hidden_dim)
    pub(crate) query_norm: Vec<f32>,          // (head_dim)
    pub(crate) key_norm: Vec<f32>,            // (head_dim)
    pub(crate) output: Linear,                // (hidden_dim, n_heads * head_dim)
    pub(crate) post_attention_norm: Vec<f32>, // (hidden_dim)
    pub(crate) ffn_norm: Vec<f32>,            // (hidden_dim)
    pub(crate) gate: Linear,                  // (ffn_dim, hidden_dim)
    pub(crate) up: Linear,                    // (ffn_dim, hidden_dim)
    pub(crate) down: Linear,                  // (hidden_dim, ffn_dim)
    pub(crate) post_ffn_norm: Vec<f32>,       // (hidden_dim)
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
        let hugging_face = file.format() == Format::Safetensors;
        let config = Config::of(&file)?;
        let pool = Pool::new(settings.threads);
        let names = Names::new(hugging_face, &config.architecture);
        check_sizes(&config, names, &file)?;
        let context_len = settings.context_len.unwrap_or(config.shape.context_len);
        if context_len == 0 || context_len > config.shape.context_len {
            let model = config.shape.context_len;
            return Err(ModelError::Context { asked: context_len, context_len: model });
        }
        file.will_need();
        let packing = Packing::default();
        let mut loader =
            Loader { file: &file, config: &config, names, packing, used: BTreeSet::new() };
        let layers = (0..config.shape.n_layers)
            .map(|layer| loader.layer(layer))
            .collect::<Result<_, _>>()?;
        let output_norm = loader.norm(names.global(Global::OutputNorm), config.shape.hidden_dim)?;
        let output = loader.output(hugging_face && file.config().is_some_and(hf::is_tied))?;
        loader.finish(&pool)?;
        let rope = |rope| Rope::new(rope, config.shape.head_dim, context_len);
        let ropes = config.ropes.iter().copied().map(rope).collect();
        let embedding = names.global(Global::Embedding).to_owned();
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
        let layers = self.layers.iter().flat_map(parts);
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
        if file.format() == Format::Safetensors {
            let missing = || ConfigError::Missing { key: "config.json".to_owned() };
            hf::config(file.config().ok_or_else(missing)?)
        } else {
            gguf::config(file)
        }
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

/// The matrices of one layer by the part they play.
fn parts(layer: &LayerWeights) -> [(&'static str, &PackedMatrix); 7] {
    let LayerWeights { query, key, value, output, gate, up, down, .. } = layer;
    [
        ("query", &query.weight),
        ("key", &key.weight),
        ("value", &value.weight),
        ("attention output", &output.weight),
        ("gate", &gate.weight),
        ("up", &up.weight),
        ("down", &down.weight),
    ]
}

/// Checks the config against itself and against the embedding.
fn check_sizes(config: &Config, names: Names, file: &ModelFile) -> Result<(), ModelError> {
    let name = names.global(Global::Embedding);
    let missing = || ModelError::MissingTensor { name: name.to_owned() };
    let embedding = file.tensor(name).ok_or_else(missing)?;
    config.check()?;
    if !embedding.dtype.is_readable() {
        let dtype = embedding.dtype.name().to_owned();
        return Err(ModelError::TensorType { name: name.to_owned(), dtype });
    }
    want_shape(&embedding, &[config.shape.vocab_size, config.shape.hidden_dim])
}

fn want_shape(tensor: &Tensor<'_>, wanted: &[usize]) -> Result<(), ModelError> {
    if tensor.shape == wanted {
        return Ok(());
    }
    let (found, wanted) = (tensor.shape.to_vec(), wanted.to_vec());
    Err(ModelError::TensorShape { name: tensor.name.to_owned(), found, wanted })
}

/// Tensors that older files carry although nothing needs them.
const IGNORED: [&str; 1] = ["rotary_emb.inv_freq"];

struct Loader<'a> {
    file: &'a ModelFile,
    config: &'a Config,
    names: Names,
    packing: Packing<'a>,
    used: BTreeSet<String>,
}

impl<'a> Loader<'a> {
    fn tensor(&mut self, name: &str) -> Option<Tensor<'a>> {
        let tensor = self.file.tensor(name)?;
        self.used.insert(name.to_owned());
        Some(tensor)
    }

    fn wanted(&mut self, name: &str) -> Result<Tensor<'a>, ModelError> {
        self.tensor(name).ok_or_else(|| ModelError::MissingTensor { name: name.to_owned() })
    }

    fn norm(&mut self, name: &str, len: usize) -> Result<Vec<f32>, ModelError> {
        let tensor = self.wanted(name)?;
        self.vector(&tensor, len, self.config.norm_offset)
    }

    fn optional_norm(&mut self, name: &str, len: usize) -> Result<Vec<f32>, ModelError> {
        match self.tensor(name) {
            Some(tensor) => self.vector(&tensor, len, self.config.norm_offset),
            None => Ok(Vec::new()),
        }
    }

    fn vector(&self, tensor: &Tensor<'_>, len: usize, add: f32) -> Result<Vec<f32>, ModelError> {
        want_shape(tensor, &[len])?;
        let mut values = tensor.to_f32()?;
        values.iter_mut().for_each(|value| *value += add);
        Ok(values)
    }

    /// A matrix whose numbers come when the packing is finished.
    fn matrix(
        &mut self,
        tensor: Tensor<'a>,
        shape: (usize, usize),
        interleaved_head: Option<usize>,
    ) -> Result<PackedMatrix, ModelError> {
        want_shape(&tensor, &[shape.0, shape.1])?;
        let name = tensor.name.to_owned();
        let Some(format) = relay::format(tensor.dtype) else {
            return Err(ModelError::TensorType { name, dtype: tensor.dtype.name().to_owned() });
        };
        let rows = Rows { file: self.file, tensor, interleaved_head };
        self.packing.add(format, shape, rows).map_err(|source| ModelError::Pack { name, source })
    }

    fn linear(
        &mut self,
        (layer, part): (usize, Part),
        shape: (usize, usize),
    ) -> Result<Linear, ModelError> {
        let turned = matches!(part, Part::Query | Part::Key) && self.config.pairs_interleaved;
        let interleaved_head = turned.then_some(self.config.shape.head_dim);
        let tensor = self.wanted(&self.names.layer(layer, part, "weight"))?;
        let weight = self.matrix(tensor, shape, interleaved_head)?;
        let mut bias = Vec::new();
        if let Some(tensor) = self.tensor(&self.names.layer(layer, part, "bias")) {
            let values = self.vector(&tensor, shape.0, 0.0)?;
            let row = |row| interleaved_head.map_or(row, |d| relay::interleaved(row, d));
            bias = (0..shape.0).map(|index| values[row(index)]).collect();
        }
        Ok(Linear { weight, bias })
    }

    fn layer(&mut self, layer: usize) -> Result<LayerWeights, ModelError> {
        let Shape { hidden_dim, n_heads, n_kv_heads, head_dim, ffn_dim, .. } = self.config.shape;
        let (names, q_dim, kv_dim) = (self.names, n_heads * head_dim, n_kv_heads * head_dim);
        let weight = |part| names.layer(layer, part, "weight");
        Ok(LayerWeights {
            attention_norm: self.norm(&weight(Part::AttentionNorm), hidden_dim)?,
            query: self.linear((layer, Part::Query), (q_dim, hidden_dim))?,
            key: self.linear((layer, Part::Key), (kv_dim, hidden_dim))?,
            value: self.linear((layer, Part::Value), (kv_dim, hidden_dim))?,
            query_norm: self.optional_norm(&weight(Part::QueryNorm), head_dim)?,
            key_norm: self.optional_norm(&weight(Part::KeyNorm), head_dim)?,
            output: self.linear((layer, Part::AttentionOutput), (hidden_dim, q_dim))?,
            post_attention_norm: self
                .optional_norm(&weight(Part::PostAttentionNorm), hidden_dim)?,
            ffn_norm: self.norm(&weight(Part::FfnNorm), hidden_dim)?,
            gate: self.linear((layer, Part::Gate), (ffn_dim, hidden_dim))?,
            up: self.linear((layer, Part::Up), (ffn_dim, hidden_dim))?,
            down: self.linear((layer, Part::Down), (hidden_dim, ffn_dim))?,
            post_ffn_norm: self.optional_norm(&weight(Part::PostFfnNorm), hidden_dim)?,
        })
    }

    /// The output matrix, or the embedding where the two are one.
    fn output(&mut self, tied: bool) -> Result<PackedMatrix, ModelError> {
        let Shape { vocab_size, hidden_dim, .. } = self.config.shape;
        let embedding = self.wanted(self.names.global(Global::Embedding))?;
        let own = self.tensor(self.names.global(Global::Output)).filter(|_| !tied);
        self.matrix(own.unwrap_or(embedding), (vocab_size, hidden_dim), None)
    }

    /// Re-lays all matrices, once it is known that nothing is left over.
    fn finish(self, pool: &Pool) -> Result<(), ModelError> {
        self.refuse_unused()?;
        self.packing.finish(pool).map_err(|source| ModelError::Memory { source })
    }

    /// A weight that no part reads means another computation than the file's.
    fn refuse_unused(&self) -> Result<(), ModelError> {
        let unused = self.file.tensors().find(|entry| {
            let ignored = IGNORED.iter().any(|suffix| entry.name.ends_with(suffix));
            !self.used.contains(&entry.name) && !ignored
        });
        match unused {
            None => Ok(()),
            Some(entry) => Err(ModelError::UnusedTensor {
                name: entry.name.clone(),
                architecture: self.config.architecture.clone(),
            }),
        }
    }
}
