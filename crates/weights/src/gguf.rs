//! The directory of a GGUF file: its metadata, and which tensor lies where.
//!
//! ```text
//! "GGUF"  version u32  tensor count u64  key count u64
//! key count    × { key string, type u32, value }
//! tensor count × { name string, dimension count u32, dimensions u64 …, type u32, offset u64 }
//! padding up to a multiple of `general.alignment` (32 where absent)
//! tensor bytes, each tensor at its offset from here, a multiple of the alignment
//! ```
//! All numbers are little-endian; a string is its length as u64, then UTF-8. An array is its
//! element type u32, its length u64, and the elements. Versions 2 and 3 differ in name only.

mod fault;
mod reader;
mod source;
mod write;

pub use fault::{Counted, GgufFault, Place, ValueFault};
pub use source::Source;
pub use write::{NewTensor, write_directory};

use crate::layout::{TENSORS_MAX, TensorEntry, TensorFaultKind, check_together, tensor_bytes};
use crate::{DType, Look, Metadata, Value};
use reader::Reader;

/// Most metadata keys, and most tensors, a file may declare; published files have a few dozen of
/// the one and a few thousand of the other.
const ENTRIES_MAX: usize = TENSORS_MAX;
/// Dimensions a tensor may have in the format.
const DIMENSIONS_MAX: usize = 4;
/// Fewest bytes a key can take: an empty name, a type, a value of one byte.
const KEY_BYTES_MIN: usize = 8 + 4 + 1;
/// Fewest bytes a tensor's entry can take: an empty name and one dimension.
const TENSOR_BYTES_MIN: usize = 8 + 4 + 8 + 4 + 8;
/// The alignment of files that state none.
const ALIGNMENT_DEFAULT: u32 = 32;

/// All that a GGUF file says before its tensors' bytes; every entry lies inside the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Directory {
    /// 2 or 3.
    pub version: u32,
    pub metadata: Metadata,
    /// In the file's order; offsets count from the start of the file.
    pub tensors: Vec<TensorEntry>,
    /// Tensor bytes start at multiples of this.
    pub alignment: u32,
    pub(crate) by_name: Vec<usize>,
}

impl Directory {
    /// Reads the directory at the start of `file`, the bytes of a whole file, and checks that
    /// every tensor it lists lies inside them, apart from all others. A part of a split model is
    /// read as the file that it is.
    ///
    /// No allocation is larger than the file or, for the lists of keys and of tensors, than their
    /// limit of 65,536 entries.
    pub fn parse(file: &[u8]) -> Result<Self, GgufFault> {
        let mut reader = Reader::new(file);
        let version = read_version(file, &mut reader)?;
        let tensor_count = reader.number::<u64>(|| Place::Header)?;
        let key_count = reader.number::<u64>(|| Place::Header)?;
        let key_count = bounded(Counted::Keys, key_count, KEY_BYTES_MIN, &reader)?;
        let tensor_count = bounded(Counted::Tensors, tensor_count, TENSOR_BYTES_MIN, &reader)?;
        let metadata = read_metadata(&mut reader, key_count)?;
        let alignment = read_alignment(&metadata)?;
        let mut listed = Vec::with_capacity(tensor_count);
        for number in 1..=tensor_count as u64 {
            listed.push(read_tensor(&mut reader, number)?);
        }
        let tensors_start = (reader.at as u64).next_multiple_of(alignment.into());
        let mut tensors = Vec::with_capacity(tensor_count);
        for (mut entry, offset) in listed {
            let name = entry.name.as_str();
            entry.offset = place(&entry, offset, tensors_start, alignment, file.len())
                .map_err(|fault| fault.of(name))?;
            tensors.push(entry);
        }
        let by_name = check_together(&tensors)?;
        Ok(Self { version, metadata, tensors, alignment, by_name })
    }
}

fn read_version(file: &[u8], reader: &mut Reader<'_>) -> Result<u32, GgufFault> {
    match file.get(..4) {
        Some(b"GGUF") => {}
        Some(b"FUGG") => return Err(GgufFault::ByteOrder),
        _ => {
            return Err(GgufFault::NotGguf { look: Look::at(file) });
        }
    }
    reader.at = 4;
    match reader.number::<u32>(|| Place::Header)? {
        version @ (2 | 3) => Ok(version),
        // A small number whose bytes stand the other way round.
        version if version != 0 && version & 0xffff == 0 => Err(GgufFault::ByteOrder),
        version => Err(GgufFault::Version { version }),
    }
}

/// A declared count as a length, if it is within the limit and what is left of the file has room
/// for that many entries of at least `entry_bytes` each.
fn bounded(
    what: Counted,
    count: u64,
    entry_bytes: usize,
    reader: &Reader<'_>,
) -> Result<usize, GgufFault> {
    let (room, file_bytes) = (reader.left() / entry_bytes, reader.file_bytes());
    let limit = ENTRIES_MAX as u64;
    match usize::try_from(count) {
        Ok(fits) if fits <= room && count <= limit => Ok(fits),
        Ok(fits) if fits <= room => Err(GgufFault::TooMany { what, count, limit }),
        _ => Err(GgufFault::NoRoom { what, count, room, file_bytes }),
    }
}

fn read_metadata(reader: &mut Reader<'_>, key_count: usize) -> Result<Metadata, GgufFault> {
    let mut entries = Vec::with_capacity(key_count);
    for number in 1..=key_count as u64 {
        let key = reader.name(|| Place::Key(number))?;
        entries.push((key.to_owned(), reader.value(key)?));
    }
    Metadata::from_entries(entries).map_err(|key| GgufFault::DuplicateKey { key })
}

fn read_alignment(metadata: &Metadata) -> Result<u32, GgufFault> {
    let key = "general.alignment";
    match metadata.value(key) {
        None => Ok(ALIGNMENT_DEFAULT),
        Some(&Value::U32(alignment)) if alignment.is_power_of_two() => Ok(alignment),
        Some(&Value::U32(alignment)) => Err(GgufFault::Alignment { alignment }),
        Some(other) => {
            let what = ValueFault::NotU32 { found: other.value_type() };
            Err(GgufFault::Value { key: key.to_owned(), what })
        }
    }
}

/// One tensor's entry, and its offset from the start of the tensor bytes.
fn read_tensor(reader: &mut Reader<'_>, number: u64) -> Result<(TensorEntry, u64), GgufFault> {
    let here = || Place::Tensor(number);
    let name = reader.name(here)?;
    let fault = |kind: TensorFaultKind| GgufFault::from(kind.of(name));
    let count = reader.number::<u32>(here)? as usize;
    if !(1..=DIMENSIONS_MAX).contains(&count) {
        return Err(fault(TensorFaultKind::Dimensions { count, least: 1, most: DIMENSIONS_MAX }));
    }
    let mut declared = Vec::with_capacity(count);
    for _ in 0..count {
        declared.push(reader.number::<u64>(here)?);
    }
    // The file has the innermost dimension first.
    declared.reverse();
    let id = reader.number::<u32>(here)?;
    let offset = reader.number::<u64>(here)?;
    let dtype = DType::from_ggml(id).ok_or_else(|| fault(TensorFaultKind::UnknownType { id }))?;
    if declared.contains(&0) {
        return Err(fault(TensorFaultKind::ZeroDimension));
    }
    let shape: Result<Vec<usize>, _> = declared.iter().map(|&size| usize::try_from(size)).collect();
    let shape = shape.map_err(|_| fault(TensorFaultKind::TooLarge { shape: declared }))?;
    let bytes = tensor_bytes(dtype, &shape).map_err(fault)?;
    let entry = TensorEntry { name: name.to_owned(), dtype, shape, offset: 0, bytes, shard: 0 };
    Ok((entry, offset))
}

/// Where the entry's bytes start in the file, if all of them lie inside it.
fn place(
    entry: &TensorEntry,
    offset: u64,
    tensors_start: u64,
    alignment: u32,
    file_bytes: usize,
) -> Result<usize, TensorFaultKind> {
    let alignment = u64::from(alignment);
    if !offset.is_multiple_of(alignment) {
        return Err(TensorFaultKind::Misaligned { offset, alignment });
    }
    let start = u128::from(tensors_start) + u128::from(offset);
    let end = start + entry.bytes as u128;
    if end > file_bytes as u128 {
        return Err(TensorFaultKind::Outside { end, file_bytes });
    }
    Ok(usize::try_from(start).expect("the start lies inside the file"))
}
