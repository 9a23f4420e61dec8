//! A Hugging Face folder as the GGUF file that other programs read: its keys and its tensors.

use std::borrow::Cow;
use std::collections::BTreeSet;

use causeway_weights::gguf::{NewTensor, Source};
use causeway_weights::{DType, ModelFile, Value, WeightsError};

use crate::fields::Fields;
use crate::loader::Loader;
use crate::names::{Names, Part};
use crate::relay::{Order, Place, Rows};
use crate::rope::RopeScaling;
use crate::{Config, ConfigError, ModelError, read};

mod keys;

/// Why a folder cannot be written as a GGUF file.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Model(Box<ModelError>),
    #[error("`{key}` is {value}, which no GGUF file of architecture `{architecture}` can say")]
    Unsayable { key: &'static str, value: String, architecture: &'static str },
    #[error("tensor `{name}` is {dtype}, but its first expert {first}: a GGUF file has all in one")]
    Type { name: String, dtype: DType, first: DType },
}

impl<E: Into<ModelError>> From<E> for ExportError {
    fn from(error: E) -> Self {
        Self::Model(Box::new(error.into()))
    }
}

/// What one tensor of the GGUF file is made of.
#[derive(Debug)]
enum Content<'a> {
    /// Tensors of the folder one after the other, so many rows of each.
    Rows { tensors: Vec<Rows<'a>>, rows: usize, to: Place },
    /// Vectors, which such files have in f32.
    Values(Vec<f32>),
}

/// A folder as a GGUF file, of which no matrix is read before it is asked for.
#[derive(Debug)]
pub struct Export<'a> {
    file: &'a ModelFile,
    keys: Vec<(String, Value)>,
    tensors: Vec<(NewTensor, Content<'a>)>,
}

impl<'a> Export<'a> {
    /// Names and orders every tensor of a folder as GGUF files of its family do; `more` are keys
    /// that say nothing of the forward pass. What a model that sees too has for seeing is left out.
    ///
    /// # Errors
    /// The first thing that a GGUF file cannot say, or for which the folder cannot be computed.
    pub fn of(file: &'a ModelFile, more: Vec<(String, Value)>) -> Result<Self, ExportError> {
        let (fields, family) = Fields::of(file)?;
        if !fields.is_folder() {
            return Err(ConfigError::Missing { key: "config.json".to_owned() }.into());
        }
        let config = read::config(file, &fields, &family)?;
        let from = Names::of(file, family);
        let mut loader = Loader::new(file, &fields, &config, from);
        loader.embedding()?;
        (0..config.shape.n_layers).try_for_each(|layer| loader.layer(layer).map(drop))?;
        loader.output_norm()?;
        loader.output()?;
        loader.refuse_unused()?;
        let mut keys = keys::keys(&config, &family)?;
        keys.extend(more);
        let to = Names::of_gguf(family);
        let mut walk = Walk { file, config: &config, from, to, tensors: Vec::new() };
        walk.factors();
        walk.plain(to.embedding(), &from.embedding(), Order::OneByOne)?;
        (0..config.shape.n_layers).try_for_each(|layer| walk.layer(layer))?;
        walk.plain(to.output_norm(), &from.output_norm(), Order::OneByOne)?;
        let output = loader.output_name()?;
        if output != from.embedding() {
            walk.plain(to.output(), &output, Order::OneByOne)?;
        }
        let tensors = walk.tensors;
        Ok(Self { file, keys, tensors })
    }
}

impl Source for Export<'_> {
    fn keys(&self) -> Vec<(String, Value)> {
        self.keys.clone()
    }

    fn tensors(&self) -> Vec<NewTensor> {
        self.tensors.iter().map(|(new, _)| new.clone()).collect()
    }

    fn bytes(&self, index: usize) -> Result<Cow<'_, [u8]>, WeightsError> {
        let (new, content) = &self.tensors[index];
        let (tensors, rows, to) = match content {
            Content::Values(values) => {
                return Ok(Cow::Owned(values.iter().flat_map(|one| one.to_le_bytes()).collect()));
            }
            Content::Rows { tensors, rows, to } => (tensors, *rows, *to),
        };
        if let [Rows { tensor, scales: None, place, .. }] = tensors[..]
            && [place, to] == [Place::from(0); 2]
        {
            return Ok(Cow::Borrowed(tensor.bytes));
        }
        let columns = new.shape.last().copied().unwrap_or_default();
        let mut bytes = Vec::with_capacity(new.bytes());
        for tensor in tensors {
            to.backwards(rows).into_iter().for_each(|row| tensor.append(row, columns, &mut bytes));
            self.file.release(tensor.tensor.bytes);
        }
        Ok(Cow::Owned(bytes))
    }

    fn file(&self) -> &ModelFile {
        self.file
    }
}

/// Every part of a model by both its names, once its loader finds nothing wrong.
struct Walk<'a, 'c> {
    file: &'a ModelFile,
    config: &'c Config,
    from: Names,
    to: Names,
    tensors: Vec<(NewTensor, Content<'a>)>,
}

impl Walk<'_, '_> {
    /// The folder's tensors of these names as a new one of that shape.
    fn add(
        &mut self,
        name: String,
        names: &[String],
        shape: Vec<usize>,
        (place, order): (Place, Order),
    ) -> Result<(), ExportError> {
        let tensors: Vec<Rows<'_>> =
            names.iter().filter_map(|name| Rows::of(self.file, name, place)).collect();
        let first = tensors[0].dtype();
        if let Some(other) = tensors.iter().find(|rows| rows.dtype() != first) {
            let (name, dtype) = (other.tensor.name.to_owned(), other.dtype());
            return Err(ExportError::Type { name, dtype, first });
        }
        let to = Place { order, ..Place::from(0) };
        let is_vector = shape.len() == 1 || name.ends_with(".bias");
        let each = shape.iter().product::<usize>() / tensors.len();
        let (dtype, content) = if is_vector {
            let is_norm = name.ends_with("norm.weight");
            let mut values = Vec::with_capacity(each * tensors.len());
            for rows in &tensors {
                let own = rows.tensor.to_f32()?;
                values.extend(to.backwards(each).into_iter().map(|row| own[place.row(row)]));
            }
            // A sum with 0 would make a zero of the other sign.
            let offset = Some(self.config.norm_offset).filter(|offset| is_norm && *offset != 0.0);
            offset.inspect(|offset| values.iter_mut().for_each(|value| *value += offset));
            (DType::F32, Content::Values(values))
        } else {
            let rows = each / shape.last().map_or(1, |columns| (*columns).max(1));
            (first, Content::Rows { tensors, rows, to })
        };
        self.tensors.push((NewTensor { name, dtype, shape }, content));
        Ok(())
    }

    /// A tensor that keeps its shape.
    fn plain(&mut self, name: String, own: &str, order: Order) -> Result<(), ExportError> {
        let shape = self.file.tensor(own).map_or(Vec::new(), |tensor| tensor.shape.to_vec());
        self.add(name, &[own.to_owned()], shape, (Place::from(0), order))
    }

    /// RoPE's factors, which are tensors in such files.
    fn factors(&mut self) {
        let mut push = |name: &str, values: Vec<f32>| {
            let (dtype, shape) = (DType::F32, vec![values.len()]);
            let new = NewTensor { name: name.to_owned(), dtype, shape };
            self.tensors.push((new, Content::Values(values)));
        };
        let rope = &self.config.ropes[0];
        match &rope.scaling {
            RopeScaling::Llama3 { .. } => push("rope_freqs.weight", rope.divisors()),
            RopeScaling::LongRope { short, long, original: _ } => {
                push("rope_factors_long.weight", long.clone());
                push("rope_factors_short.weight", short.clone());
            }
            _ => {}
        }
    }

    fn layer(&mut self, layer: usize) -> Result<(), ExportError> {
        let (from, to, head_dim) = (self.from, self.to, self.config.shape.head_dim);
        let mut used = BTreeSet::new();
        for part in Part::all(&from.family) {
            let is_turned = matches!(part, Part::QUERY | Part::KEY);
            let is_turned = is_turned && from.family.pairs_interleaved;
            let order = if is_turned { Order::Paired { head_dim } } else { Order::OneByOne };
            for kind in ["weight", "bias"] {
                let own = from.layer(layer, part, kind);
                // The first of two parts of one name is the one that the family has.
                if self.file.tensor(&own).is_some() && used.insert(own.clone()) {
                    self.plain(to.layer(layer, part, kind), &own, order)?;
                }
            }
        }
        if self.config.layers[layer].has_experts {
            [Part::GATE, Part::UP, Part::DOWN]
                .into_iter()
                .flat_map(|part| [(part, "weight"), (part, "bias")])
                .try_for_each(|part| self.experts(layer, part))?;
        }
        Ok(())
    }

    /// One part of all experts, which lie in one tensor in such files.
    fn experts(
        &mut self,
        layer: usize,
        (part, kind): (Part, &'static str),
    ) -> Result<(), ExportError> {
        let Some(experts) = self.config.experts else { return Ok(()) };
        let tensors = if self.from.experts_apart { experts.count } else { 1 };
        let own = |expert| self.from.expert(layer, expert, part, kind);
        let names: Vec<String> = (0..tensors).map(own).collect();
        let place = self.from.of_experts(part);
        if Rows::of(self.file, &names[0], place).is_none() {
            return Ok(());
        }
        let (hidden_dim, ffn_dim) = (self.config.shape.hidden_dim, experts.ffn_dim);
        let (rows, columns) =
            if part == Part::DOWN { (hidden_dim, ffn_dim) } else { (ffn_dim, hidden_dim) };
        let columns = (kind == "weight").then_some(columns);
        let shape = [experts.count, rows].into_iter().chain(columns).collect();
        let name = self.to.expert(layer, 0, part, kind);
        self.add(name, &names, shape, (place, Order::OneByOne))
    }
}
