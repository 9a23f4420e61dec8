//! What is written is read again, value by value.

use super::{NewTensor, write_directory};
use crate::gguf::Directory;
use crate::{Array, DType, Strings, Value};

fn entry(key: &str, value: Value) -> (String, Value) {
    (key.to_owned(), value)
}

#[test]
fn a_directory_is_read_as_it_was_written() {
    let mut strings = Strings::with_capacity(2, 3);
    strings.push("a");
    strings.push("ä");
    let metadata = vec![
        entry("general.alignment", Value::U32(64)),
        entry("a", Value::U8(1)),
        entry("b", Value::I8(-1)),
        entry("c", Value::U16(2)),
        entry("d", Value::I16(-2)),
        entry("e", Value::I32(-3)),
        entry("f", Value::F32(0.5)),
        entry("g", Value::Bool(true)),
        entry("h", Value::String("text".to_owned())),
        entry("i", Value::U64(1 << 40)),
        entry("j", Value::I64(-1 << 40)),
        entry("k", Value::F64(0.1)),
        entry("l", Value::Array(Array::Strings(Box::new(strings)))),
        entry("m", Value::Array(Array::F32(vec![1.0, -2.0]))),
        entry("n", Value::Array(Array::I32(vec![7, -7]))),
        entry("o", Value::Array(Array::Bool(vec![true, false]))),
        entry("p", Value::Array(Array::U8(Vec::new()))),
    ];
    let tensors = vec![
        NewTensor { name: "one".to_owned(), dtype: DType::Q4_0, shape: vec![3, 64] },
        NewTensor { name: "two".to_owned(), dtype: DType::F32, shape: vec![5] },
    ];
    let mut file = Vec::new();
    let alignment = write_directory(&mut file, &metadata, &tensors).unwrap();
    assert_eq!((alignment, file.len() % 64), (64, 0));
    let start = file.len();
    file.resize(start + 128 + 64, 0);
    let read = Directory::parse(&file).unwrap();
    let pairs: Vec<(String, Value)> =
        read.metadata.iter().map(|(key, value)| (key.to_owned(), value.clone())).collect();
    assert_eq!(pairs, metadata);
    let places: Vec<(&str, DType, &[usize], usize)> = read
        .tensors
        .iter()
        .map(|t| (t.name.as_str(), t.dtype, t.shape.as_slice(), t.offset - start))
        .collect();
    assert_eq!(places, [("one", DType::Q4_0, &[3, 64][..], 0), ("two", DType::F32, &[5][..], 128)]);
}
