//! `causeway pull`: fetch models by name.

use std::io::Write as _;

use causeway_models::{CATALOGUE, DEFAULT_MODEL, find};

use crate::failure::Outcome;
use crate::model_path;

/// Arguments of `causeway pull`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Names from `causeway models`; the default model where none is given.
    #[arg(value_name = "NAME", conflicts_with = "all")]
    names: Vec<String>,
    /// Fetch every model that has a name.
    #[arg(long)]
    all: bool,
}

/// Runs the command: one line `name  path` per model on stdout.
///
/// All names are looked up before the first byte is fetched.
pub(crate) fn run(args: &Args) -> Outcome {
    let Args { names, all } = args;
    let entries = if *all {
        CATALOGUE.iter().collect()
    } else if names.is_empty() {
        vec![find(DEFAULT_MODEL).map_err(model_path::failure)?]
    } else {
        let found: Result<Vec<_>, _> = names.iter().map(|name| find(name)).collect();
        found.map_err(model_path::failure)?
    };
    let home = model_path::home()?;
    for entry in entries {
        let path = model_path::pull(entry, &home)?;
        writeln!(std::io::stdout(), "{}  {}", entry.name, path.display())?;
    }
    Ok(())
}
