//! `causeway diff`: compare two records and name the first step that differs, and why.

use std::io::{self, Write as _};

use causeway_ledger::{Pair, Record, Stored, Verdict, compare, report};

use crate::commands::ledger::{StorePlace, named_record};
use crate::failure::{Failure, Outcome};

/// Arguments of `causeway diff`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The first record: a file, or an id in the store.
    a: String,
    /// The second record: a file, or an id in the store.
    b: String,
    #[command(flatten)]
    place: StorePlace,
    /// Print the verdict as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command: exit code 0 where the records are the same answer, 1 where they are not.
pub(crate) fn run(args: &Args) -> Outcome {
    let (a, b) =
        (read_record(&args.a, &args.place)?.record, read_record(&args.b, &args.place)?.record);
    let verdict = compare(&a, &b);
    print_verdict(&verdict, &a, &b, Pair { a: "A", b: "B" }, args.json)?;
    if verdict.is_equal() { Ok(()) } else { Err(Failure::Unequal) }
}

/// Reads a record, and warns where it is not what was written.
pub(crate) fn read_record(name: &str, place: &StorePlace) -> Result<Stored, Failure> {
    let stored = named_record(name, place)?;
    if let Some(sign) = stored.edited() {
        eprintln!("causeway: record `{name}` was changed after it was written: {sign}");
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
