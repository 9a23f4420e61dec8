//! `causeway bench kernels`: each operation against the machine's own limits.

use crate::failure::{Failure, Outcome};

/// Arguments of `causeway bench kernels`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: &Args) -> Outcome {
    Err(Failure::caller(anyhow::anyhow!("not yet")))
}
