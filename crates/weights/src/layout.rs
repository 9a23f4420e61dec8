//! Where tensors lie in a file, and the checks that hold for every format.

use std::borrow::Cow;

use crate::DType;

/// Most tensors one file may declare; the largest published models have a few thousand.
pub(crate) const TENSORS_MAX: usize = 65_536;

/// One tensor as the file's directory lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorEntry {
    pub name: String,
    pub dtype: DType,
    /// Row-major, outermost first: a 2-D weight is (outputs, inputs).
    pub shape: Vec<usize>,
    /// Where its bytes start in its file.
    pub offset: usize,
    /// How many bytes it takes.
    pub bytes: usize,
    /// Which of the model's files holds it, from 0.
    pub shard: usize,
}

/// A tensor that cannot be what its entry says, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tensor `{}` {what}", shown(.name))]
pub struct TensorFault {
    pub name: String,
    pub what: TensorFaultKind,
}

/// What is wrong with one tensor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TensorFaultKind {
    #[error("is listed twice")]
    Duplicate,
    #[error("has {count} dimensions, the limits are {least} and {most}")]
    Dimensions { count: usize, least: usize, most: usize },
    #[error("has a dimension of 0")]
    ZeroDimension,
    #[error("has the shape {shape:?}, whose size in bytes does not fit in 64 bits")]
    TooLarge { shape: Vec<u64> },
    #[error("has the type {id}, which is none of the known types")]
    UnknownType { id: u32 },
    #[error("has the type `{}`, which is none of the known types", shown(.name))]
    UnknownTypeName { name: String },
    #[error("has rows of {columns} elements, not a multiple of the {block_len} of a {dtype} block")]
    RaggedRow { columns: usize, block_len: usize, dtype: DType },
    #[error("takes {needed} bytes by its shape and type, {declared} by its offsets")]
    Length { needed: usize, declared: usize },
    #[error("starts at {offset}, which is not a multiple of the alignment {alignment}")]
    Misaligned { offset: u64, alignment: u64 },
    #[error("lies outside the file: it ends at byte {end} of {file_bytes}")]
    Outside { end: u128, file_bytes: usize },
    #[error("overlaps tensor `{}`", shown(.other))]
    Overlaps { other: String },
}

impl TensorFaultKind {
    pub(crate) fn of(self, name: &str) -> TensorFault {
        TensorFault { name: name.to_owned(), what: self }
    }
}

/// Bytes of a tensor of this shape (row-major), all products checked.
pub(crate) fn tensor_bytes(dtype: DType, shape: &[usize]) -> Result<usize, TensorFaultKind> {
    let columns = shape.last().copied().unwrap_or(1);
    let block_len = dtype.block_len();
    if !columns.is_multiple_of(block_len) {
        return Err(TensorFaultKind::RaggedRow { columns, block_len, dtype });
    }
    let elements = shape.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
    // Also the bits must fit, so that no later product of elements and bytes can wrap.
    let bytes = elements.and_then(|n| n.checked_mul(8).and(dtype.bytes_of(n)));
    bytes.filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or_else(|| TensorFaultKind::TooLarge {
        shape: shape.iter().map(|&size| size as u64).collect(),
    })
}

/// Refuses two tensors of one name or on the same bytes; returns the entries' order by name.
pub(crate) fn check_together(entries: &[TensorEntry]) -> Result<Vec<usize>, TensorFault> {
    let by_name = sorted_by_name(entries.iter().map(|entry| entry.name.as_str()));
    for pair in by_name.windows(2) {
        let name = &entries[pair[0]].name;
        if *name == entries[pair[1]].name {
            return Err(TensorFaultKind::Duplicate.of(name));
        }
    }
    let mut by_offset: Vec<&TensorEntry> = entries.iter().filter(|e| e.bytes > 0).collect();
    by_offset.sort_unstable_by_key(|entry| (entry.shard, entry.offset));
    for pair in by_offset.windows(2) {
        let (before, after) = (pair[0], pair[1]);
        if before.shard == after.shard && before.offset + before.bytes > after.offset {
            let other = before.name.clone();
            return Err(TensorFaultKind::Overlaps { other }.of(&after.name));
        }
    }
    Ok(by_name)
}

/// The indices of `names` in the order of the names.
pub(crate) fn sorted_by_name<'a>(names: impl Iterator<Item = &'a str>) -> Vec<usize> {
    let mut names: Vec<(&str, usize)> = names.enumerate().map(|(i, name)| (name, i)).collect();
    names.sort_unstable();
    names.into_iter().map(|(_, index)| index).collect()
}

/// A name from a file as a sentence can carry it: one line, no control characters, not too long.
#[must_use]
pub fn shown(name: &str) -> Cow<'_, str> {
    const CHARS_MAX: usize = 80;
    let is_long = name.chars().nth(CHARS_MAX).is_some();
    if !is_long && !name.chars().any(char::is_control) {
        return Cow::Borrowed(name);
    }
    let mut text: String = name.chars().take(CHARS_MAX).flat_map(char::escape_debug).collect();
    if is_long {
        text.push('…');
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests;
