//! Everything that can go wrong when a model file is opened or read.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::gguf::GgufFault;
use crate::layout::shown;
use crate::safetensors::SafetensorsFault;
use crate::{ValueType, ValuesError};

/// Why a model file cannot be used; one sentence with its source's.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    #[error("cannot open `{}`", path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("cannot read `{}`", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot read `{}`", path.display())]
    Gguf { path: PathBuf, source: GgufFault },
    #[error("cannot read `{}`", path.display())]
    Safetensors { path: PathBuf, source: SafetensorsFault },
    #[error("cannot read `{}`", path.display())]
    Index { path: PathBuf, source: IndexFault },
    #[error("cannot read `{}`", path.display())]
    Json { path: PathBuf, source: JsonFault },
    #[error(
        "`{}` is a folder without `{missing}`: a model is a .gguf file, or a folder with \
         config.json and model.safetensors or its shards", path.display()
    )]
    Incomplete { path: PathBuf, missing: &'static str },
    #[error("`{}` is {bytes} bytes long, the limit for it is {limit}", path.display())]
    TooLong { path: PathBuf, bytes: u64, limit: u64 },
    #[error("metadata key `{}` must be {wanted}, the file has {found}", shown(.key))]
    KeyType { key: String, wanted: &'static str, found: ValueType },
    #[error("metadata key `{}` must be {wanted}, the file has {value}", shown(.key))]
    KeyRange { key: String, wanted: &'static str, value: i128 },
    #[error("the values of tensor `{}` cannot be read", shown(.name))]
    Values { name: String, source: ValuesError },
    #[error("`{}` was changed by another program while it was in use", path.display())]
    Changed { path: PathBuf },
}

impl WeightsError {
    pub(crate) fn key_range(key: &str, wanted: &'static str, value: i128) -> Self {
        Self::KeyRange { key: key.to_owned(), wanted, value }
    }

    /// Whether the caller named a wrong thing, rather than the world or the file being at fault.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        matches!(self, Self::Open { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// What is wrong with a JSON file: where, and of what kind, without a word of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonFault {
    pub line: usize,
    pub column: usize,
    pub kind: JsonFaultKind,
}

/// The kind of a JSON fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonFaultKind {
    /// It is not JSON.
    Syntax,
    /// It ends too early.
    Ended,
    /// It is JSON, but not of the wanted shape.
    Shape,
}

impl From<serde_json::Error> for JsonFault {
    fn from(error: serde_json::Error) -> Self {
        use serde_json::error::Category;
        let kind = match error.classify() {
            Category::Eof => JsonFaultKind::Ended,
            Category::Data => JsonFaultKind::Shape,
            Category::Syntax | Category::Io => JsonFaultKind::Syntax,
        };
        Self { line: error.line(), column: error.column(), kind }
    }
}

impl fmt::Display for JsonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            JsonFaultKind::Syntax => "not valid JSON",
            JsonFaultKind::Ended => "the JSON ends too early",
            JsonFaultKind::Shape => "the JSON is not of the form that is read here",
        };
        write!(f, "{what} (line {}, column {})", self.line, self.column)
    }
}

impl std::error::Error for JsonFault {}

/// What is wrong with the index of a sharded safetensors model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexFault {
    #[error("it names the shard `{}`, which is not a file name in its own folder", shown(.shard))]
    Outside { shard: String },
    #[error("it names the shard `{}`, which is missing", shown(.shard))]
    MissingShard { shard: String },
    #[error("it puts tensor `{}` into `{}`, which does not hold it", shown(.tensor), shown(.shard))]
    MissingTensor { tensor: String, shard: String },
    #[error("it puts tensor `{}` into two shards", shown(.tensor))]
    Twice { tensor: String },
    #[error("it names {count} shards, the limit is {limit}")]
    TooManyShards { count: usize, limit: usize },
    #[error("it names no tensors")]
    Empty,
}
