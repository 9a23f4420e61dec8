//! Writes the directory of a GGUF file: version 3, as other programs read it.

use std::io::{self, Write};

use super::ALIGNMENT_DEFAULT;
use crate::{Array, DType, Value};

/// A tensor that a file in the making will hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTensor {
    pub name: String,
    /// A type that GGUF has a number for.
    pub dtype: DType,
    /// Row-major, outermost first, whole blocks in a row.
    pub shape: Vec<usize>,
}

impl NewTensor {
    /// How many bytes it takes. The shape is of whole blocks, and its size fits.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let elements = self.shape.iter().product();
        self.dtype.bytes_of(elements).expect("a tensor to be written is of whole blocks")
    }
}

/// Writes everything up to the first tensor's bytes and returns the alignment: after this come
/// the tensors in order, each followed by zeros up to a multiple of it.
pub fn write_directory(
    out: &mut impl Write,
    metadata: &[(String, Value)],
    tensors: &[NewTensor],
) -> io::Result<usize> {
    let alignment = alignment(metadata);
    let mut head = b"GGUF".to_vec();
    head.extend(3_u32.to_le_bytes());
    put_len(&mut head, tensors.len());
    put_len(&mut head, metadata.len());
    for (key, value) in metadata {
        put_text(&mut head, key);
        head.extend(value_number(value).to_le_bytes());
        put_value(&mut head, value);
    }
    let mut offset = 0_usize;
    for tensor in tensors {
        put_text(&mut head, &tensor.name);
        let count = u32::try_from(tensor.shape.len()).expect("at most eight dimensions");
        head.extend(count.to_le_bytes());
        tensor.shape.iter().rev().for_each(|&size| put_len(&mut head, size));
        let number = tensor.dtype.to_ggml().expect("a tensor to be written is of a GGUF type");
        head.extend(number.to_le_bytes());
        put_len(&mut head, offset);
        offset += tensor.bytes().next_multiple_of(alignment);
    }
    head.resize(head.len().next_multiple_of(alignment), 0);
    out.write_all(&head)?;
    Ok(alignment)
}

fn alignment(metadata: &[(String, Value)]) -> usize {
    let stated = metadata.iter().find(|(key, _)| key == "general.alignment");
    let alignment = match stated {
        Some((_, Value::U32(alignment))) => *alignment,
        _ => ALIGNMENT_DEFAULT,
    };
    usize::try_from(alignment).expect("a u32 is a length")
}

fn put_len(head: &mut Vec<u8>, len: usize) {
    head.extend((len as u64).to_le_bytes());
}

fn put_text(head: &mut Vec<u8>, text: &str) {
    put_len(head, text.len());
    head.extend(text.as_bytes());
}

/// The format's number for a value's type.
fn value_number(value: &Value) -> u32 {
    match value {
        Value::U8(_) => 0,
        Value::I8(_) => 1,
        Value::U16(_) => 2,
        Value::I16(_) => 3,
        Value::U32(_) => 4,
        Value::I32(_) => 5,
        Value::F32(_) => 6,
        Value::Bool(_) => 7,
        Value::String(_) => 8,
        Value::Array(_) => 9,
        Value::U64(_) => 10,
        Value::I64(_) => 11,
        Value::F64(_) => 12,
    }
}

fn put_value(head: &mut Vec<u8>, value: &Value) {
    match value {
        Value::U8(number) => head.extend(number.to_le_bytes()),
        Value::I8(number) => head.extend(number.to_le_bytes()),
        Value::U16(number) => head.extend(number.to_le_bytes()),
        Value::I16(number) => head.extend(number.to_le_bytes()),
        Value::U32(number) => head.extend(number.to_le_bytes()),
        Value::I32(number) => head.extend(number.to_le_bytes()),
        Value::U64(number) => head.extend(number.to_le_bytes()),
        Value::I64(number) => head.extend(number.to_le_bytes()),
        Value::F32(number) => head.extend(number.to_le_bytes()),
        Value::F64(number) => head.extend(number.to_le_bytes()),
        Value::Bool(truth) => head.push(u8::from(*truth)),
        Value::String(text) => put_text(head, text),
        Value::Array(array) => put_array(head, array),
    }
}

fn put_array(head: &mut Vec<u8>, array: &Array) {
    let number: u32 = match array {
        Array::U8(_) => 0,
        Array::I8(_) => 1,
        Array::U16(_) => 2,
        Array::I16(_) => 3,
        Array::U32(_) => 4,
        Array::I32(_) => 5,
        Array::F32(_) => 6,
        Array::Bool(_) => 7,
        Array::Strings(_) => 8,
        Array::U64(_) => 10,
        Array::I64(_) => 11,
        Array::F64(_) => 12,
    };
    head.extend(number.to_le_bytes());
    put_len(head, array.len());
    match array {
        Array::U8(list) => head.extend(list),
        Array::I8(list) => list.iter().for_each(|n| head.extend(n.to_le_bytes())),
        Array::U16(list) => list.iter().for_each(|n| head.extend(n.to_le_bytes())),
        Array::I16(list) => list.iter().for_each(|n| head.extend(n.to_le_bytes())),
        Array::U32(list) => list.iter().for_each(|n| head.extend(n.to_le_bytes())),
        Array::I32(list) => list.iter().for_each(|n| head.extend(n.to_le_bytes())),
        Array::U64(list) => list.iter().for_each(|n| head.extend(n.to_le_bytes())),
        Array::I64(list) => list.iter().for_each(|n| head.extend(n.to_le_bytes())),
        Array::F32(list) => list.iter().for_each(|n| head.extend(n.to_le_bytes())),
        Array::F64(list) => list.iter().for_each(|n| head.extend(n.to_le_bytes())),
        Array::Bool(list) => head.extend(list.iter().map(|&truth| u8::from(truth))),
        Array::Strings(list) => list.iter().for_each(|text| put_text(head, text)),
    }
}

#[cfg(test)]
mod tests;
