//! `causeway doctor`: look a model over before it is used, and say what is unusual about it.

mod answer;
mod file;
mod text;

use std::io::Write as _;

use causeway_weights::ModelFile;
use serde::Serialize;
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::loaded::ModelFlags;
use crate::model_path;

/// Arguments of `causeway doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Model name, .gguf file or Hugging Face folder; a known name is fetched when it is missing.
    #[arg(default_value = causeway_models::DEFAULT_MODEL)]
    model: String,
    /// One JSON object: `verdict`, and `checks` with `name`, `verdict` and `said` each.
    #[arg(long)]
    json: bool,
}

/// How bad it is, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Ok,
    /// Worth knowing: it may be meant so.
    Unusual,
    /// The model cannot be used as it is, or not for what it seems to be.
    Wrong,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Check {
    name: &'static str,
    verdict: Verdict,
    said: String,
}

impl Check {
    fn ok(name: &'static str, said: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Ok, said: said.into() }
    }

    fn unusual(name: &'static str, said: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Unusual, said: said.into() }
    }

    fn wrong(name: &'static str, said: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Wrong, said: said.into() }
    }
}

/// Runs the command: a line for each check; the exit code is 1 where one of them is wrong.
pub(crate) fn run(args: &Args) -> Outcome {
    let path = model_path::resolve_or_pull(&args.model)?;
    let checks = look(&args.model, &path)?;
    let worst = checks.iter().map(|check| check.verdict).max().unwrap_or(Verdict::Ok);
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", json!({ "model": args.model, "verdict": worst, "checks": checks }))?;
    } else {
        for Check { name, verdict, said } in &checks {
            let verdict = match verdict {
                Verdict::Ok => "ok",
                Verdict::Unusual => "unusual",
                Verdict::Wrong => "wrong",
            };
            writeln!(out, "{verdict:<8} {name:<14} {}", causeway_ledger::escaped(said))?;
        }
    }
    if worst == Verdict::Wrong { Err(Failure::Unequal) } else { Ok(()) }
}

/// Every check that the model is well enough for.
fn look(name: &str, path: &std::path::Path) -> Result<Vec<Check>, Failure> {
    let opened = match ModelFile::open(path) {
        Ok(opened) => opened,
        Err(error) => return Ok(vec![Check::wrong("file", told(error))]),
    };
    let mut checks = file::checks(&opened);
    let loaded = match ModelFlags::of(name.to_owned(), None).open() {
        Ok(loaded) => loaded,
        Err(failure) => {
            checks.push(Check::wrong("load", failure.said()));
            return Ok(checks);
        }
    };
    checks.extend(text::checks(&loaded));
    checks.extend(answer::checks(&loaded));
    Ok(checks)
}

/// An error with its causes, in one sentence.
fn told(error: impl Into<anyhow::Error>) -> String {
    Failure::world(error).said()
}
