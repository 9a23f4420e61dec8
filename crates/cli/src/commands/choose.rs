//! `causeway choose`: run a policy on literal logits.

mod line;

use std::io::{BufRead, Write};
use std::path::PathBuf;

use anyhow::anyhow;
use serde_json::{Map, Value, json};

use crate::failure::{Failure, Outcome};
use crate::policy_flags::{Ids, PolicyFlags, ids};

/// Arguments of `causeway choose`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The logits, with commas: the token ids are 0, 1, 2, …
    #[arg(long, value_name = "LIST", value_parser = numbers, allow_hyphen_values = true,
          required_unless_present_any = ["json", "probs"], conflicts_with = "probs")]
    logits: Option<Numbers>,
    /// Probabilities in place of logits, used as they are
    #[arg(long, value_name = "LIST", value_parser = numbers)]
    probs: Option<Numbers>,
    /// Read one JSON object a line from stdin, and write one for each
    #[arg(long, conflicts_with_all = ["logits", "probs"])]
    json: bool,
    /// The tokens so far, prompt first
    #[arg(long, value_name = "IDS", value_parser = ids)]
    context: Option<Ids>,
    /// How many of them are prompt [default: all]
    #[arg(long, value_name = "N")]
    prompt_tokens: Option<u64>,
    /// Index of the token in the generation prefix [default: the tokens after the prompt]
    #[arg(long, value_name = "N")]
    step: Option<u64>,
    /// Where draws come from: the engine's own generator, or one that draws as NumPy's
    /// default_rng(seed).choice does [default: philox]
    #[arg(long, value_name = "GENERATOR", value_parser = ["philox", "numpy"])]
    rng: Option<String>,
    /// With --rng numpy: float32 or float64 [default: float64]
    #[arg(long, value_name = "TYPE", value_parser = ["float32", "float64"])]
    dtype: Option<String>,
    /// With --rng numpy: the kept ids in NumPy's own order
    #[arg(long, value_name = "IDS", value_parser = ids)]
    keep: Option<Ids>,
    /// A policy file
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    #[command(flatten)]
    flags: PolicyFlags,
}

/// A list in one argument.
#[derive(Debug, Clone)]
struct Numbers(Vec<f64>);

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    if args.json {
        return run_lines();
    }
    let mut file = super::policy::read(args.policy.as_deref())?;
    args.flags.apply(&mut file)?;
    let answer = line::answer(&to_object(args), Some(file)).map_err(Failure::caller)?;
    let row = args.logits.as_ref().or(args.probs.as_ref()).map_or(&[][..], |row| &row.0);
    print(&answer, row, args.probs.is_some())
}

/// One JSON object a line, each answered by one; a bad line is answered by its error.
fn run_lines() -> Outcome {
    let (mut refused, mut count) = (0, 0);
    let mut out = std::io::stdout().lock();
    for text in std::io::stdin().lock().lines() {
        let text = text?;
        if text.trim().is_empty() {
            continue;
        }
        count += 1;
        let parsed: Result<Value, _> = serde_json::from_str(&text);
        let answer = match parsed {
            Ok(Value::Object(object)) => line::answer(&object, None),
            Ok(_) => Err(anyhow!("the line is not a JSON object")),
            Err(error) => Err(anyhow!("the line is not JSON: {error}")),
        };
        let answer = answer.unwrap_or_else(|error| {
            refused += 1;
            json!({"error": format!("{error:#}")})
        });
        writeln!(out, "{answer}")?;
    }
    out.flush()?;
    if refused > 0 {
        return Err(Failure::caller(anyhow!("{refused} of {count} lines were refused")));
    }
    Ok(())
}

/// The flags as the object that a line of `--json` holds.
fn to_object(args: &Args) -> Map<String, Value> {
    let floats = |numbers: &Numbers| numbers.0.iter().map(|&n| line::number(n)).collect();
    let tokens = |ids: &Ids| ids.0.iter().map(|token| json!(token.0)).collect();
    let fields = [
        ("logits", args.logits.as_ref().map(|row| Value::Array(floats(row)))),
        ("probs", args.probs.as_ref().map(|row| Value::Array(floats(row)))),
        ("context", args.context.as_ref().map(|ids| Value::Array(tokens(ids)))),
        ("prompt_tokens", args.prompt_tokens.map(|count| json!(count))),
        ("step", args.step.map(|step| json!(step))),
        ("rng", args.rng.as_ref().map(|rng| json!(rng))),
        ("dtype", args.dtype.as_ref().map(|dtype| json!(dtype))),
        ("keep", args.keep.as_ref().map(|ids| Value::Array(tokens(ids)))),
    ];
    let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    given.collect()
}

/// A small table: the tokens left in play, and the one chosen.
fn print(answer: &Value, row: &[f64], is_probabilities: bool) -> Outcome {
    let mut out = std::io::stdout().lock();
    let column = if is_probabilities { "given" } else { "logit" };
    writeln!(out, "{:>6} {column:>12} {:>12}", "token", "probability")?;
    let lists = (answer["survivors"].as_array(), answer["probs"].as_array());
    for (token, probability) in lists.0.into_iter().flatten().zip(lists.1.into_iter().flatten()) {
        let index = token.as_u64().and_then(|id| usize::try_from(id).ok()).unwrap_or(usize::MAX);
        let given = row.get(index).map_or_else(String::new, ToString::to_string);
        let token = token.to_string();
        let probability = probability.as_f64().unwrap_or(0.0);
        writeln!(out, "{token:>6} {given:>12} {probability:>12.6}")?;
    }
    writeln!(out, "token {} (seed {})", answer["token"], answer["seed"])?;
    if let Some(uniform) = answer["uniform"].as_f64() {
        writeln!(out, "uniform {uniform}")?;
    }
    Ok(())
}

fn numbers(text: &str) -> Result<Numbers, String> {
    let number = |part: &str| {
        let part = part.trim();
        part.parse::<f64>().map_err(|_| format!("`{part}` is no number"))
    };
    text.split(',').map(number).collect::<Result<_, _>>().map(Numbers)
}
