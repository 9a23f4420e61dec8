//! The tensors of a file as the parts of a model, each checked and marked as used.

use std::collections::BTreeSet;

use causeway_kernels::{PackedMatrix, Packing, Pool};
use causeway_weights::{DType, ModelFile, Tensor};

use crate::families::{HeadNorms, Norms};
use crate::fields::Fields;
use crate::load::{FeedForward, Gated, LayerWeights, Linear};
use crate::names::{Names, Part};
use crate::relay::{Order, Place, Rows};
use crate::{Config, ConfigError, Experts, ModelError, Shape};

/// Tensors that no part is made of: older files carry the first although nothing needs it, and
/// the others are read with the config.
const IGNORED: [&str; 4] = [
    "rotary_emb.inv_freq",
    "rope_freqs.weight",
    "rope_factors_long.weight",
    "rope_factors_short.weight",
];

fn want_shape(tensor: &Tensor<'_>, wanted: &[usize]) -> Result<(), ModelError> {
    if tensor.shape == wanted {
        return Ok(());
    }
    let (found, wanted) = (tensor.shape.to_vec(), wanted.to_vec());
    Err(ModelError::TensorShape { name: tensor.name.to_owned(), found, wanted })
}

/// Takes a file apart; what is left over at the end is an error.
pub(crate) struct Loader<'a> {
    file: &'a ModelFile,
    fields: &'a Fields<'a>,
    config: &'a Config,
    names: Names,
    packing: Packing<'a>,
    used: BTreeSet<String>,
}

impl<'a> Loader<'a> {
    pub(crate) fn new(
        file: &'a ModelFile,
        fields: &'a Fields<'a>,
        config: &'a Config,
        names: Names,
    ) -> Self {
        Self { file, fields, config, names, packing: Packing::default(), used: BTreeSet::new() }
    }

    /// The name of the embedding, which is read row by row from the file.
    pub(crate) fn embedding(&mut self) -> Result<String, ModelError> {
        let Shape { vocab_size, hidden_dim, .. } = self.config.shape;
        let tensor = self.wanted(&self.names.embedding())?;
        want_shape(&tensor, &[vocab_size, hidden_dim])?;
        if tensor.dtype.is_readable() { Ok(tensor.name.to_owned()) } else { Err(of_type(&tensor)) }
    }

    fn tensor(&mut self, name: &str) -> Option<Tensor<'a>> {
        let tensor = self.file.tensor(name)?;
        self.used.insert(name.to_owned());
        Some(tensor)
    }

    fn wanted(&mut self, name: &str) -> Result<Tensor<'a>, ModelError> {
        self.tensor(name).ok_or_else(|| ModelError::MissingTensor { name: name.to_owned() })
    }

    fn norm(&mut self, name: &str, len: usize) -> Result<Vec<f32>, ModelError> {
        let mut values = vector(&self.wanted(name)?, &[len])?;
        values.iter_mut().for_each(|value| *value += self.config.norm_offset);
        Ok(values)
    }

    pub(crate) fn output_norm(&mut self) -> Result<Vec<f32>, ModelError> {
        self.norm(&self.names.output_norm(), self.config.shape.hidden_dim)
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
        name: &str,
        shape: (usize, usize),
        (whole, place): (&[usize], Place),
    ) -> Result<PackedMatrix, ModelError> {
        let [codes, scales] = ["blocks", "scales"].map(|part| format!("{name}_{part}"));
        let is_apart = |name: &String| self.file.tensor(name).is_some();
        let rows = if [&codes, &scales].into_iter().any(is_apart) {
            let (tensor, scales) = (self.wanted(&codes)?, self.wanted(&scales)?);
            let rows = [&whole[..1], &[place.step * shape.0, shape.1.div_ceil(32)]].concat();
            want_shape(&tensor, &[&rows[..], &[16]].concat())?;
            want_shape(&scales, &rows)?;
            if let Some(other) = [&tensor, &scales].into_iter().find(|t| t.dtype != DType::U8) {
                return Err(of_type(other));
            }
            let order = Order::OneByOne;
            Rows { file: self.file, tensor, scales: Some(scales), place: Place { order, ..place } }
        } else {
            let tensor = self.wanted(name)?;
            want_shape(&tensor, whole)?;
            Rows { file: self.file, tensor, scales: None, place }
        };
        let name = rows.tensor.name.to_owned();
        let is_across = rows.place.order == Order::Across;
        let format = rows.format().filter(|format| !(is_across && format.is_quantised()));
        let format = format.ok_or_else(|| of_type(&rows.tensor))?;
        if let Some(power) = rows.scale_out_of_range(shape.0) {
            let dtype = format!("MXFP4 with a scale of 2^{power}");
            return Err(ModelError::TensorType { name, dtype });
        }
        self.packing.add(format, shape, rows).map_err(|source| ModelError::Pack { name, source })
    }

    fn linear(
        &mut self,
        (layer, part): (usize, Part),
        shape: (usize, usize),
    ) -> Result<Linear, ModelError> {
        let (holder, first, rows) = self.holder(part, shape.0);
        let is_turned = matches!(part, Part::QUERY | Part::KEY) && self.config.pairs_interleaved;
        let head_dim = self.config.shape.head_dim;
        let order = if is_turned { Order::Paired { head_dim } } else { Order::OneByOne };
        let place = Place { order, ..Place::from(first) };
        let [weight, bias] = ["weight", "bias"].map(|kind| self.names.layer(layer, holder, kind));
        self.check_bias(part, &bias)?;
        let weight = self.matrix(&weight, shape, (&[rows, shape.1], place))?;
        Ok(Linear { weight, bias: self.bias(&bias, &[rows], (shape.0, place))? })
    }

    /// A bias, or nothing where the file has none.
    fn bias(
        &mut self,
        name: &str,
        whole: &[usize],
        (rows, place): (usize, Place),
    ) -> Result<Vec<f32>, ModelError> {
        let Some(tensor) = self.tensor(name) else { return Ok(Vec::new()) };
        let values = vector(&tensor, whole)?;
        Ok((0..rows).map(|row| values[place.row(row)]).collect())
    }

    /// Refuses a bias that is missing, and one that the config denies.
    fn check_bias(&self, part: Part, name: &str) -> Result<(), ModelError> {
        let is_there = self.file.tensor(name).is_some();
        if self.names.family.biases.always(part) {
            let missing = || ModelError::MissingTensor { name: name.to_owned() };
            return is_there.then_some(()).ok_or_else(missing);
        }
        let field = match part {
            Part::QUERY | Part::KEY | Part::VALUE | Part::ATTENTION_OUTPUT => "attention_bias",
            Part::GATE | Part::UP | Part::DOWN => "mlp_bias",
            _ => return Ok(()),
        };
        match self.fields.flag(("", field))?.filter(|says| *says != is_there) {
            Some(says) => Err(ConfigError::Bias { field, says, name: name.to_owned() }.into()),
            None => Ok(()),
        }
    }

    /// Which tensor a part of a layer lies in, from which row on, and how many rows that has.
    fn holder(&self, part: Part, rows: usize) -> (Part, usize, usize) {
        let Shape { n_heads, n_kv_heads, head_dim, ffn_dim, .. } = self.config.shape;
        let (q_dim, kv_dim) = (n_heads * head_dim, n_kv_heads * head_dim);
        match part {
            _ if !self.names.family.is_fused => (part, 0, rows),
            Part::QUERY => (Part::QKV, 0, q_dim + 2 * kv_dim),
            Part::KEY => (Part::QKV, q_dim, q_dim + 2 * kv_dim),
            Part::VALUE => (Part::QKV, q_dim + kv_dim, q_dim + 2 * kv_dim),
            Part::GATE => (Part::GATE_UP, 0, 2 * ffn_dim),
            Part::UP => (Part::GATE_UP, ffn_dim, 2 * ffn_dim),
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
            attention_norm: self.layer_norm((layer, Part::ATTENTION_NORM), before, hidden_dim)?,
            query: self.linear((layer, Part::QUERY), (q_dim, hidden_dim))?,
            key: self.linear((layer, Part::KEY), (kv_dim, hidden_dim))?,
            value: self.linear((layer, Part::VALUE), (kv_dim, hidden_dim))?,
            query_norm: self.layer_norm((layer, Part::QUERY_NORM), has_head_norms, norm_dims.0)?,
            key_norm: self.layer_norm((layer, Part::KEY_NORM), has_head_norms, norm_dims.1)?,
            sinks: self.layer_norm((layer, Part::SINKS), has_sinks, n_heads)?,
            output: self.linear((layer, Part::ATTENTION_OUTPUT), (hidden_dim, q_dim))?,
            post_attention_norm: self.layer_norm(
                (layer, Part::POST_ATTENTION_NORM),
                after,
                hidden_dim,
            )?,
            ffn_norm: self.layer_norm(
                (layer, Part::ffn_norm(&self.names.family)),
                before,
                hidden_dim,
            )?,
            feed_forward: self.feed_forward(layer)?,
            post_ffn_norm: self.layer_norm((layer, Part::POST_FFN_NORM), after, hidden_dim)?,
        })
    }

    fn feed_forward(&mut self, layer: usize) -> Result<FeedForward, ModelError> {
        let Shape { hidden_dim, ffn_dim, .. } = self.config.shape;
        let experts = self.config.experts.filter(|_| self.config.layers[layer].has_experts);
        let Some(experts) = experts else {
            return Ok(FeedForward::One(Gated {
                gate: self.linear((layer, Part::GATE), (ffn_dim, hidden_dim))?,
                up: self.linear((layer, Part::UP), (ffn_dim, hidden_dim))?,
                down: self.linear((layer, Part::DOWN), (hidden_dim, ffn_dim))?,
            }));
        };
        let router =
            self.linear((layer, Part::router(&self.names.family)), (experts.count, hidden_dim))?;
        let expert = |expert| {
            let mut part = |part| self.expert((layer, expert), part, experts);
            Ok(Gated { gate: part(Part::GATE)?, up: part(Part::UP)?, down: part(Part::DOWN)? })
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
        let shape = if part == Part::DOWN { (hidden_dim, ffn_dim) } else { (ffn_dim, hidden_dim) };
        let (rows, columns) = shape;
        let of_all = self.names.of_experts(part);
        let Place { first, step, order } = of_all;
        let (before, all) =
            if self.names.experts_apart { (0, None) } else { (expert, Some(count)) };
        let place = Place { first: first + before * step * rows, ..of_all };
        let inner = if order == Order::Across { [columns, step * rows] } else { [rows, columns] };
        let whole: Vec<usize> = all.into_iter().chain(inner).collect();
        let biases: Vec<usize> = all.into_iter().chain([step * rows]).collect();
        let [weight, bias] =
            ["weight", "bias"].map(|kind| self.names.expert(layer, expert, part, kind));
        self.check_bias(part, &bias)?;
        let weight = self.matrix(&weight, shape, (&whole, place))?;
        Ok(Linear { weight, bias: self.bias(&bias, &biases, (rows, place))? })
    }

    /// The output matrix, or the embedding where the two are one or no file says otherwise.
    pub(crate) fn output(&mut self) -> Result<PackedMatrix, ModelError> {
        let Shape { vocab_size, hidden_dim, .. } = self.config.shape;
        let name = self.output_name()?;
        let shape = (vocab_size, hidden_dim);
        self.matrix(&name, shape, (&[vocab_size, hidden_dim], Place::from(0)))
    }

    /// The tensor that is the output matrix.
    pub(crate) fn output_name(&mut self) -> Result<String, ConfigError> {
        let tied = self.fields.flag(("", "tie_word_embeddings"))?;
        let (own, embedding) = (self.names.output(), self.names.embedding());
        let is_own = self.tensor(&own).is_some() && tied != Some(true) || tied == Some(false);
        Ok(if is_own { own } else { embedding })
    }

    /// Re-lays all matrices, once it is known that nothing is left over.
    pub(crate) fn finish(self, pool: &Pool) -> Result<(), ModelError> {
        self.refuse_unused()?;
        self.packing.finish(pool).map_err(|source| ModelError::Memory { source })
    }

    /// A weight that no part reads means another computation than the file's.
    pub(crate) fn refuse_unused(&self) -> Result<(), ModelError> {
        let is_ignored = |name: &str| {
            IGNORED.iter().any(|suffix| name.ends_with(suffix)) || self.names.is_not_of_text(name)
        };
        let mut names = self.file.tensors().map(|entry| &entry.name);
        let unused = names.find(|name| !self.used.contains(*name) && !is_ignored(name));
        let Some(name) = unused.cloned() else { return Ok(()) };
        let (architecture, n_layers) =
            (self.config.architecture.clone(), self.config.shape.n_layers);
        Err(ModelError::UnusedTensor { name, architecture, n_layers })
    }
}

fn of_type(tensor: &Tensor<'_>) -> ModelError {
    let (name, dtype) = (tensor.name.to_owned(), tensor.dtype.name().to_owned());
    ModelError::TensorType { name, dtype }
}

/// The numbers of a tensor of this shape.
fn vector(tensor: &Tensor<'_>, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
    want_shape(tensor, shape)?;
    Ok(tensor.to_f32()?)
}
