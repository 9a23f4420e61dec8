//! `causeway logits`: print the logits at each position of a token sequence.

use crate::failure::{Failure, Outcome};

/// Arguments of `causeway logits`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: &Args) -> Outcome {
    Err(Failure::caller(anyhow::anyhow!("`logits` is not built yet")))
}
