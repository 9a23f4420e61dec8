//! The `causeway` command: arguments, files and exit codes.

mod clock;
mod commands;
mod failure;
mod generate;
mod loaded;
mod model_path;
mod policy_choice;
mod policy_flags;
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
    match commands::run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            failure.exit_code()
        }
    }
}
