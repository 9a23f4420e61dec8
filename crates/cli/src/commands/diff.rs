//! `causeway diff`: compare two records and name the first step that differs, and why.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use causeway_ledger::{Pair, Record, Stored, Verdict, compare, read, report};

use crate::failure::{Failure, Outcome};

/// Arguments of `causeway diff`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The first record.
    a: PathBuf,
    /// The second record.
    b: PathBuf,
    /// Print the verdict as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command: exit code 0 where the records are the same answer, 1 where they are not.
pub(crate) fn run(args: &Args) -> Outcome {
    let (a, b) = (read_record(&args.a)?.record, read_record(&args.b)?.record);
    let verdict = compare(&a, &b);
    print_verdict(&verdict, &a, &b, Pair { a: "A", b: "B" }, args.json)?;
    if verdict.is_equal() { Ok(()) } else { Err(Failure::Unequal) }
}

/// Reads a record, and warns where it is not what was written.
pub(crate) fn read_record(path: &Path) -> Result<Stored, Failure> {
    let stored = read(path).map_err(|error| match error.is_callers_mistake() {
        true => Failure::caller(error),
        false => Failure::world(error),
    })?;
    if !stored.is_unchanged() {
        let path = path.display();
        eprintln!("causeway: record `{path}` was changed after it was written: its id differs");
    }
    Ok(stored)
}

/// Prints a verdict to stdout: a page for a reader, or one line of JSON.
pub(crate) fn print_verdict(
    verdict: &Verdict,
    a: &Record,
    b: &Record,
    names: Pair<&str>,
    json: bool,
) -> Outcome {
    let page = if json {
        let line = serde_json::to_string(verdict).map_err(Failure::world)?;
        format!("{line}\n")
    } else {
        report(verdict, a, b, names)
    };
    io::stdout().write_all(page.as_bytes())?;
    io::stdout().flush()?;
    Ok(())
}
