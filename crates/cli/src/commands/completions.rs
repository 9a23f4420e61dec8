//! `causeway completions`: print a completion script for a shell.

use crate::failure::{Failure, Outcome};

/// Arguments of `causeway completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: &Args) -> Outcome {
    Err(Failure::caller(anyhow::anyhow!("`completions` is not built yet")))
}
