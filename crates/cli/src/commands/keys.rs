//! `causeway keys`: API keys for `causeway serve`.

use std::fmt::Write as _;
use std::io::Write as _;

use causeway_server::auth::{KeyLimits, Keys, Role, line_for};

use crate::failure::{Failure, Outcome};

/// Bytes of a key that nobody guesses.
const KEY_BYTES: usize = 32;

/// Arguments of `causeway keys`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Draw a key: prints the key, which is kept nowhere, and its line for the file of keys.
    New(New),
}

#[derive(Debug, clap::Args)]
struct New {
    /// Whose key it is; stands in records, logs and refusals.
    name: String,
    /// What it allows: to ask for answers, or to see and end everybody's and read metrics too.
    #[arg(long, default_value = "use", value_parser = ["use", "operate"])]
    role: String,
    /// Most POST requests in any sixty seconds.
    #[arg(long, value_name = "N")]
    requests_per_minute: Option<u32>,
    /// Most answers under way at once.
    #[arg(long, value_name = "N")]
    concurrency: Option<u32>,
    /// Most prompt and completion tokens of a UTC day.
    #[arg(long, value_name = "N")]
    tokens_per_day: Option<u64>,
    /// Print one line of JSON with both.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    match &args.command {
        Command::New(new) => draw(new),
    }
}

fn draw(args: &New) -> Outcome {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).map_err(Failure::world)?;
    let mut key = "cw-".to_owned();
    for byte in bytes {
        write!(key, "{byte:02x}").expect("invariant: a String takes what is written");
    }
    let role = if args.role == "operate" { Role::Operate } else { Role::Use };
    let New { requests_per_minute, concurrency, tokens_per_day, .. } = *args;
    let limits = KeyLimits { requests_per_minute, concurrency, tokens_per_day };
    let line = line_for(&key, &args.name, role, limits);
    // What the server would refuse is refused here.
    Keys::parse(&line).map_err(Failure::caller)?;
    let text = match args.json {
        true => serde_json::json!({ "key": key, "line": line }).to_string(),
        false => format!("{key}\n{line}"),
    };
    // Whoever asked may have closed the pipe.
    let _ = writeln!(std::io::stdout(), "{text}");
    Ok(())
}
