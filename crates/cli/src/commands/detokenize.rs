//! `causeway detokenize`: turn token ids into text.

use crate::failure::{Failure, Outcome};

/// Arguments of `causeway detokenize`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: &Args) -> Outcome {
    Err(Failure::caller(anyhow::anyhow!("`detokenize` is not built yet")))
}
