//! `causeway trace`: show every decoding step: what the pass runs over, the token, the sequence so far.

use crate::failure::{Failure, Outcome};

/// Arguments of `causeway trace`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: &Args) -> Outcome {
    Err(Failure::caller(anyhow::anyhow!("`trace` is not built yet")))
}
