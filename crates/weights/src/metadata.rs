//! The key-value pairs of a GGUF file, each read by the type its reader wants.

use std::borrow::Cow;

use crate::WeightsError;
use crate::layout::sorted_by_name;
use crate::value::{Array, Strings, Value};

/// The metadata of one file, in the file's order; empty for a Hugging Face folder.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metadata {
    entries: Vec<(String, Value)>,
    by_key: Vec<usize>,
}

impl Metadata {
    /// Takes the pairs of a file; the first key that stands twice is the error.
    pub(crate) fn from_entries(entries: Vec<(String, Value)>) -> Result<Self, String> {
        let by_key = sorted_by_name(entries.iter().map(|(key, _)| key.as_str()));
        for pair in by_key.windows(2) {
            if entries[pair[0]].0 == entries[pair[1]].0 {
                return Err(entries[pair[0]].0.clone());
            }
        }
        Ok(Self { entries, by_key })
    }

    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All pairs, in the file's order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The value of `key`, of whatever type.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&Value> {
        let place = self.by_key.binary_search_by(|&index| self.entries[index].0.as_str().cmp(key));
        place.ok().map(|place| &self.entries[self.by_key[place]].1)
    }

    /// The string at `key`; `None` where the key is absent, here and below.
    pub fn string(&self, key: &str) -> Result<Option<&str>, WeightsError> {
        self.read(key, "string", |value| match value {
            Value::String(string) => Some(string.as_str()),
            _ => None,
        })
    }

    /// The integer at `key`, stored in any integer type, if it fits in 32 bits unsigned.
    pub fn u32(&self, key: &str) -> Result<Option<u32>, WeightsError> {
        let found = self.read(key, "an integer", Value::as_integer)?;
        found.map(|n| in_u32(key, n)).transpose()
    }

    /// The integer at `key`, stored in any integer type, if it fits in 64 bits unsigned.
    pub fn u64(&self, key: &str) -> Result<Option<u64>, WeightsError> {
        let found = self.read(key, "an integer", Value::as_integer)?;
        let in_u64 = |value: i128| {
            let wanted = "0 to 18446744073709551615";
            u64::try_from(value).map_err(|_| WeightsError::key_range(key, wanted, value))
        };
        found.map(in_u64).transpose()
    }

    /// The number at `key`, stored as `f32`, or as `f64` and rounded once.
    pub fn f32(&self, key: &str) -> Result<Option<f32>, WeightsError> {
        #[expect(clippy::cast_possible_truncation, reason = "rounding is the point")]
        self.read(key, "f32", |value| match *value {
            Value::F32(number) => Some(number),
            Value::F64(number) => Some(number as f32),
            _ => None,
        })
    }

    /// The truth value at `key`.
    pub fn bool(&self, key: &str) -> Result<Option<bool>, WeightsError> {
        self.read(key, "bool", |value| match *value {
            Value::Bool(truth) => Some(truth),
            _ => None,
        })
    }

    /// The strings at `key`, made into separate strings at the first call.
    pub fn strings(&self, key: &str) -> Result<Option<&[String]>, WeightsError> {
        let list = self.string_list(key)?;
        Ok(list.map(Strings::as_slice))
    }

    /// The strings at `key` as they are kept, without a copy.
    pub fn string_list(&self, key: &str) -> Result<Option<&Strings>, WeightsError> {
        self.read(key, "array of string", |value| match value {
            Value::Array(Array::Strings(list)) => Some(&**list),
            _ => None,
        })
    }

    /// The `f32` list at `key`.
    pub fn f32s(&self, key: &str) -> Result<Option<&[f32]>, WeightsError> {
        self.read(key, "array of f32", |value| match value {
            Value::Array(Array::F32(list)) => Some(list.as_slice()),
            _ => None,
        })
    }

    /// The `i32` list at `key`.
    pub fn i32s(&self, key: &str) -> Result<Option<&[i32]>, WeightsError> {
        self.read(key, "array of i32", |value| match value {
            Value::Array(Array::I32(list)) => Some(list.as_slice()),
            _ => None,
        })
    }

    /// The integers at `key`, stored in any integer type, if each fits in 32 bits unsigned.
    pub fn u32s(&self, key: &str) -> Result<Option<Cow<'_, [u32]>>, WeightsError> {
        let wanted = "array of integers";
        let array = self.read(key, wanted, |value| match value {
            Value::Array(array) => Some(array),
            _ => None,
        })?;
        match array {
            None => Ok(None),
            Some(Array::U32(list)) => Ok(Some(Cow::Borrowed(list))),
            Some(other) => {
                let elements = (0..other.len()).map(|index| {
                    let integer = other.element(index).as_ref().and_then(Value::as_integer);
                    in_u32(key, integer.ok_or_else(|| self.wrong_type(key, wanted))?)
                });
                elements.collect::<Result<Vec<u32>, _>>().map(|list| Some(Cow::Owned(list)))
            }
        }
    }

    fn read<'a, T>(
        &'a self,
        key: &str,
        wanted: &'static str,
        get: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, WeightsError> {
        match self.value(key) {
            None => Ok(None),
            Some(value) => get(value).map(Some).ok_or_else(|| self.wrong_type(key, wanted)),
        }
    }

    fn wrong_type(&self, key: &str, wanted: &'static str) -> WeightsError {
        let value = self.value(key).expect("the type of a key that is there is asked for");
        WeightsError::KeyType { key: key.to_owned(), wanted, found: value.value_type() }
    }
}

fn in_u32(key: &str, value: i128) -> Result<u32, WeightsError> {
    u32::try_from(value).map_err(|_| WeightsError::key_range(key, "0 to 4294967295", value))
}

#[cfg(test)]
mod tests;
