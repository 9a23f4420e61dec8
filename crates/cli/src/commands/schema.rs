//! `causeway schema`: which documents a schema takes, and what its masks cost.

mod bench;

use std::path::PathBuf;
use std::sync::Arc;

use causeway_constraint::{
    Constraint, ConstraintError, Environment, Limits, Plan, ReadError, Whitespace, accepts,
    compact_json, compile, read_schema,
};
use causeway_text::Tokenizer;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::tokenize::{answer_lines, open};
use crate::clock::Clock;
use crate::failure::{Failure, Outcome};

/// Arguments of `causeway schema`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("work").required(true).args(["json", "mask_bench"]))]
pub(crate) struct Args {
    /// Read `{"schema": …, "doc": …}` from stdin, one a line, and write `{"compiled", "accepted",
    /// "error", "path"}`; `"text"` in place of `"doc"` is taken as it is.
    #[arg(long)]
    json: bool,
    /// Compile each schema in a folder and walk through its masks; print both times.
    #[arg(long, value_name = "DIR")]
    mask_bench: Option<PathBuf>,
    /// Model whose vocabulary is used; without it, `--json` takes one of single bytes.
    #[arg(short, long)]
    model: Option<String>,
    /// Allow white space between the words of JSON.
    #[arg(long)]
    flexible: bool,
}

/// One line of input.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(borrow)]
    schema: &'a RawValue,
    #[serde(borrow)]
    doc: Option<&'a RawValue>,
    text: Option<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    let whitespace = if args.flexible { Whitespace::Flexible } else { Whitespace::Compact };
    if let Some(folder) = &args.mask_bench {
        let model = args.model.as_deref().unwrap_or(causeway_models::DEFAULT_MODEL);
        let tokenizer = open(model)?.tokenizer;
        let clock = Clock::start();
        let environment = environment(tokenizer)?;
        let built_ns = clock.now_ns();
        let vocabulary = bench::Vocabulary { model, environment, built_ns };
        return bench::run(folder, &vocabulary, whitespace);
    }
    let environment = match &args.model {
        Some(model) => environment(open(model)?.tokenizer)?,
        None => Environment::of_bytes(),
    };
    answer_lines(|line| answer(line, &environment, whitespace))
}

/// The vocabulary of a model; its rows are the tokenizer's, since no logits are computed.
fn environment(tokenizer: Arc<Tokenizer>) -> Result<Environment, Failure> {
    let rows = tokenizer.vocab_size();
    let ends = tokenizer.end_tokens().to_vec();
    Environment::new(tokenizer, rows, &ends).map_err(|error| {
        let is_callers_mistake = error.is_callers_mistake();
        Failure::of(error, is_callers_mistake)
    })
}

fn answer(line: &str, environment: &Environment, whitespace: Whitespace) -> anyhow::Result<Value> {
    let Line { schema, doc, text } = serde_json::from_str(line)?;
    let plan = match plan(schema.get(), environment, whitespace) {
        Ok(plan) => plan,
        Err((error, path)) => {
            return Ok(json!({
                "compiled": false, "accepted": false, "error": error, "path": path, "warnings": [],
            }));
        }
    };
    let text = match (doc, text) {
        (Some(doc), None) => Some(compact_json(doc.get())?),
        (None, text) => text,
        (Some(_), Some(_)) => anyhow::bail!("the line has both `doc` and `text`"),
    };
    let found = text.map(|text| accepts(&mut plan.matcher(), environment, &text));
    let warnings = plan.warnings().iter();
    let warnings: Vec<Value> =
        warnings.map(|w| json!({ "path": w.path, "keyword": w.keyword() })).collect();
    Ok(json!({
        "compiled": true,
        "accepted": found.as_ref().map(Result::is_ok),
        "error": found.and_then(Result::err).map(|refused| refused.to_string()),
        "path": null,
        "warnings": warnings,
    }))
}

/// Reads and compiles a schema; what is wrong with it comes back with its place, if it has one.
fn plan(
    schema: &str,
    environment: &Environment,
    whitespace: Whitespace,
) -> Result<Plan, (String, Option<String>)> {
    let schema = read_schema(schema).map_err(|error| {
        let path = match &error {
            ReadError::Schema(error) => error.path.clone(),
            ReadError::Json(_) => "#".to_owned(),
        };
        (error.to_string(), Some(path))
    })?;
    let constraint = Constraint::JsonSchema { schema, whitespace };
    compile(&constraint, environment, &Limits::default()).map_err(|error: ConstraintError| {
        let path = error.path().map(str::to_owned);
        (error.to_string(), path)
    })
}
