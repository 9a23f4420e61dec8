//! Request fields as data: every documented field of an API is read, or refused by its name.

pub mod chat;
pub mod completions;
pub mod embeddings;
mod kind;
pub mod messages;
pub mod responses;
pub mod shared;
pub mod tokens;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::short::short;

pub use kind::Kind;
pub(crate) use kind::wrong;

/// One field of a request.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    pub name: &'static str,
    pub rule: Rule,
}

/// What becomes of a field.
#[derive(Debug, Clone, Copy)]
pub enum Rule {
    /// A field of the policy file, by its path there; the value goes over as it is.
    Policy(&'static str, Kind),
    /// Read by the route.
    Route(Kind),
    /// Kept in the record, and without a part in the answer.
    Recorded(Kind),
    /// Taken where it asks for what happens anyway; every other value is refused.
    Only(&'static [Plain], &'static str),
    /// Not supported, and why.
    Refused(&'static str),
}

/// A plain JSON value that a table can hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Plain {
    Flag(bool),
    Count(u64),
    Word(&'static str),
    EmptyList,
    EmptyObject,
    /// `{"type": "…"}` and nothing else.
    Typed(&'static str),
}

/// Several tables, read as one.
pub type Table = &'static [&'static [Field]];

/// A value for the policy, and the field it came by.
#[derive(Debug, Clone, PartialEq)]
pub struct Edit {
    pub field: &'static str,
    /// Where it stands in the policy file, as in `shape.temperature`.
    pub path: &'static str,
    pub value: Value,
}

/// The fields of one request, checked; `null` counts as absent.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    values: BTreeMap<&'static str, Value>,
    pub edits: Vec<Edit>,
}

impl Fields {
    /// Reads a body by a table.
    ///
    /// # Errors
    /// The first field that is unknown, of another type, out of range or not supported.
    pub fn read(table: Table, body: &Map<String, Value>) -> Result<Self, ApiError> {
        let mut fields = Self::default();
        for (name, value) in body {
            let Some(field) = find(table, name) else { return Err(unknown(table, name)) };
            if !value.is_null() {
                fields.take(field, value)?;
            }
        }
        Ok(fields)
    }

    fn take(&mut self, field: &Field, value: &Value) -> Result<(), ApiError> {
        let name = field.name;
        match field.rule {
            Rule::Policy(path, kind) => {
                kind.check(name, value)?;
                self.edits.push(Edit { field: name, path, value: kind.lower(value) });
                self.values.insert(name, value.clone());
            }
            Rule::Route(kind) | Rule::Recorded(kind) => {
                kind.check(name, value)?;
                self.values.insert(name, value.clone());
            }
            Rule::Only(plain, why) => {
                if !plain.iter().any(|plain| plain.is(value)) {
                    return Err(refused(name, why));
                }
            }
            Rule::Refused(why) => return Err(refused(name, why)),
        }
        Ok(())
    }

    /// A field's value as it came.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// A text field.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.value(name).and_then(Value::as_str)
    }

    /// A field that counts something.
    #[must_use]
    pub fn count(&self, name: &str) -> Option<u64> {
        self.value(name).and_then(Value::as_u64)
    }

    /// A flag; false where it is absent.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        self.flag_or(name, false)
    }

    /// A flag with another default.
    #[must_use]
    pub fn flag_or(&self, name: &str, default: bool) -> bool {
        self.value(name).and_then(Value::as_bool).unwrap_or(default)
    }
}

impl Plain {
    pub(crate) fn is(self, value: &Value) -> bool {
        match self {
            Self::Flag(flag) => value.as_bool() == Some(flag),
            Self::Count(count) => value.as_u64() == Some(count),
            Self::Word(word) => value.as_str() == Some(word),
            Self::EmptyList => value.as_array().is_some_and(Vec::is_empty),
            Self::Typed(word) => value
                .as_object()
                .is_some_and(|object| object.len() == 1 && value["type"].as_str() == Some(word)),
            Self::EmptyObject => value.as_object().is_some_and(Map::is_empty),
        }
    }
}

/// The field of that name.
#[must_use]
pub fn find(table: Table, name: &str) -> Option<&'static Field> {
    table.iter().copied().flatten().find(|field| field.name == name)
}

fn refused(name: &str, why: &str) -> ApiError {
    ApiError::field(name, format!("`{name}` is not supported: {why}"))
        .with_code("unsupported_parameter")
}

fn unknown(table: Table, name: &str) -> ApiError {
    let shown = short(name);
    let names = table.iter().copied().flatten().map(|field| field.name);
    let near = names.min_by_key(|known| distance(known, &shown));
    let near = near.filter(|known| distance(known, &shown) * 3 <= known.len());
    let hint = near.map_or_else(String::new, |near| format!(": did you mean `{near}`?"));
    ApiError::field(&*shown, format!("unknown field `{shown}`{hint}"))
        .with_code("unknown_parameter")
}

/// Edit distance (Levenshtein 1966), by bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let cost = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests;
