//! `causeway pull`: fetch models by name.

use std::io::Write as _;

use causeway_models::hub::HubName;
use causeway_models::{CATALOGUE, DEFAULT_MODEL, Entry, find};

use crate::failure::{Failure, Outcome};
use crate::model_path;

/// Arguments of `causeway pull`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Names from `causeway models`, or `hf:owner/repo[@revision][:quant]`; the default model where
    /// none is given.
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
    let wanted = if *all {
        CATALOGUE.iter().map(Wanted::Entry).collect()
    } else if names.is_empty() {
        vec![wanted(DEFAULT_MODEL)?]
    } else {
        names.iter().map(|name| wanted(name)).collect::<Result<Vec<_>, _>>()?
    };
    for model in wanted {
        let (name, path) = match model {
            Wanted::Entry(entry) => {
                let path = model_path::pull(entry, &model_path::home()?)?;
                (entry.name.to_owned(), path)
            }
            Wanted::Hub(name) => (name.to_string(), model_path::pull_from_hub(&name)?),
        };
        writeln!(std::io::stdout(), "{name}  {}", path.display())?;
    }
    Ok(())
}

/// One model to fetch.
enum Wanted {
    Entry(&'static Entry),
    Hub(HubName),
}

fn wanted(name: &str) -> Result<Wanted, Failure> {
    let failure = model_path::failure;
    if HubName::is_meant_by(name) {
        let name = HubName::parse(name).map_err(|error| failure(error.into()))?;
        return Ok(Wanted::Hub(name));
    }
    find(name).map(Wanted::Entry).map_err(failure)
}
