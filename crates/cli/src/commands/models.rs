//! `causeway models`: list the models there are and where they are kept.

use crate::failure::{Failure, Outcome};

/// Arguments of `causeway models`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: &Args) -> Outcome {
    Err(Failure::caller(anyhow::anyhow!("`models` is not built yet")))
}
