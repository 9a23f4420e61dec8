//! What can be wrong with a GGUF file, one sentence each.

use std::fmt;

use crate::layout::shown;
use crate::{Look, SplitFault, TensorFault};

/// Why a file is not read as GGUF.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GgufFault {
    #[error("not a GGUF file: {look}")]
    NotGguf { look: Look },
    #[error("wrong byte order: it is a big-endian GGUF file, only little-endian ones are read")]
    ByteOrder,
    #[error("GGUF version {version} is not read, only versions 2 and 3 are")]
    Version { version: u32 },
    #[error(
        "the file is cut short: it ends at byte {file_bytes}, inside {place}, \
         which needs {needed} bytes from byte {at}"
    )]
    Truncated { place: Place, at: usize, needed: u64, file_bytes: usize },
    #[error(
        "the file is cut short or damaged: it declares {count} {what}, \
         and its {file_bytes} bytes have room for {room} at most"
    )]
    NoRoom { what: Counted, count: u64, room: usize, file_bytes: usize },
    #[error("{count} {what} are declared, the limit is {limit}")]
    TooMany { what: Counted, count: u64, limit: u64 },
    #[error("{place} is not UTF-8 text")]
    NotText { place: Place },
    #[error("metadata key `{}` stands twice", shown(.key))]
    DuplicateKey { key: String },
    #[error("metadata key `{}` {what}", shown(.key))]
    Value { key: String, what: ValueFault },
    #[error("`general.alignment` is {alignment}, it must be a power of two")]
    Alignment { alignment: u32 },
    #[error(transparent)]
    Split(#[from] SplitFault),
    #[error(transparent)]
    Tensor(#[from] TensorFault),
}

/// What is wrong with one metadata value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ValueFault {
    #[error("has the value type {id}, which is none of the 13 known types")]
    UnknownType { id: u32 },
    #[error("is an array of arrays, which is not read")]
    NestedArray,
    #[error("holds the byte {byte} as a truth value, only 0 and 1 are")]
    NotBool { byte: u8 },
    #[error("has the type {found}, wanted u32")]
    NotU32 { found: crate::ValueType },
}

/// A thing that a file declares a number of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    Keys,
    Tensors,
    NameBytes,
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Keys => "metadata keys",
            Self::Tensors => "tensors",
            Self::NameBytes => "bytes of a name",
        })
    }
}

/// A part of a GGUF file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Header,
    /// The metadata key of this number, counted from 1.
    Key(u64),
    /// The value of the named key.
    Value(String),
    /// The tensor entry of this number, counted from 1.
    Tensor(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => f.write_str("the header"),
            Self::Key(number) => write!(f, "metadata key {number}"),
            Self::Value(key) => write!(f, "the value of `{}`", shown(key)),
            Self::Tensor(number) => write!(f, "tensor entry {number}"),
        }
    }
}
