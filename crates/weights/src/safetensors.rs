//! The header of a safetensors file: which tensor lies where.
//!
//! ```text
//! header length n as u64 | n bytes of JSON | tensor bytes
//! {"__metadata__": {…}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …}
//! ```
//! The length is little-endian, offsets count from the end of the header, shapes are row-major.

mod json;

pub(crate) use json::weight_map;

use crate::error::JsonFault;
use crate::layout::{TENSORS_MAX, TensorEntry, TensorFaultKind, check_together, tensor_bytes};
use crate::{DType, Look, TensorFault};
use json::Listed;

/// Longest header; the format's own limit.
const HEADER_BYTES_MAX: u64 = 100_000_000;
/// Most dimensions of a tensor; no published model has more than 5.
const DIMENSIONS_MAX: usize = 8;

/// Why a file is not read as safetensors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SafetensorsFault {
    #[error("not a safetensors file: {look}")]
    NotSafetensors { look: Look },
    #[error("its header is {header_bytes} bytes long, the limit is {limit}")]
    HeaderTooLong { header_bytes: u64, limit: u64 },
    #[error(
        "the file is cut short: it ends at byte {file_bytes}, inside its header of \
         {header_bytes} bytes"
    )]
    Truncated { header_bytes: u64, file_bytes: usize },
    #[error("in its header, {fault}")]
    Header { fault: JsonFault },
    #[error("it holds {count} tensors, the limit is {limit}")]
    TooMany { count: usize, limit: usize },
    #[error(transparent)]
    Tensor(#[from] TensorFault),
}

/// All that a safetensors file says before its tensors' bytes; every entry lies inside the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    /// In the header's order; offsets count from the start of the file.
    pub tensors: Vec<TensorEntry>,
    pub(crate) by_name: Vec<usize>,
}

impl Header {
    /// Reads the header at the start of `file`, the bytes of a whole file, and checks that every
    /// tensor it lists lies inside them, apart from all others.
    pub fn parse(file: &[u8]) -> Result<Self, SafetensorsFault> {
        let Some((length, rest)) = file.split_first_chunk::<8>() else {
            return Err(SafetensorsFault::NotSafetensors { look: Look::at(file) });
        };
        let header_bytes = u64::from_le_bytes(*length);
        if header_bytes > HEADER_BYTES_MAX {
            let look = Look::at(file);
            return Err(match look {
                Look::Unknown(_) => {
                    SafetensorsFault::HeaderTooLong { header_bytes, limit: HEADER_BYTES_MAX }
                }
                look => SafetensorsFault::NotSafetensors { look },
            });
        }
        let end = usize::try_from(header_bytes).ok().filter(|&end| end <= rest.len());
        let Some(end) = end else {
            return Err(SafetensorsFault::Truncated { header_bytes, file_bytes: file.len() });
        };
        let listed = json::tensors(&rest[..end])
            .map_err(|error| SafetensorsFault::Header { fault: error.into() })?;
        if listed.len() > TENSORS_MAX {
            return Err(SafetensorsFault::TooMany { count: listed.len(), limit: TENSORS_MAX });
        }
        let mut tensors = Vec::with_capacity(listed.len());
        for (name, entry) in listed {
            match place(&entry, length.len() + end, file.len()) {
                Ok(placed) => tensors.push(TensorEntry { name, ..placed }),
                Err(fault) => return Err(fault.of(&name).into()),
            }
        }
        let by_name = check_together(&tensors)?;
        Ok(Self { tensors, by_name })
    }
}

/// The entry without its name, if what it declares is consistent and lies inside the file.
fn place(
    listed: &Listed,
    tensors_start: usize,
    file_bytes: usize,
) -> Result<TensorEntry, TensorFaultKind> {
    let Listed { dtype, shape: declared, dimensions, offsets: [start, end] } = listed;
    let dtype = DType::from_safetensors(dtype)
        .ok_or_else(|| TensorFaultKind::UnknownTypeName { name: dtype.clone() })?;
    if *dimensions > DIMENSIONS_MAX {
        let (count, least, most) = (*dimensions, 0, DIMENSIONS_MAX);
        return Err(TensorFaultKind::Dimensions { count, least, most });
    }
    let shape: Result<Vec<usize>, _> = declared.iter().map(|&size| usize::try_from(size)).collect();
    let shape = shape.map_err(|_| TensorFaultKind::TooLarge { shape: declared.clone() })?;
    let needed = tensor_bytes(dtype, &shape)?;
    let end_in_file = tensors_start as u128 + u128::from(*end);
    if end_in_file > file_bytes as u128 {
        return Err(TensorFaultKind::Outside { end: end_in_file, file_bytes });
    }
    let inside = "an offset before the end of the file fits";
    let (start, end) = (usize::try_from(*start), usize::try_from(*end).expect(inside));
    match start.ok().and_then(|start| Some((start, end.checked_sub(start)?))) {
        Some((start, bytes)) if bytes == needed => {
            let offset = tensors_start + start;
            Ok(TensorEntry { name: String::new(), dtype, shape, offset, bytes, shard: 0 })
        }
        Some((_, declared)) => Err(TensorFaultKind::Length { needed, declared }),
        None => Err(TensorFaultKind::Length { needed, declared: 0 }),
    }
}
