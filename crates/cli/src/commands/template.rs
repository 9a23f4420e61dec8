//! `causeway template`: render messages through a chat template.

use crate::failure::{Failure, Outcome};

/// Arguments of `causeway template`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: &Args) -> Outcome {
    Err(Failure::caller(anyhow::anyhow!("`template` is not built yet")))
}
