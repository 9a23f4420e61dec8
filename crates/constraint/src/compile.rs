//! A constraint made a plan: checked, lowered, compiled once, and followed by many answers.

mod blame;
mod calls;

use std::fmt;
use std::thread;

use llguidance::api::{GrammarInit, ParserLimits, TopLevelGrammar};
use llguidance::{Logger, Matcher as Inner, regex_to_lark};
use serde_json::{Map, Value, json};

use crate::environment::{Environment, capabilities};
use crate::error::ConstraintError;
use crate::kind::{CHOICES_MAX, Constraint, GRAMMAR_BYTES_MAX, Limits, Whitespace};
use crate::matcher::Matcher;
use crate::schema::{Lowered, Path, SchemaWarning, lower};

/// Stack of the thread that compiles: the engine follows a schema by recursion, and what a caller
/// happens to have left of its own is no limit to rely on.
const STACK_BYTES: usize = 256 << 20;
/// Most items of one row of the parser, which bounds how many ways a grammar may be ambiguous.
/// An object has some four items for each of its optional names.
const ROW_ITEMS_MAX: usize = 10_000;
/// JSON's short escapes; without `u`, every name has one spelling.
const ESCAPES: &str = "nrbtf\\\"";

/// A compiled constraint of one model.
pub struct Plan {
    prototype: Inner,
    rows: usize,
    warnings: Vec<SchemaWarning>,
}

/// Compiles a constraint; equal constraints make equal plans.
///
/// # Errors
/// A constraint that is at odds with itself, uses what is not supported, or is beyond the limits.
/// A schema's error names the place.
pub fn compile(
    constraint: &Constraint,
    environment: &Environment,
    limits: &Limits,
) -> Result<Plan, ConstraintError> {
    let work = || match constraint {
        Constraint::JsonSchema { schema, whitespace } => {
            json_schema(schema, *whitespace, environment, limits)
        }
        Constraint::JsonObject { whitespace } => {
            let schema = json!({ "type": "object" });
            json_schema(&schema, *whitespace, environment, limits)
        }
        Constraint::Regex(regex) => {
            let lark = regex_grammar(regex)?;
            grammar("regular expression", lark, environment, limits)
        }
        Constraint::Lark(lark) => {
            check_lark(lark)?;
            grammar("grammar", lark.clone(), environment, limits)
        }
        Constraint::Choice(choices) => {
            let lark = choice_grammar(choices)?;
            grammar("list of choices", lark, environment, limits)
        }
        Constraint::ToolCalls(calls) => calls::plan(calls, environment, limits),
    };
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("compile".to_owned()).stack_size(STACK_BYTES);
        let thread = builder.spawn_scoped(scope, work).map_err(|_| ConstraintError::NoThread)?;
        thread.join().expect("compiling catches the engine's panics")
    })
}

impl Plan {
    /// A matcher at the beginning of an answer; it shares nothing with others that could change.
    #[must_use]
    pub fn matcher(&self) -> Matcher {
        Matcher::new(self.prototype.deep_clone(), self.rows)
    }

    /// Parts of the schema that have no effect.
    #[must_use]
    pub fn warnings(&self) -> &[SchemaWarning] {
        &self.warnings
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").field("rows", &self.rows).finish_non_exhaustive()
    }
}

fn json_schema(
    schema: &Value,
    whitespace: Whitespace,
    environment: &Environment,
    limits: &Limits,
) -> Result<Plan, ConstraintError> {
    let lowered = lower(schema, &Path::default())?;
    match lowered_schema(&lowered, whitespace, environment, limits) {
        Ok(prototype) => {
            Ok(Plan { prototype, rows: environment.rows(), warnings: lowered.warnings })
        }
        Err(reason) => {
            let fails = |start: &Path| {
                let lowered = lower(schema, start).ok()?;
                lowered_schema(&lowered, whitespace, environment, limits).err()
            };
            Err(blame::blame(schema, reason, fails).into())
        }
    }
}

/// Compiles what the checker wrote.
fn lowered_schema(
    lowered: &Lowered,
    whitespace: Whitespace,
    environment: &Environment,
    limits: &Limits,
) -> Result<Inner, String> {
    let schema = with_options(lowered.schema.clone(), lowered, whitespace);
    let grammar = TopLevelGrammar::from_json_schema(Value::Object(schema));
    built(grammar, environment, limits)
}

/// A schema for the engine, with the settings that it is compiled under.
fn with_options(
    mut schema: Map<String, Value>,
    lowered: &Lowered,
    whitespace: Whitespace,
) -> Map<String, Value> {
    let mut options = Map::new();
    options.insert("whitespace_flexible".to_owned(), json!(false));
    if whitespace == Whitespace::Flexible {
        options.insert("whitespace_pattern".to_owned(), json!("[ \\t\\n\\r]{1,8}"));
    }
    let unicode = if lowered.allows_unicode_escapes { "u" } else { "" };
    options.insert("json_allowed_escapes".to_owned(), json!(format!("{ESCAPES}{unicode}")));
    schema.insert("x-guidance".to_owned(), Value::Object(options));
    schema
}

fn grammar(
    what: &'static str,
    lark: String,
    environment: &Environment,
    limits: &Limits,
) -> Result<Plan, ConstraintError> {
    match built(TopLevelGrammar::from_lark(lark), environment, limits) {
        Ok(prototype) => Ok(Plan { prototype, rows: environment.rows(), warnings: Vec::new() }),
        Err(reason) => Err(ConstraintError::Grammar { what, reason }),
    }
}

/// The engine's own compiler; its refusal is cut to its first line.
fn built(
    grammar: TopLevelGrammar,
    environment: &Environment,
    limits: &Limits,
) -> Result<Inner, String> {
    let Limits { grammar_symbols, compile_fuel, mask_fuel, mask_items, lexer_states } = *limits;
    let limits = ParserLimits {
        max_items_in_row: ROW_ITEMS_MAX,
        initial_lexer_fuel: compile_fuel,
        step_lexer_fuel: mask_fuel,
        step_max_items: mask_items,
        max_lexer_states: lexer_states,
        max_grammar_size: grammar_symbols,
        precompute_large_lexemes: true,
        verbose_errors: false,
    };
    let parser = environment.factory().create_parser_from_init_ext(
        GrammarInit::Serialized(grammar),
        Logger::new(0, 0),
        capabilities(),
        limits,
    );
    let parser = parser.map_err(|error| {
        let told = error.to_string();
        told.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason").trim().to_owned()
    })?;
    Ok(Inner::new(Ok(parser)))
}

fn regex_grammar(regex: &str) -> Result<String, ConstraintError> {
    check_bytes("regular expression", regex.len())?;
    Ok(format!("start: /{}/", regex_to_lark(regex, "")))
}

fn choice_grammar(choices: &[String]) -> Result<String, ConstraintError> {
    if choices.is_empty() || choices.len() > CHOICES_MAX {
        return Err(ConstraintError::Choices { count: choices.len(), limit: CHOICES_MAX });
    }
    if let Some(index) = choices.iter().position(String::is_empty) {
        return Err(ConstraintError::EmptyChoice { index });
    }
    check_bytes("list of choices", choices.iter().map(String::len).sum())?;
    let escaped: Vec<String> = choices.iter().map(|choice| literal(choice)).collect();
    Ok(format!("start: /{}/", escaped.join("|")))
}

/// A text as a regular expression between slashes that matches it alone.
fn literal(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        c if c.is_alphanumeric() => c.to_string(),
        c => format!("\\u{{{:X}}}", u32::from(c)),
    });
    escaped.collect()
}

/// Refuses what a grammar may ask of the engine and what the engine would leave undone here.
fn check_lark(lark: &str) -> Result<(), ConstraintError> {
    check_bytes("grammar", lark.len())?;
    // `%json` would pass by the schema checker, and options change what is forced.
    for word in ["%json", "%llguidance", "x-guidance", "temperature", "max_tokens"] {
        if lark.contains(word) {
            return Err(ConstraintError::Unsupported { word });
        }
    }
    Ok(())
}

fn check_bytes(what: &'static str, bytes: usize) -> Result<(), ConstraintError> {
    if bytes > GRAMMAR_BYTES_MAX {
        return Err(ConstraintError::Bytes { what, bytes, limit: GRAMMAR_BYTES_MAX });
    }
    Ok(())
}
