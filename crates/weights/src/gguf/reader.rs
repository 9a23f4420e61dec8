//! Reads little-endian numbers and strings off a byte slice, each length checked first.

use super::fault::{Counted, GgufFault, Place, ValueFault};
use crate::value::{Array, Strings, Value};

/// Most bytes of a metadata key or a tensor's name; the format allows keys of 65,535.
const NAME_BYTES_MAX: u64 = 65_535;

/// A place in the bytes of a whole file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
}

/// A number of a fixed width.
pub(super) trait Number: Sized + Copy {
    const BYTES: usize;
    /// The number in exactly `BYTES` little-endian bytes.
    fn from_bytes(bytes: &[u8]) -> Self;
}

macro_rules! number {
    ($($type:ty),*) => {$(
        impl Number for $type {
            const BYTES: usize = size_of::<$type>();
            fn from_bytes(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().expect("callers pass `BYTES` bytes"))
            }
        }
    )*};
}

number!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes not read yet.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Bytes of the whole file.
    pub(super) fn file_bytes(&self) -> usize {
        self.bytes.len()
    }

    fn take(&mut self, count: u64, place: impl FnOnce() -> Place) -> Result<&'a [u8], GgufFault> {
        match usize::try_from(count) {
            Ok(count) if count <= self.left() => {
                let taken = &self.bytes[self.at..self.at + count];
                self.at += count;
                Ok(taken)
            }
            _ => Err(GgufFault::Truncated {
                place: place(),
                at: self.at,
                needed: count,
                file_bytes: self.bytes.len(),
            }),
        }
    }

    pub(super) fn number<T: Number>(
        &mut self,
        place: impl FnOnce() -> Place,
    ) -> Result<T, GgufFault> {
        self.take(T::BYTES as u64, place).map(T::from_bytes)
    }

    /// A string of any length that the file holds.
    fn string(&mut self, place: impl Fn() -> Place) -> Result<&'a str, GgufFault> {
        let bytes = self.number::<u64>(&place)?;
        let bytes = self.take(bytes, &place)?;
        std::str::from_utf8(bytes).map_err(|_| GgufFault::NotText { place: place() })
    }

    /// A key or a tensor's name.
    pub(super) fn name(&mut self, place: impl Fn() -> Place) -> Result<&'a str, GgufFault> {
        let count = Reader { ..*self }.number::<u64>(&place)?;
        if count > NAME_BYTES_MAX && count <= self.left() as u64 {
            let (what, limit) = (Counted::NameBytes, NAME_BYTES_MAX);
            return Err(GgufFault::TooMany { what, count, limit });
        }
        self.string(place)
    }

    /// The type and the value of the named key.
    pub(super) fn value(&mut self, key: &str) -> Result<Value, GgufFault> {
        let place = || Place::Value(key.to_owned());
        Ok(match self.number::<u32>(place)? {
            0 => Value::U8(self.number(place)?),
            1 => Value::I8(self.number(place)?),
            2 => Value::U16(self.number(place)?),
            3 => Value::I16(self.number(place)?),
            4 => Value::U32(self.number(place)?),
            5 => Value::I32(self.number(place)?),
            6 => Value::F32(self.number(place)?),
            7 => Value::Bool(truth(key, self.number(place)?)?),
            8 => Value::String(self.string(place)?.to_owned()),
            9 => Value::Array(self.array(key)?),
            10 => Value::U64(self.number(place)?),
            11 => Value::I64(self.number(place)?),
            12 => Value::F64(self.number(place)?),
            id => return Err(unknown_type(key, id)),
        })
    }

    fn array(&mut self, key: &str) -> Result<Array, GgufFault> {
        let place = || Place::Value(key.to_owned());
        let id = self.number::<u32>(place)?;
        let count = self.number::<u64>(place)?;
        Ok(match id {
            0 => Array::U8(self.numbers(key, count)?),
            1 => Array::I8(self.numbers(key, count)?),
            2 => Array::U16(self.numbers(key, count)?),
            3 => Array::I16(self.numbers(key, count)?),
            4 => Array::U32(self.numbers(key, count)?),
            5 => Array::I32(self.numbers(key, count)?),
            6 => Array::F32(self.numbers(key, count)?),
            7 => {
                let bytes = self.numbers::<u8>(key, count)?;
                Array::Bool(
                    bytes.into_iter().map(|byte| truth(key, byte)).collect::<Result<_, _>>()?,
                )
            }
            8 => Array::Strings(Box::new(self.strings(key, count)?)),
            9 => {
                let what = ValueFault::NestedArray;
                return Err(GgufFault::Value { key: key.to_owned(), what });
            }
            10 => Array::U64(self.numbers(key, count)?),
            11 => Array::I64(self.numbers(key, count)?),
            12 => Array::F64(self.numbers(key, count)?),
            id => return Err(unknown_type(key, id)),
        })
    }

    /// The bytes are taken before anything is allocated, so the list is never larger than they.
    fn numbers<T: Number>(&mut self, key: &str, count: u64) -> Result<Vec<T>, GgufFault> {
        // A product past 64 bits is past the end of any file too.
        let needed = count.saturating_mul(T::BYTES as u64);
        let bytes = self.take(needed, || Place::Value(key.to_owned()))?;
        Ok(bytes.chunks_exact(T::BYTES).map(T::from_bytes).collect())
    }

    /// Walks the strings twice: once to see that they are there and how long, once to keep them.
    fn strings(&mut self, key: &str, count: u64) -> Result<Strings, GgufFault> {
        let place = || Place::Value(key.to_owned());
        let (mut ahead, mut text_bytes) = (*self, 0);
        // Each string takes 8 bytes at least, so the file's end bounds the loop.
        for _ in 0..count {
            text_bytes += ahead.string(place)?.len();
        }
        let count = usize::try_from(count).expect("as many strings were just read");
        let mut list = Strings::with_capacity(count, text_bytes);
        for _ in 0..count {
            list.push(self.string(place)?);
        }
        Ok(list)
    }
}

fn truth(key: &str, byte: u8) -> Result<bool, GgufFault> {
    match byte {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(GgufFault::Value { key: key.to_owned(), what: ValueFault::NotBool { byte } }),
    }
}

fn unknown_type(key: &str, id: u32) -> GgufFault {
    GgufFault::Value { key: key.to_owned(), what: ValueFault::UnknownType { id } }
}
