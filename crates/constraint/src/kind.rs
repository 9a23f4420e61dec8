//! What an answer can be held to, and how much of it may be asked.

use serde_json::Value;

use crate::tools::ToolCalls;

/// Most choices of a list.
pub const CHOICES_MAX: usize = 10_000;
/// Most bytes of a regular expression, a grammar, or all choices together.
pub const GRAMMAR_BYTES_MAX: usize = 256 << 10;

/// One thing that the whole answer must be.
#[derive(Debug, Clone, PartialEq)]
pub enum Constraint {
    /// JSON that a schema (draft 2020-12) accepts, its properties in the declared order.
    JsonSchema { schema: Value, whitespace: Whitespace },
    /// Any JSON object.
    JsonObject { whitespace: Whitespace },
    /// Text that a regular expression (Rust's syntax) matches from end to end.
    Regex(String),
    /// Text of a grammar in Lark's syntax.
    Lark(String),
    /// One of these texts.
    Choice(Vec<String>),
    /// Calls of tools in a template's own form, or text where none is asked for.
    ToolCalls(ToolCalls),
}

/// White space between the words of JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Whitespace {
    /// None at all: fewest tokens, and most of them forced.
    #[default]
    Compact,
    /// Up to eight characters in a row wherever JSON allows them.
    Flexible,
}

/// How much work one constraint may ask for; beyond it, compiling or matching is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Symbols in the grammar's productions.
    pub grammar_symbols: usize,
    /// Steps of building the first lexer state, about 50,000 a millisecond.
    pub compile_fuel: u64,
    /// Steps of the lexer for one mask, about 14,000 a millisecond.
    pub mask_fuel: u64,
    /// Items of the parser for one mask, about 20,000 a millisecond.
    pub mask_items: usize,
    /// States of the lexer over a whole answer, up to 2 kB each.
    pub lexer_states: usize,
}

impl Default for Limits {
    /// Enough for the largest schemas in public use, and 100 MB at the most.
    fn default() -> Self {
        Self {
            grammar_symbols: 500_000,
            compile_fuel: 1_000_000,
            mask_fuel: 200_000,
            mask_items: 50_000,
            lexer_states: 50_000,
        }
    }
}
