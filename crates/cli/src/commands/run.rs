//! `causeway run`: answer a prompt, stream the text, and print one line of account.

use crate::failure::{Failure, Outcome};

/// Arguments of `causeway run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: &Args) -> Outcome {
    Err(Failure::caller(anyhow::anyhow!("`run` is not built yet")))
}
