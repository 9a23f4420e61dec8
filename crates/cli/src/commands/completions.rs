//! `causeway completions`: print a completion script for a shell.

use std::io::Write as _;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::failure::Outcome;

/// Arguments of `causeway completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell that will read the script.
    shell: Shell,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "causeway", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(())
}
