//! `causeway tokenize`: turn text into token ids.

use crate::failure::{Failure, Outcome};

/// Arguments of `causeway tokenize`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: &Args) -> Outcome {
    Err(Failure::caller(anyhow::anyhow!("`tokenize` is not built yet")))
}
