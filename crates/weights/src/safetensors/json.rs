//! Visitors that read safetensors JSON without building a tree of it.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Sizes kept of a shape; longer shapes are counted and refused by name.
const SIZES_KEPT: usize = 16;

/// A tensor as the header lists it, nothing checked yet.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) dtype: String,
    /// Row-major; at most the first `SIZES_KEPT` sizes.
    pub(super) shape: Vec<u64>,
    /// How many sizes the shape really has.
    pub(super) dimensions: usize,
    pub(super) offsets: [u64; 2],
}

/// The tensors of a header in its order, a repeated name as often as it stands there.
pub(super) fn tensors(json: &[u8]) -> Result<Vec<(String, Listed)>, serde_json::Error> {
    let pairs: Pairs<Entry> = serde_json::from_slice(json)?;
    let tensors = pairs.0.into_iter().filter_map(|(name, entry)| match entry {
        Entry::Metadata => None,
        Entry::Tensor(listed) => Some((name, listed)),
    });
    Ok(tensors.collect())
}

/// The `weight_map` of an index: tensor names, each with its file, in the index's order.
pub(crate) fn weight_map(json: &[u8]) -> Result<Vec<(String, String)>, serde_json::Error> {
    let index: Index = serde_json::from_slice(json)?;
    Ok(index.0.0)
}

/// A JSON object as a list of pairs, so that a repeated key can be seen.
struct Pairs<T>(Vec<(String, T)>);

/// How to read the value that belongs to a key.
trait Entries: Sized {
    fn read<'de, A: MapAccess<'de>>(key: &str, map: &mut A) -> Result<Self, A::Error>;
}

enum Entry {
    Metadata,
    Tensor(Listed),
}

impl Entries for Entry {
    fn read<'de, A: MapAccess<'de>>(key: &str, map: &mut A) -> Result<Self, A::Error> {
        if key == "__metadata__" {
            return map.next_value::<IgnoredAny>().map(|_| Self::Metadata);
        }
        map.next_value::<Listed>().map(Self::Tensor)
    }
}

impl Entries for String {
    fn read<'de, A: MapAccess<'de>>(_: &str, map: &mut A) -> Result<Self, A::Error> {
        map.next_value()
    }
}

impl<'de, T: Entries> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visit<T>(std::marker::PhantomData<T>);
        impl<'de, T: Entries> Visitor<'de> for Visit<T> {
            type Value = Pairs<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    let value = T::read(&key, &mut map)?;
                    pairs.push((key, value));
                }
                Ok(Pairs(pairs))
            }
        }
        from.deserialize_map(Visit(std::marker::PhantomData))
    }
}

struct Index(Pairs<String>);

impl<'de> Deserialize<'de> for Index {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Index;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with `weight_map`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Index, A::Error> {
                let mut found = None;
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "weight_map" => set_once(&mut found, map.next_value()?, "weight_map")?,
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                found.map(Index).ok_or_else(|| A::Error::missing_field("weight_map"))
            }
        }
        from.deserialize_map(Visit)
    }
}

impl<'de> Deserialize<'de> for Listed {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ListedVisit)
    }
}

struct ListedVisit;

impl<'de> Visitor<'de> for ListedVisit {
    type Value = Listed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `dtype`, `shape` and `data_offsets`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Listed, A::Error> {
        let (mut dtype, mut shape, mut offsets) = (None, None, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "dtype" => set_once(&mut dtype, map.next_value::<String>()?, "dtype")?,
                "shape" => set_once(&mut shape, map.next_value::<Sizes>()?, "shape")?,
                "data_offsets" => set_once(&mut offsets, map.next_value()?, "data_offsets")?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let Sizes { kept, count } = shape.ok_or_else(|| A::Error::missing_field("shape"))?;
        Ok(Listed {
            dtype: dtype.ok_or_else(|| A::Error::missing_field("dtype"))?,
            shape: kept,
            dimensions: count,
            offsets: offsets.ok_or_else(|| A::Error::missing_field("data_offsets"))?,
        })
    }
}

fn set_once<T, E: Error>(field: &mut Option<T>, value: T, name: &'static str) -> Result<(), E> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::duplicate_field(name)),
    }
}

/// A list of numbers of which only the first few are kept.
struct Sizes {
    kept: Vec<u64>,
    count: usize,
}

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(SizesVisit)
    }
}

struct SizesVisit;

impl<'de> Visitor<'de> for SizesVisit {
    type Value = Sizes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of sizes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Sizes, A::Error> {
        let mut sizes = Sizes { kept: Vec::new(), count: 0 };
        while let Some(size) = list.next_element::<u64>()? {
            sizes.count += 1;
            if sizes.count <= SIZES_KEPT {
                sizes.kept.push(size);
            }
        }
        Ok(sizes)
    }
}
