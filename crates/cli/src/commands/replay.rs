//! `causeway replay`: run a record again and prove it equal, or name the first step that differs.

use crate::failure::{Failure, Outcome};

/// Arguments of `causeway replay`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: &Args) -> Outcome {
    Err(Failure::caller(anyhow::anyhow!("`replay` is not built yet")))
}
