//! The values that a GGUF file's metadata may hold.

use std::fmt;
use std::sync::OnceLock;

/// One value of a GGUF file's metadata.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F32(f32),
    F64(f64),
    Bool(bool),
    String(String),
    Array(Array),
}

/// A list of values of one type.
#[derive(Debug, Clone, PartialEq)]
pub enum Array {
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bool(Vec<bool>),
    Strings(Box<Strings>),
}

/// A list of strings, kept as one text and the places where each ends, so that reading a file
/// never takes more memory than the file does.
#[derive(Debug, Clone, Default)]
pub struct Strings {
    text: String,
    ends: Vec<usize>,
    /// The same as separate strings, once someone asked for them.
    separate: OnceLock<Vec<String>>,
}

impl Strings {
    /// Room for `count` strings of `bytes` bytes together.
    pub(crate) fn with_capacity(count: usize, bytes: usize) -> Self {
        let (text, ends) = (String::with_capacity(bytes), Vec::with_capacity(count));
        Self { text, ends, separate: OnceLock::new() }
    }

    pub(crate) fn push(&mut self, string: &str) {
        self.text.push_str(string);
        self.ends.push(self.text.len());
    }

    /// How many strings there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.ends.iter().enumerate().map(|(index, &end)| {
            let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
            &self.text[start..end]
        })
    }

    /// The same as separate strings, made at the first call.
    pub(crate) fn as_slice(&self) -> &[String] {
        self.separate.get_or_init(|| self.iter().map(str::to_owned).collect())
    }
}

impl<'a> FromIterator<&'a str> for Strings {
    fn from_iter<T: IntoIterator<Item = &'a str>>(strings: T) -> Self {
        let mut list = Self::default();
        strings.into_iter().for_each(|string| list.push(string));
        list
    }
}

impl PartialEq for Strings {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.ends == other.ends
    }
}

impl Array {
    /// How many elements there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::U8(list) => list.len(),
            Self::I8(list) => list.len(),
            Self::U16(list) => list.len(),
            Self::I16(list) => list.len(),
            Self::U32(list) => list.len(),
            Self::I32(list) => list.len(),
            Self::U64(list) => list.len(),
            Self::I64(list) => list.len(),
            Self::F32(list) => list.len(),
            Self::F64(list) => list.len(),
            Self::Bool(list) => list.len(),
            Self::Strings(list) => list.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at `index` as a value of its own.
    #[must_use]
    pub fn element(&self, index: usize) -> Option<Value> {
        Some(match self {
            Self::U8(list) => Value::U8(*list.get(index)?),
            Self::I8(list) => Value::I8(*list.get(index)?),
            Self::U16(list) => Value::U16(*list.get(index)?),
            Self::I16(list) => Value::I16(*list.get(index)?),
            Self::U32(list) => Value::U32(*list.get(index)?),
            Self::I32(list) => Value::I32(*list.get(index)?),
            Self::U64(list) => Value::U64(*list.get(index)?),
            Self::I64(list) => Value::I64(*list.get(index)?),
            Self::F32(list) => Value::F32(*list.get(index)?),
            Self::F64(list) => Value::F64(*list.get(index)?),
            Self::Bool(list) => Value::Bool(*list.get(index)?),
            Self::Strings(list) => Value::String(list.iter().nth(index)?.to_owned()),
        })
    }

    fn element_type(&self) -> &'static str {
        match self {
            Self::U8(_) => "u8",
            Self::I8(_) => "i8",
            Self::U16(_) => "u16",
            Self::I16(_) => "i16",
            Self::U32(_) => "u32",
            Self::I32(_) => "i32",
            Self::U64(_) => "u64",
            Self::I64(_) => "i64",
            Self::F32(_) => "f32",
            Self::F64(_) => "f64",
            Self::Bool(_) => "bool",
            Self::Strings(_) => "string",
        }
    }
}

/// The type of a value, for sentences: `u32`, or `array of u32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueType {
    pub element: &'static str,
    pub is_array: bool,
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_array { "array of " } else { "" })?;
        f.write_str(self.element)
    }
}

impl Value {
    /// The value's type.
    #[must_use]
    pub fn value_type(&self) -> ValueType {
        let element = match self {
            Self::U8(_) => "u8",
            Self::I8(_) => "i8",
            Self::U16(_) => "u16",
            Self::I16(_) => "i16",
            Self::U32(_) => "u32",
            Self::I32(_) => "i32",
            Self::U64(_) => "u64",
            Self::I64(_) => "i64",
            Self::F32(_) => "f32",
            Self::F64(_) => "f64",
            Self::Bool(_) => "bool",
            Self::String(_) => "string",
            Self::Array(array) => {
                return ValueType { element: array.element_type(), is_array: true };
            }
        };
        ValueType { element, is_array: false }
    }

    /// The value as an integer, whatever the width it was stored in.
    #[must_use]
    pub fn as_integer(&self) -> Option<i128> {
        Some(match *self {
            Self::U8(n) => n.into(),
            Self::I8(n) => n.into(),
            Self::U16(n) => n.into(),
            Self::I16(n) => n.into(),
            Self::U32(n) => n.into(),
            Self::I32(n) => n.into(),
            Self::U64(n) => n.into(),
            Self::I64(n) => n.into(),
            _ => return None,
        })
    }
}
