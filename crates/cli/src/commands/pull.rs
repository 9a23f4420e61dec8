//! `causeway pull`: fetch a model by name.

use crate::failure::{Failure, Outcome};

/// Arguments of `causeway pull`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: &Args) -> Outcome {
    Err(Failure::caller(anyhow::anyhow!("`pull` is not built yet")))
}
