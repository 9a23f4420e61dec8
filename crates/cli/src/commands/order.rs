//! `causeway order`: the order in which a schema's fields are written, and what each follows from.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use causeway_constraint::{Field, Order, OrderWarning, Role, order, read_schema};
use causeway_ledger::escaped;
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};

/// Most bytes of a schema's text: what `read_schema` may take, white space included.
const SCHEMA_TEXT_MAX: u64 = 8 << 20;

/// Arguments of `causeway order`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File with a JSON schema; `-` is stdin.
    schema: PathBuf,
    /// Write one JSON object: the fields, the warnings and the reordered schema.
    #[arg(long)]
    json: bool,
    /// Write the schema with each reasoning before its verdict to a file; a schema that is in
    /// order is written as it is.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    let schema = read_schema(&text(&args.schema)?).map_err(Failure::caller)?;
    let found = order(&schema).map_err(Failure::caller)?;
    if let Some(file) = &args.write {
        let schema = found.reordered.as_ref().unwrap_or(&schema);
        let text = serde_json::to_string_pretty(schema).map_err(Failure::world)?;
        let written = std::fs::write(file, text + "\n");
        let failed = || format!("`{}` cannot be written", file.display());
        written.with_context(failed).map_err(Failure::World)?;
    }
    let told = if args.json { format!("{}\n", object(&found)) } else { lines(&found) };
    std::io::stdout().lock().write_all(told.as_bytes())?;
    Ok(())
}

/// The text of a file, or of stdin.
fn text(path: &Path) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(SCHEMA_TEXT_MAX + 1).read_to_end(&mut bytes)
    } else {
        let file = std::fs::File::open(path);
        file.and_then(|file| file.take(SCHEMA_TEXT_MAX + 1).read_to_end(&mut bytes))
    };
    let told = path.display();
    read.with_context(|| format!("`{told}` cannot be read")).map_err(Failure::Caller)?;
    if bytes.len() as u64 > SCHEMA_TEXT_MAX {
        return Err(Failure::caller(anyhow::anyhow!(
            "`{told}` is longer than the limit of {SCHEMA_TEXT_MAX} bytes"
        )));
    }
    String::from_utf8(bytes)
        .with_context(|| format!("`{told}` is not valid UTF-8"))
        .map_err(Failure::Caller)
}

/// The machine's form.
fn object(found: &Order) -> Value {
    let Order { fields, warnings, reordered } = found;
    let path = |index: &usize| fields[*index].path.as_str();
    let field = |field: &Field| {
        let Field { path: own, role, after, repeats } = field;
        let after: Vec<&str> = after.iter().map(path).collect();
        json!({ "path": own, "role": word(*role), "after": after, "repeats": repeats })
    };
    let warning = |warning: &OrderWarning| {
        let OrderWarning { verdict, reasoning } = warning;
        json!({ "verdict": verdict, "reasoning": reasoning, "warning": sentence(warning) })
    };
    json!({
        "fields": fields.iter().map(field).collect::<Vec<_>>(),
        "warnings": warnings.iter().map(warning).collect::<Vec<_>>(),
        "reordered": reordered,
    })
}

/// The reader's form: a line for each field, then the warnings, then the better order.
fn lines(found: &Order) -> String {
    let Order { fields, warnings, reordered } = found;
    let mut told = String::new();
    let width = fields.iter().map(|field| escaped(&field.path).chars().count()).max().unwrap_or(0);
    for (index, field) in fields.iter().enumerate() {
        let Field { path, role, after, repeats } = field;
        let path = escaped(path);
        let number = index + 1;
        let after = spans(after);
        let earlier = if *repeats { ", and on the items before" } else { "" };
        let _ = writeln!(
            told,
            "{number:>3}  {path:width$}  {:9}  conditioned on {after}{earlier}",
            word(*role)
        );
    }
    if fields.is_empty() {
        told.push_str("The schema declares no fields.\n");
    }
    for warning in warnings {
        let _ = writeln!(told, "warning: {}", sentence(warning));
    }
    if let Some(better) = reordered.as_ref().and_then(|schema| order(schema).ok()) {
        let paths: Vec<String> = better.fields.iter().map(|field| escaped(&field.path)).collect();
        let _ = writeln!(told, "better order: {}", paths.join(", "));
        told.push_str("`--write FILE` writes the schema in that order.\n");
    } else if !warnings.is_empty() {
        told.push_str("No move of properties within one object mends that.\n");
    }
    told
}

fn word(role: Role) -> &'static str {
    match role {
        Role::Plain => "-",
        Role::Verdict => "verdict",
        Role::Reasoning => "reasoning",
    }
}

fn sentence(warning: &OrderWarning) -> String {
    let (verdict, reasoning) = (escaped(&warning.verdict), escaped(&warning.reasoning));
    format!("`{verdict}` is chosen before `{reasoning}` is written, so it cannot follow from it")
}

/// Numbers of fields, counted from 1, neighbours joined.
fn spans(fields: &[usize]) -> String {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for &field in fields {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == field => *last = field,
            _ => spans.push((field, field)),
        }
    }
    if spans.is_empty() {
        return "the prompt alone".to_owned();
    }
    let told = spans.iter().map(|&(first, last)| match first == last {
        true => (first + 1).to_string(),
        false => format!("{}-{}", first + 1, last + 1),
    });
    told.collect::<Vec<_>>().join(", ")
}
