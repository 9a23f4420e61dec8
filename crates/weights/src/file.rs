//! A model's files, opened: its metadata or config, and its tensors by name.

use std::io;
use std::path::{Path, PathBuf};

use crate::gguf::Directory;
use crate::mapping::Mapping;
use crate::quant::ValuesError;
use crate::split::{self, Joined};
use crate::{DType, Metadata, TensorEntry, WeightsError, dequantize, folder};

/// The form a model is stored in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A GGUF file, or all parts of a split one; `version` is 2 or 3.
    Gguf { version: u32 },
    /// A Hugging Face folder of safetensors files.
    Safetensors,
}

/// One mapped file of a model.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) path: PathBuf,
    pub(crate) mapping: Mapping,
}

impl Shard {
    pub(crate) fn open(path: PathBuf) -> Result<Self, WeightsError> {
        match Mapping::open(&path) {
            Ok(mapping) => Ok(Self { path, mapping }),
            Err(source) => Err(WeightsError::Open { path, source }),
        }
    }

    /// What is wrong where bytes that the file had at its opening cannot be read.
    fn unread(&self, source: io::Error) -> WeightsError {
        let path = self.path.clone();
        match source.kind() {
            io::ErrorKind::UnexpectedEof => WeightsError::Changed { path },
            _ => WeightsError::Read { path, source },
        }
    }
}

/// An opened model: every tensor it lists lies inside its files.
#[derive(Debug)]
pub struct ModelFile {
    pub(crate) format: Format,
    pub(crate) metadata: Metadata,
    pub(crate) config: Option<serde_json::Value>,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) tensors: Vec<TensorEntry>,
    /// The tensors' indices in the order of their names.
    pub(crate) by_name: Vec<usize>,
    pub(crate) shards: Vec<Shard>,
}

/// One tensor's shape, type and bytes, the bytes still as the file has them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tensor<'a> {
    pub name: &'a str,
    pub dtype: DType,
    /// Row-major, outermost first: a 2-D weight is (outputs, inputs).
    pub shape: &'a [usize],
    /// All rows, one after the other, each a whole number of blocks.
    pub bytes: &'a [u8],
}

impl ModelFile {
    /// Opens a GGUF file, all parts of a split one whichever is named, or a Hugging Face folder with `config.json` and `model.safetensors` or
    /// `model.safetensors.index.json` and its shards. Maps the files; reads only their headers.
    pub fn open(path: &Path) -> Result<Self, WeightsError> {
        if path.is_dir() { folder::open(path) } else { Self::open_gguf(path) }
    }

    fn open_gguf(path: &Path) -> Result<Self, WeightsError> {
        let shard = Shard::open(path.to_owned())?;
        let Directory { version, metadata, tensors, alignment: _, by_name } =
            Directory::parse(shard.mapping.bytes())
                .map_err(|source| WeightsError::Gguf { path: path.to_owned(), source })?;
        let joined = match split::parts(&metadata)? {
            1 => Joined { version, metadata, tensors, by_name, shards: vec![shard] },
            count => split::open(path, count)?,
        };
        let Joined { version, metadata, tensors, by_name, shards } = joined;
        Ok(Self {
            format: Format::Gguf { version },
            metadata,
            config: None,
            folder: None,
            tensors,
            by_name,
            shards,
        })
    }

    /// The form the model is stored in.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// The key-value pairs of a GGUF file; empty for a folder.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The `config.json` of a folder, a JSON object.
    #[must_use]
    pub fn config(&self) -> Option<&serde_json::Value> {
        self.config.as_ref()
    }

    /// The folder, where the model is one: other files, such as `tokenizer.json`, lie in it.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Every file that the tensors and the config come from: the GGUF file or its parts, or of a
    /// folder its `config.json`, its index where it has shards, and the weight files, in their
    /// order.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        if let Some(folder) = &self.folder {
            files.push(folder.join("config.json"));
            let single = folder.join("model.safetensors");
            if !self.shards.iter().any(|shard| shard.path == single) {
                files.push(folder.join("model.safetensors.index.json"));
            }
        }
        files.extend(self.shards.iter().map(|shard| shard.path.clone()));
        files
    }

    /// Every tensor, in the files' order.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = &TensorEntry> {
        self.tensors.iter()
    }

    /// The tensor of this name.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<Tensor<'_>> {
        let place = self.by_name.binary_search_by(|&i| self.tensors[i].name.as_str().cmp(name));
        place.ok().map(|place| self.at(&self.tensors[self.by_name[place]]))
    }

    pub(crate) fn at<'a>(&'a self, entry: &'a TensorEntry) -> Tensor<'a> {
        let TensorEntry { name, dtype, shape, offset, bytes, shard } = entry;
        let file = self.shards[*shard].mapping.bytes();
        let bytes = &file[*offset..*offset + *bytes];
        Tensor { name, dtype: *dtype, shape, bytes }
    }

    /// Bytes of all the model's weight files together.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.mapping.bytes().len() as u64).sum()
    }

    /// Lets the kernel drop the pages read so far; what is read again comes back from the files.
    /// It is advice: where the platform does not take it, nothing happens.
    pub fn release_pages(&self) {
        for shard in &self.shards {
            shard.mapping.release_pages().unwrap_or_default();
        }
    }

    /// Does so for `bytes`, a part of a tensor of this model, once nothing reads it soon.
    pub fn release(&self, bytes: &[u8]) {
        if let Some((Shard { mapping, .. }, start)) = self.place_of(bytes) {
            mapping.release_part(start..start + bytes.len()).unwrap_or_default();
        }
    }

    /// The shard that `bytes` are a part of, and where they begin in it.
    fn place_of(&self, bytes: &[u8]) -> Option<(&Shard, usize)> {
        let part = bytes.as_ptr_range();
        self.shards.iter().find_map(|shard| {
            let all = shard.mapping.bytes().as_ptr_range();
            let is_inside = all.start <= part.start && part.end <= all.end;
            is_inside.then(|| (shard, part.start.addr() - all.start.addr()))
        })
    }

    /// Writes the values of some rows of a tensor of this model to `out`, one after the other,
    /// and leaves no page of the file in memory.
    ///
    /// # Errors
    /// `WeightsError` for a file that became shorter, or a type that is not read.
    ///
    /// # Panics
    /// If `out` has not a row's place for each, the tensor no such row, or another model has it.
    pub fn dequantize_rows(
        &self,
        tensor: &Tensor<'_>,
        rows: impl ExactSizeIterator<Item = usize>,
        out: &mut [f32],
    ) -> Result<(), WeightsError> {
        assert_eq!(out.len(), rows.len() * tensor.columns(), "a place for each row");
        let (shard, start) = self.place_of(tensor.bytes).expect("a tensor of this model");
        let mut bytes = vec![0; tensor.bytes.len() / tensor.rows().max(1)];
        for (row, out) in rows.zip(out.chunks_exact_mut(tensor.columns())) {
            assert!(row < tensor.rows(), "row {row} of a tensor of {} rows", tensor.rows());
            let copied = shard.mapping.copy_out(start + row * bytes.len(), &mut bytes);
            copied.map_err(|source| shard.unread(source))?;
            dequantize(tensor.dtype, &bytes, out).map_err(|source| tensor.fault(source))?;
        }
        Ok(())
    }

    /// Asks the kernel to read the files ahead, before all of them is wanted. Advice, as above.
    pub fn will_need(&self) {
        for shard in &self.shards {
            shard.mapping.will_need().unwrap_or_default();
        }
    }

    /// Refuses files that another program truncated or rewrote since they were opened. Reading
    /// a truncated one would end the program, so long readers ask before they begin.
    pub fn check_unchanged(&self) -> Result<(), WeightsError> {
        for Shard { path, mapping } in &self.shards {
            match mapping.is_unchanged() {
                Ok(true) => {}
                Ok(false) => return Err(WeightsError::Changed { path: path.clone() }),
                Err(source) => {
                    return Err(WeightsError::Open { path: path.clone(), source });
                }
            }
        }
        Ok(())
    }
}

impl<'a> Tensor<'a> {
    /// Elements in one row: the innermost dimension, 1 for a tensor without dimensions.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.shape.last().copied().unwrap_or(1)
    }

    /// How many rows there are: the product of all dimensions but the innermost; 0 for a tensor
    /// without elements, so that no loop runs over rows of nothing.
    #[must_use]
    pub fn rows(&self) -> usize {
        match self.shape.split_last() {
            None => 1,
            Some((0, _)) => 0,
            Some((_, outer)) => outer.iter().product(),
        }
    }

    /// Elements in all.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.rows() * self.columns()
    }

    /// The bytes of one row, a whole number of blocks. `row` must be below `rows()`.
    #[must_use]
    pub fn row_bytes(&self, row: usize) -> &'a [u8] {
        assert!(row < self.rows(), "row {row} of a tensor of {} rows", self.rows());
        let bytes = self.bytes.len() / self.rows();
        &self.bytes[row * bytes..(row + 1) * bytes]
    }

    /// Writes the values of one row to `out`, which has `columns()` places. `row` must be below
    /// `rows()`.
    pub fn dequantize_row(&self, row: usize, out: &mut [f32]) -> Result<(), WeightsError> {
        dequantize(self.dtype, self.row_bytes(row), out).map_err(|source| self.fault(source))
    }

    /// Writes all values to `out`, which has `elements()` places, row after row.
    pub fn dequantize(&self, out: &mut [f32]) -> Result<(), WeightsError> {
        dequantize(self.dtype, self.bytes, out).map_err(|source| self.fault(source))
    }

    /// All values, row after row.
    pub fn to_f32(&self) -> Result<Vec<f32>, WeightsError> {
        let mut values = vec![0.0; self.rows() * self.row_len_readable()?];
        self.dequantize(&mut values)?;
        Ok(values)
    }

    /// `columns()`, or the refusal of a type that is not read: asked before memory is taken.
    pub fn row_len_readable(&self) -> Result<usize, WeightsError> {
        if self.dtype.is_readable() {
            return Ok(self.columns());
        }
        Err(self.fault(ValuesError::Unreadable { dtype: self.dtype }))
    }

    fn fault(&self, source: ValuesError) -> WeightsError {
        WeightsError::Values { name: self.name.to_owned(), source }
    }
}

#[cfg(test)]
mod tests;
