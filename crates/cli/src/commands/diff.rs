//! `causeway diff`: compare two records and name the first step that differs, and why.

use crate::failure::{Failure, Outcome};

/// Arguments of `causeway diff`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: &Args) -> Outcome {
    Err(Failure::caller(anyhow::anyhow!("`diff` is not built yet")))
}
