//! What a GGUF file is written from, a tensor at a time.

use std::borrow::Cow;

use super::NewTensor;
use crate::{ModelFile, Tensor, Value, WeightsError};

/// A model as a GGUF file can hold it: keys, tensors, and each one's bytes when its turn comes.
pub trait Source {
    /// The keys in their order, those of a split model apart: what is written is whole.
    fn keys(&self) -> Vec<(String, Value)>;

    /// The tensors in their order.
    fn tensors(&self) -> Vec<NewTensor>;

    /// The bytes of a tensor of that list, as its type and shape say.
    fn bytes(&self, index: usize) -> Result<Cow<'_, [u8]>, WeightsError>;

    /// The model that all of it comes from.
    fn file(&self) -> &ModelFile;
}

/// A GGUF file is its own source.
impl Source for ModelFile {
    fn keys(&self) -> Vec<(String, Value)> {
        let pairs = self.metadata.iter().filter(|(key, _)| !key.starts_with("split."));
        pairs.map(|(key, value)| (key.to_owned(), value.clone())).collect()
    }

    fn tensors(&self) -> Vec<NewTensor> {
        let new = |entry: &crate::TensorEntry| NewTensor {
            name: entry.name.clone(),
            dtype: entry.dtype,
            shape: entry.shape.clone(),
        };
        self.tensors.iter().map(new).collect()
    }

    fn bytes(&self, index: usize) -> Result<Cow<'_, [u8]>, WeightsError> {
        let Tensor { bytes, .. } = self.at(&self.tensors[index]);
        Ok(Cow::Borrowed(bytes))
    }

    fn file(&self) -> &ModelFile {
        self
    }
}
