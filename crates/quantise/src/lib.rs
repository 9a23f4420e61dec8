//! A model file written again with its weights in smaller types.
//!
//! It knows which tensors errors hurt most, by their names; it computes with none of them.
//! `Source` → a type for each tensor (`choice`) → blocks (`convert`) → a GGUF file.

mod choice;
mod convert;

use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

pub use choice::{Choice, Rule, RuleFault, Target};

use causeway_weights::gguf::{NewTensor, Source, write_directory};
use causeway_weights::{DType, Tensor, Value, WeightsError, shown};

/// Why a model could not be written in other types.
#[derive(Debug, thiserror::Error)]
pub enum QuantiseError {
    #[error(transparent)]
    Source(#[from] WeightsError),
    #[error("`{}` is the model itself: name another file for the result", path.display())]
    SameFile { path: PathBuf },
    #[error(
        "tensor `{}` is {dtype} already, and quantising twice adds up errors: \
         --allow-requantize does it all the same", shown(.name)
    )]
    Requantised { name: String, dtype: DType },
    #[error(
        "tensor `{}` has rows of {columns} values, which are not whole blocks of {dtype}",
        shown(.name)
    )]
    Ragged { name: String, dtype: DType, columns: usize },
    #[error("tensor `{}` holds {value}, the limit is a finite ±65504", shown(.name))]
    OutOfRange { name: String, value: f32 },
    #[error("stopped before the model was whole: nothing is left of `{}`", path.display())]
    Stopped { path: PathBuf },
    #[error("`{}` cannot be written", path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl QuantiseError {
    /// Whether the caller asked for what cannot be, rather than the world or the file being at
    /// fault.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        match self {
            Self::Source(source) => source.is_callers_mistake(),
            Self::OutOfRange { .. } | Self::Stopped { .. } | Self::Write { .. } => false,
            Self::SameFile { .. } | Self::Requantised { .. } | Self::Ragged { .. } => true,
        }
    }
}

/// What one tensor became, and what it lost: the errors are of values, written against read.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub name: String,
    pub from: DType,
    pub to: DType,
    pub elements: usize,
    pub bytes: usize,
    /// Root of the mean squared error.
    pub rmse: f64,
    /// Largest absolute error.
    pub max: f32,
}

/// Writes the model of `source` to `path` with the types that `choice` gives, on `threads` threads;
/// `told` hears of each tensor once it is written, and may stop it. The file bears its name only
/// when it is whole.
pub fn quantise(
    source: &dyn Source,
    path: &Path,
    choice: &Choice,
    threads: usize,
    mut told: impl FnMut(&Outcome) -> ControlFlow<()>,
) -> Result<Vec<Outcome>, QuantiseError> {
    refuse_files(source, path)?;
    let tensors = plan(source, choice)?;
    let fault = |error: io::Error| QuantiseError::Write { path: path.to_owned(), source: error };
    let part = part_of(path);
    let written = std::fs::File::create_new(&part).map_err(fault).and_then(|file| {
        let mut out = BufWriter::new(file);
        let metadata = metadata(source, choice);
        let alignment = write_directory(&mut out, &metadata, &tensors).map_err(fault)?;
        let mut outcomes = Vec::with_capacity(tensors.len());
        for (index, (new, NewTensor { name, dtype, shape })) in
            tensors.iter().zip(source.tensors()).enumerate()
        {
            let bytes = source.bytes(index)?;
            let tensor = Tensor { name: &name, dtype, shape: &shape, bytes: &bytes };
            let (bytes, outcome) = convert::convert(&tensor, new.dtype, threads)?;
            out.write_all(&bytes).map_err(fault)?;
            let rest = bytes.len().next_multiple_of(alignment) - bytes.len();
            out.write_all(&vec![0; rest]).map_err(fault)?;
            source.file().release(tensor.bytes);
            if told(&outcome).is_break() {
                return Err(QuantiseError::Stopped { path: path.to_owned() });
            }
            outcomes.push(outcome);
        }
        source.file().check_unchanged()?;
        out.into_inner().map_err(|error| fault(error.into_error()))?.sync_all().map_err(fault)?;
        std::fs::rename(&part, path).map_err(fault)?;
        Ok(outcomes)
    });
    if written.is_err() {
        // What is left of it is of no use; that it cannot be removed would hide the reason.
        std::fs::remove_file(&part).unwrap_or_default();
    }
    written
}

fn refuse_files(source: &dyn Source, path: &Path) -> Result<(), QuantiseError> {
    let (there, files) = (path.canonicalize().ok(), source.file().files());
    if there.is_some() && files.iter().any(|file| file.canonicalize().ok() == there) {
        return Err(QuantiseError::SameFile { path: path.to_owned() });
    }
    Ok(())
}

/// A name beside the place: of this run alone, so that two runs do not write one file.
fn part_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".part-{}", std::process::id()));
    path.with_file_name(name)
}

/// The file's keys, with those that speak of its types made true.
fn metadata(source: &dyn Source, choice: &Choice) -> Vec<(String, Value)> {
    let own = ["general.file_type", "general.quantization_version"];
    let mut pairs = source.keys();
    pairs.retain(|(key, _)| !own.contains(&key.as_str()));
    pairs.push((own[0].to_owned(), Value::U32(choice.target.file_type())));
    pairs.push((own[1].to_owned(), Value::U32(2)));
    pairs
}

/// What each tensor will be; refuses before anything is written.
fn plan(source: &dyn Source, choice: &Choice) -> Result<Vec<NewTensor>, QuantiseError> {
    let listed = source.tensors();
    let is_tied = !listed.iter().any(|new| new.name == "output.weight");
    let layers = choice::layers(listed.iter().map(|new| new.name.as_str()));
    let mut tensors = Vec::with_capacity(listed.len());
    for NewTensor { name, dtype: from, shape } in listed {
        let tensor = Tensor { name: &name, dtype: from, shape: &shape, bytes: &[] };
        let (dtype, columns) = (choice.dtype(&tensor, is_tied, layers), tensor.columns());
        if dtype != from && from.block_len() > 1 && !choice.allows_requantising {
            return Err(QuantiseError::Requantised { name, dtype: from });
        }
        if dtype.bytes_of(columns).is_none() {
            return Err(QuantiseError::Ragged { name, dtype, columns });
        }
        if dtype != from {
            tensor.row_len_readable()?;
        }
        tensors.push(NewTensor { name, dtype, shape });
    }
    Ok(tensors)
}

#[cfg(test)]
mod tests;
