//! Schemas and grammars to masks, forced tokens and field paths.
//!
//! It may not know a model, sockets or a clock: it sees tokens and says which may come next.
//! `Constraint → compile → Plan → Matcher → mask, forced tokens`, and `Held` is that as the guide of
//! a run; a schema is checked and lowered
//! before it is compiled, so that nothing in it is ignored in silence.

mod accept;
mod compile;
mod environment;
mod error;
mod fields;
mod held;
mod kind;
mod matcher;
mod order;
mod reading;
mod schema;
mod tools;

pub use accept::{Refused, accepts};
pub use compile::{Plan, compile};
pub use environment::Environment;
pub use error::{ConstraintError, EnvironmentError, MatchError};
pub use fields::{FieldId, FieldWalker, Part, Written};
pub use held::Held;
pub use kind::{CHOICES_MAX, Constraint, GRAMMAR_BYTES_MAX, Limits, Whitespace};
pub use matcher::Matcher;
pub use order::{Field, Order, OrderWarning, Role, order};
pub use reading::{DOCUMENT_DEPTH_MAX, ReadError, compact_json, read_schema};
pub use schema::{
    SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX, SchemaError, SchemaProblem, SchemaWarning, Warned,
};
pub use tools::{
    TOOLS_MAX, Tool, ToolCall, ToolCalls, ToolError, ToolEvent, ToolFormat, ToolParser, read_tools,
};
