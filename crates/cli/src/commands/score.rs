//! `causeway score`: log-likelihood and bits per byte of a text.

use crate::failure::{Failure, Outcome};

/// Arguments of `causeway score`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: &Args) -> Outcome {
    Err(Failure::caller(anyhow::anyhow!("`score` is not built yet")))
}
