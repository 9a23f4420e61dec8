//! `causeway choose`: run a policy on literal logits.

use crate::failure::{Failure, Outcome};

/// Arguments of `causeway choose`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: &Args) -> Outcome {
    Err(Failure::caller(anyhow::anyhow!("`choose` is not built yet")))
}
