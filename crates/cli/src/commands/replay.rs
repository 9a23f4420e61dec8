//! `causeway replay`: run a record again and prove it equal, or name the first step that differs.

use std::path::PathBuf;

use causeway_ledger::{Pair, Record, compare};

use crate::commands::diff::{print_verdict, read_record};
use crate::failure::{Failure, Outcome};

/// Arguments of `causeway replay`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The record to play again.
    record: PathBuf,
    /// Print the verdict as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command: exit code 0 where the replay proves the record, 1 where it does not.
pub(crate) fn run(args: &Args) -> Outcome {
    let recorded = read_record(&args.record)?.record;
    let again = run_again(&recorded)?;
    prove(&recorded, &again, args.json)
}

/// Runs the record's request again, under its policy, seed and model.
fn run_again(_recorded: &Record) -> Result<Record, Failure> {
    Err(Failure::caller(anyhow::anyhow!("`replay` cannot run a model yet")))
}

/// Compares the record with the second run of it, and prints what was found.
pub(crate) fn prove(recorded: &Record, again: &Record, json: bool) -> Outcome {
    let verdict = compare(recorded, again);
    print_verdict(&verdict, recorded, again, Pair { a: "record", b: "replay" }, json)?;
    if verdict.is_proof() { Ok(()) } else { Err(Failure::Unequal) }
}
