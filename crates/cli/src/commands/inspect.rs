//! `causeway inspect`: show a model file: metadata, tensors, sizes and values.

use crate::failure::{Failure, Outcome};

/// Arguments of `causeway inspect`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: &Args) -> Outcome {
    Err(Failure::caller(anyhow::anyhow!("`inspect` is not built yet")))
}
