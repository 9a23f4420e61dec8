//! The tensors of a file as the parts of a model, each checked and marked as used.

use std::collections::BTreeSet;

use causeway_kernels::{Format, PackedMatrix, Packing, Pool};
use causeway_weights::{DType, ModelFile, Tensor};

use crate::families::{HeadNorms, Norms};
use crate::load::{FeedForward, Gated, LayerWeights, Linear};
use crate::names::{Global, Names, Part};
use crate::relay::{self, Mxfp4Rows, Place, Rows};
use crate::{Config, Experts, ModelError, Shape};

/// Tensors that no part is made of: older files carry the first although nothing needs it, and
/// the others are read with the config.
const IGNORED: [&str; 4] = [
    "rotary_emb.inv_freq",
    "rope_freqs.weight",
    "rope_factors_long.weight",
    "rope_factors_short.weight",
];

/// Checks the config against itself and against the embedding.
pub(crate) fn check_sizes(
    config: &Config,
    names: Names,
    file: &ModelFile,
) -> Result<(), ModelError> {
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

/// A matrix inside a tensor.
struct Piece {
    /// What the whole tensor must look like.
    whole: Vec<usize>,
    place: Place,
}

/// Takes a file apart; what is left over at the end is an error.
pub(crate) struct Loader<'a> {
    file: &'a ModelFile,
    config: &'a Config,
    names: Names,
    packing: Packing<'a>,
    used: BTreeSet<String>,
}

impl<'a> Loader<'a> {
    pub(crate) fn new(file: &'a ModelFile, config: &'a Config, names: Names) -> Self {
        Self { file, config, names, packing: Packing::default(), used: BTreeSet::new() }
    }

    fn tensor(&mut self, name: &str) -> Option<Tensor<'a>> {
        let tensor = self.file.tensor(name)?;
        self.used.insert(name.to_owned());
        Some(tensor)
    }

    fn wanted(&mut self, name: &str) -> Result<Tensor<'a>, ModelError> {
        self.tensor(name).ok_or_else(|| ModelError::MissingTensor { name: name.to_owned() })
    }

    pub(crate) fn norm(&mut self, name: &str, len: usize) -> Result<Vec<f32>, ModelError> {
        let tensor = self.wanted(name)?;
        let mut values = vector(&tensor, &[len])?;
        values.iter_mut().for_each(|value| *value += self.config.norm_offset);
        Ok(values)
    }

    /// A norm of the layer, or nothing where the family has none there.
    fn layer_norm(
        &mut self,
        (layer, part): (usize, Part),
        is_there: bool,
        len: usize,
    ) -> Result<Vec<f32>, ModelError> {
        let name = self.names.layer(layer, part, "weight");
        if is_there { self.norm(&name, len) } else { Ok(Vec::new()) }
    }

    /// A matrix whose numbers come when the packing is finished.
    fn matrix(
        &mut self,
        tensor: Tensor<'a>,
        shape: (usize, usize),
        piece: &Piece,
    ) -> Result<PackedMatrix, ModelError> {
        want_shape(&tensor, &piece.whole)?;
        let name = tensor.name.to_owned();
        let is_across = matches!(piece.place, Place::Across { .. });
        let format = relay::format(tensor.dtype);
        let Some(format) = format.filter(|format| !(is_across && format.is_quantised())) else {
            return Err(ModelError::TensorType { name, dtype: tensor.dtype.name().to_owned() });
        };
        if let Some(power) = relay::scale_out_of_range(&tensor) {
            let dtype = format!("{} with a scale of 2^{power}", tensor.dtype);
            return Err(ModelError::TensorType { name, dtype });
        }
        let rows = Rows { file: self.file, tensor, place: piece.place };
        self.packing.add(format, shape, rows).map_err(|source| ModelError::Pack { name, source })
    }

    fn linear(
        &mut self,
        (layer, part): (usize, Part),
        shape: (usize, usize),
    ) -> Result<Linear, ModelError> {
        let (holder, first, rows) = self.holder(part, shape.0);
        let turned = matches!(part, Part::Query | Part::Key) && self.config.pairs_interleaved;
        let head_dim = self.config.shape.head_dim;
        let place = if turned { Place::Interleaved { head_dim } } else { Place::Rows { first } };
        let tensor = self.wanted(&self.names.layer(layer, holder, "weight"))?;
        let weight = self.matrix(tensor, shape, &Piece { whole: vec![rows, shape.1], place })?;
        let mut bias = Vec::new();
        if let Some(tensor) = self.tensor(&self.names.layer(layer, holder, "bias")) {
            let values = vector(&tensor, &[rows])?;
            let row = |row| if turned { relay::interleaved(row, head_dim) } else { first + row };
            bias = (0..shape.0).map(|index| values[row(index)]).collect();
        }
        Ok(Linear { weight, bias })
    }

    /// Which tensor a part of a layer lies in, from which row on, and how many rows that has.
    fn holder(&self, part: Part, rows: usize) -> (Part, usize, usize) {
        let Shape { n_heads, n_kv_heads, head_dim, ffn_dim, .. } = self.config.shape;
        let (q_dim, kv_dim) = (n_heads * head_dim, n_kv_heads * head_dim);
        match part {
            _ if !self.names.family.is_fused => (part, 0, rows),
            Part::Query => (Part::Qkv, 0, q_dim + 2 * kv_dim),
            Part::Key => (Part::Qkv, q_dim, q_dim + 2 * kv_dim),
            Part::Value => (Part::Qkv, q_dim + kv_dim, q_dim + 2 * kv_dim),
            Part::Gate => (Part::GateUp, 0, 2 * ffn_dim),
            Part::Up => (Part::GateUp, ffn_dim, 2 * ffn_dim),
            _ => (part, 0, rows),
        }
    }

    pub(crate) fn layer(&mut self, layer: usize) -> Result<LayerWeights, ModelError> {
        let Shape { hidden_dim, n_heads, n_kv_heads, head_dim, .. } = self.config.shape;
        let (q_dim, kv_dim) = (n_heads * head_dim, n_kv_heads * head_dim);
        let Config { norms, head_norms, has_sinks, .. } = *self.config;
        let (before, after) = (norms != Norms::After, norms != Norms::Before);
        let has_head_norms = head_norms != HeadNorms::None;
        let is_whole = head_norms == HeadNorms::Whole;
        let norm_dims = if is_whole { (q_dim, kv_dim) } else { (head_dim, head_dim) };
        Ok(LayerWeights {
            attention_norm: self.layer_norm((layer, Part::AttentionNorm), before, hidden_dim)?,
            query: self.linear((layer, Part::Query), (q_dim, hidden_dim))?,
            key: self.linear((layer, Part::Key), (kv_dim, hidden_dim))?,
            value: self.linear((layer, Part::Value), (kv_dim, hidden_dim))?,
            query_norm: self.layer_norm((layer, Part::QueryNorm), has_head_norms, norm_dims.0)?,
            key_norm: self.layer_norm((layer, Part::KeyNorm), has_head_norms, norm_dims.1)?,
            sinks: self.layer_norm((layer, Part::Sinks), has_sinks, n_heads)?,
            output: self.linear((layer, Part::AttentionOutput), (hidden_dim, q_dim))?,
            post_attention_norm: self.layer_norm(
                (layer, Part::PostAttentionNorm),
                after,
                hidden_dim,
            )?,
            ffn_norm: self.layer_norm((layer, Part::FfnNorm), before, hidden_dim)?,
            feed_forward: self.feed_forward(layer)?,
            post_ffn_norm: self.layer_norm((layer, Part::PostFfnNorm), after, hidden_dim)?,
        })
    }

    fn feed_forward(&mut self, layer: usize) -> Result<FeedForward, ModelError> {
        let Shape { hidden_dim, ffn_dim, .. } = self.config.shape;
        let experts = self.config.experts.filter(|_| self.config.layers[layer].has_experts);
        let Some(experts) = experts else {
            return Ok(FeedForward::One(Gated {
                gate: self.linear((layer, Part::Gate), (ffn_dim, hidden_dim))?,
                up: self.linear((layer, Part::Up), (ffn_dim, hidden_dim))?,
                down: self.linear((layer, Part::Down), (hidden_dim, ffn_dim))?,
            }));
        };
        let router = self.linear((layer, Part::Router), (experts.count, hidden_dim))?;
        let expert = |expert| {
            let mut part = |part| self.expert((layer, expert), part, experts);
            Ok(Gated { gate: part(Part::Gate)?, up: part(Part::Up)?, down: part(Part::Down)? })
        };
        let experts = (0..experts.count).map(expert).collect::<Result<_, ModelError>>()?;
        Ok(FeedForward::Experts { router, experts })
    }

    /// One matrix of one expert: a tensor of its own, or a part of one with all experts.
    fn expert(
        &mut self,
        (layer, expert): (usize, usize),
        part: Part,
        Experts { count, ffn_dim, .. }: Experts,
    ) -> Result<Linear, ModelError> {
        let hidden_dim = self.config.shape.hidden_dim;
        let shape = if part == Part::Down { (hidden_dim, ffn_dim) } else { (ffn_dim, hidden_dim) };
        let (rows, columns) = shape;
        let names = self.names.family.experts.filter(|_| self.names.is_hugging_face);
        // Gate and up come by turns where they lie in one.
        let (offset, step) = match (names, part) {
            (Some(names), Part::Gate) if names.gate == names.up => (0, 2),
            (Some(names), Part::Up) if names.gate == names.up => (1, 2),
            _ => (0, 1),
        };
        let (piece, biases, first) = match names {
            Some(names) if names.is_stacked => {
                let place = Place::Across { first: expert * columns, offset, step };
                let whole = vec![count, columns, step * rows];
                (Piece { whole, place }, vec![count, step * rows], expert * step * rows)
            }
            Some(_) => {
                let place = Place::Rows { first: 0 };
                (Piece { whole: vec![rows, columns], place }, vec![rows], 0)
            }
            None => {
                let place = Place::Rows { first: expert * rows };
                (
                    Piece { whole: vec![count, rows, columns], place },
                    vec![count, rows],
                    expert * rows,
                )
            }
        };
        let name = self.names.expert(layer, expert, part, "weight");
        let weight = if self.file.tensor(&format!("{name}_blocks")).is_some() {
            self.mxfp4(&name, shape, (count, first + offset, step))?
        } else {
            let tensor = self.wanted(&name)?;
            self.matrix(tensor, shape, &piece)?
        };
        let bias = match self.tensor(&self.names.expert(layer, expert, part, "bias")) {
            None => Vec::new(),
            Some(tensor) => {
                let values = vector(&tensor, &biases)?;
                (0..rows).map(|row| values[first + offset + step * row]).collect()
            }
        };
        Ok(Linear { weight, bias })
    }

    /// One of `count` experts whose MXFP4 codes and scales lie in two tensors: each `step`th row
    /// from `first` on.
    fn mxfp4(
        &mut self,
        name: &str,
        shape: (usize, usize),
        (count, first, step): (usize, usize, usize),
    ) -> Result<PackedMatrix, ModelError> {
        let whole = [count, step * shape.0, shape.1.div_ceil(32), 16];
        let mut part = |suffix: &str, whole: &[usize]| {
            let tensor = self.wanted(&format!("{name}{suffix}"))?;
            want_shape(&tensor, whole)?;
            if tensor.dtype == DType::U8 {
                return Ok(tensor);
            }
            let (name, dtype) = (tensor.name.to_owned(), tensor.dtype.name().to_owned());
            Err(ModelError::TensorType { name, dtype })
        };
        let (codes, scales) = (part("_blocks", &whole)?, part("_scales", &whole[..3])?);
        let rows = Mxfp4Rows { codes, scales, first, step };
        let added = self.packing.add(Format::Bf16, shape, rows);
        added.map_err(|source| ModelError::Pack { name: codes.name.to_owned(), source })
    }

    /// The output matrix, or the embedding where the two are one or no file says otherwise.
    pub(crate) fn output(&mut self, tied: Option<bool>) -> Result<PackedMatrix, ModelError> {
        let Shape { vocab_size, hidden_dim, .. } = self.config.shape;
        let embedding = self.wanted(self.names.global(Global::Embedding))?;
        let name = self.names.global(Global::Output);
        let own = self.tensor(name).filter(|_| tied != Some(true));
        if own.is_none() && tied == Some(false) {
            return Err(ModelError::MissingTensor { name: name.to_owned() });
        }
        let piece = Piece { whole: vec![vocab_size, hidden_dim], place: Place::Rows { first: 0 } };
        self.matrix(own.unwrap_or(embedding), (vocab_size, hidden_dim), &piece)
    }

    /// Re-lays all matrices, once it is known that nothing is left over.
    pub(crate) fn finish(self, pool: &Pool) -> Result<(), ModelError> {
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

/// The numbers of a tensor of this shape.
fn vector(tensor: &Tensor<'_>, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
    want_shape(tensor, shape)?;
    Ok(tensor.to_f32()?)
}
