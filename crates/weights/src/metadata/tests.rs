//! Every getter with every type: the value, nothing, or one sentence.

use super::Metadata;
use crate::WeightsError;
use crate::value::{Array, Strings, Value};

fn metadata() -> Metadata {
    let mut words = Strings::with_capacity(3, 6);
    ["ab", "", "wörd"].iter().for_each(|word| words.push(word));
    let entries = [
        ("u8", Value::U8(255)),
        ("i8", Value::I8(-1)),
        ("u16", Value::U16(65_535)),
        ("i16", Value::I16(-2)),
        ("u32", Value::U32(u32::MAX)),
        ("i32", Value::I32(-3)),
        ("u64", Value::U64(u64::MAX)),
        ("i64", Value::I64(7)),
        ("f32", Value::F32(0.5)),
        ("f64", Value::F64(0.1)),
        ("bool", Value::Bool(true)),
        ("string", Value::String("word".to_owned())),
        ("strings", Value::Array(Array::Strings(Box::new(words)))),
        ("f32s", Value::Array(Array::F32(vec![1.0, -2.5]))),
        ("i32s", Value::Array(Array::I32(vec![1, 2]))),
        ("u32s", Value::Array(Array::U32(vec![3, 4]))),
        ("u8s", Value::Array(Array::U8(vec![5, 6]))),
        ("negative", Value::Array(Array::I64(vec![5, -6]))),
        ("bools", Value::Array(Array::Bool(vec![true]))),
    ];
    let entries = entries.map(|(key, value)| (key.to_owned(), value)).to_vec();
    Metadata::from_entries(entries).unwrap()
}

/// A getter's answer as text.
fn said<T: std::fmt::Debug>(answer: Result<Option<T>, WeightsError>) -> String {
    match answer {
        Ok(None) => "none".to_owned(),
        Ok(Some(value)) => format!("{value:?}"),
        Err(error) => error.to_string(),
    }
}

/// What the getter says of each key.
fn check(getter: fn(&Metadata, &str) -> String, cases: &[(&str, &str)]) {
    let metadata = metadata();
    for (key, want) in cases {
        assert_eq!(getter(&metadata, key), *want, "{key}");
    }
}

#[test]
fn integers_of_any_width_are_read_where_they_fit() {
    check(
        |metadata, key| said(metadata.u32(key)),
        &[
            ("absent", "none"),
            ("u8", "255"),
            ("u16", "65535"),
            ("u32", "4294967295"),
            ("i64", "7"),
            ("i8", "metadata key `i8` must be 0 to 4294967295, the file has -1"),
            (
                "u64",
                "metadata key `u64` must be 0 to 4294967295, the file has 18446744073709551615",
            ),
            ("f32", "metadata key `f32` must be an integer, the file has f32"),
            ("bool", "metadata key `bool` must be an integer, the file has bool"),
            ("u32s", "metadata key `u32s` must be an integer, the file has array of u32"),
        ],
    );
    check(
        |metadata, key| said(metadata.u64(key)),
        &[
            ("u64", "18446744073709551615"),
            ("i16", "metadata key `i16` must be 0 to 18446744073709551615, the file has -2"),
        ],
    );
}

#[test]
fn floats_truths_and_strings_are_read_by_their_type() {
    check(
        |metadata, key| said(metadata.f32(key)),
        &[
            ("f32", "0.5"),
            ("f64", "0.1"),
            ("absent", "none"),
            ("u32", "metadata key `u32` must be f32, the file has u32"),
        ],
    );
    check(
        |metadata, key| said(metadata.bool(key)),
        &[("bool", "true"), ("u8", "metadata key `u8` must be bool, the file has u8")],
    );
    check(
        |metadata, key| said(metadata.string(key)),
        &[
            ("string", "\"word\""),
            ("strings", "metadata key `strings` must be string, the file has array of string"),
        ],
    );
}

#[test]
fn lists_are_read_by_their_element_type() {
    check(
        |metadata, key| said(metadata.strings(key)),
        &[
            ("strings", "[\"ab\", \"\", \"wörd\"]"),
            ("absent", "none"),
            ("u8s", "metadata key `u8s` must be array of string, the file has array of u8"),
            ("string", "metadata key `string` must be array of string, the file has string"),
        ],
    );
    check(
        |metadata, key| said(metadata.f32s(key)),
        &[
            ("f32s", "[1.0, -2.5]"),
            ("u8s", "metadata key `u8s` must be array of f32, the file has array of u8"),
        ],
    );
    check(
        |metadata, key| said(metadata.i32s(key)),
        &[
            ("i32s", "[1, 2]"),
            ("u8s", "metadata key `u8s` must be array of i32, the file has array of u8"),
            ("u32s", "metadata key `u32s` must be array of i32, the file has array of u32"),
        ],
    );
    check(
        |metadata, key| said(metadata.u32s(key)),
        &[
            ("u32s", "[3, 4]"),
            ("i32s", "[1, 2]"),
            ("u8s", "[5, 6]"),
            ("negative", "metadata key `negative` must be 0 to 4294967295, the file has -6"),
            ("f32s", "metadata key `f32s` must be array of integers, the file has array of f32"),
            ("bools", "metadata key `bools` must be array of integers, the file has array of bool"),
            ("u32", "metadata key `u32` must be array of integers, the file has u32"),
        ],
    );
}

#[test]
fn pairs_keep_the_order_of_the_file() {
    let metadata = metadata();
    let keys: Vec<&str> = metadata.iter().map(|(key, _)| key).collect();
    assert_eq!((keys[0], keys[18], keys.len()), ("u8", "bools", metadata.len()));
    assert!(!metadata.is_empty() && Metadata::default().is_empty());
}

#[test]
fn a_key_that_stands_twice_is_the_error() {
    let twice = ["b", "a", "b"].map(|key| (key.to_owned(), Value::U8(0))).to_vec();
    assert_eq!(Metadata::from_entries(twice), Err("b".to_owned()));
}
