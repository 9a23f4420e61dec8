//! The schema checker: what a schema asks for, keyword by keyword, lowered to what is compiled.
//!
//! The grammar engine's errors carry no path and some of its keywords are held loosely, so
//! nothing reaches it but what was read, checked and written anew here.

mod bounds;
mod cost;
mod disjoint;
mod finite;
mod format;
mod keywords;
mod lower;
mod object;
mod path;
mod pattern;
mod prove;
mod references;
mod values;

use std::fmt;

pub(crate) use lower::{Lowered, lower};
pub(crate) use object::lower_object;
pub(crate) use path::{Path, pointer_token};
pub(crate) use references::References;

/// Most bytes of a schema, written compactly.
pub const SCHEMA_BYTES_MAX: usize = 1_000_000;
/// Deepest nesting of arrays and objects in a schema.
pub const SCHEMA_DEPTH_MAX: usize = 100;

/// Why a schema is refused, and where.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("schema, {path}: {problem}")]
pub struct SchemaError {
    /// JSON pointer in a URI fragment, as in `#/properties/age/minimum`.
    pub path: String,
    pub problem: SchemaProblem,
}

/// What a schema cannot have.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SchemaProblem {
    #[error("the keyword `{keyword}` is not supported")]
    Unsupported { keyword: String },
    #[error("the {what} `{value}` is not supported")]
    UnsupportedValue { what: &'static str, value: String },
    #[error(
        "`{keyword}` has {value}, which cannot be compared exactly: the limit is 2^53, and 2^63 - 1 \
         for `minimum`, `maximum`, `const` and `enum` of integers that 64-bit floating point holds"
    )]
    Inexact { keyword: String, value: String },
    #[error("must be {want}")]
    Malformed { want: &'static str },
    #[error("the reference `{reference}` leads nowhere")]
    Reference { reference: String },
    #[error("refers to itself without end, so that no answer is finite")]
    Endless,
    #[error("`{low}` ({low_value}) and `{high}` ({high_value}) leave nothing between them")]
    Contradiction { low: &'static str, low_value: String, high: &'static str, high_value: String },
    #[error("nothing can satisfy it")]
    Impossible,
    #[error("`oneOf` needs alternatives that exclude each other: {first} and {second} may not")]
    OneOf { first: usize, second: usize },
    #[error("the pattern cannot be held: {reason}")]
    Pattern { reason: String },
    #[error("{what} is {count}, the limit is {limit}")]
    TooLarge { what: &'static str, count: u64, limit: u64 },
    /// The grammar engine's refusal; `reason` is its own words.
    #[error("cannot be compiled: {reason}")]
    Engine { reason: String },
}

/// What of a schema is not held although it was asked for, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaWarning {
    /// As in `SchemaError`.
    pub path: String,
    pub what: Warned,
}

/// What is warned of.
#[derive(Debug, Clone, PartialEq)]
pub enum Warned {
    /// The draft does not know this keyword.
    Unknown { keyword: String },
    /// A tool that is not strict, whose schema cannot be held.
    AnyObject { tool: String, problem: SchemaProblem },
}

impl SchemaWarning {
    /// The keyword that has no effect, if it is about one.
    #[must_use]
    pub fn keyword(&self) -> Option<&str> {
        match &self.what {
            Warned::Unknown { keyword } => Some(keyword),
            Warned::AnyObject { .. } => None,
        }
    }
}

impl fmt::Display for SchemaWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, what } = self;
        match what {
            Warned::Unknown { keyword } => write!(f, "`{keyword}` at {path} has no effect"),
            Warned::AnyObject { tool, problem } => {
                write!(f, "the arguments of `{tool}` are any object, because of {path}: {problem}")
            }
        }
    }
}

#[cfg(test)]
mod tests;
