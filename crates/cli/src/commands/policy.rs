//! `causeway policy`: check or hash a policy file.

use crate::failure::{Failure, Outcome};

/// Arguments of `causeway policy`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: &Args) -> Outcome {
    Err(Failure::caller(anyhow::anyhow!("`policy` is not built yet")))
}
