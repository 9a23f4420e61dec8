//! The `causeway` command: arguments, files and exit codes.

mod ahead;
mod clock;
mod commands;
mod failure;
mod generate;
mod loaded;
mod model_path;
mod policy_choice;
mod policy_flags;
mod progress_bar;
mod prompting;
mod session;

use std::process::ExitCode;

use clap::Parser;

/// An inference engine whose every answer can be replayed bit for bit.
#[derive(Debug, Parser)]
#[command(name = "causeway", version, propagate_version = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    let outcome = match Cli::try_parse() {
        Ok(cli) => commands::run(cli.command),
        Err(error) if error.use_stderr() && !wants_help(&error) => Err(failure::arguments(&error)),
        // Help and version, which the parser prints where they belong.
        Err(error) => error.exit(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            failure.exit_code()
        }
    }
}

/// Whether nothing was asked for, so that the list of commands is the answer.
fn wants_help(error: &clap::Error) -> bool {
    error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
}
