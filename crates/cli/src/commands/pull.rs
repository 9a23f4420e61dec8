//! `causeway pull`: fetch models by name.

use std::io::Write as _;

use causeway_models::hub::HubName;
use causeway_models::{Catalogue, DEFAULT_MODEL, Model, Named, Source};

use crate::failure::{Failure, Outcome};
use crate::model_path;

/// Arguments of `causeway pull`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Names from `causeway models`, or `hf:owner/repo[@revision][:quant]`; the default model where
    /// none is given.
    #[arg(value_name = "NAME", conflicts_with = "all")]
    names: Vec<String>,
    /// Fetch every model that has a name, those of your own catalogue too.
    #[arg(long)]
    all: bool,
}

/// Runs the command: one line `name  path` per model on stdout.
///
/// All names are looked up before the first byte is fetched.
pub(crate) fn run(args: &Args) -> Outcome {
    let Args { names, all } = args;
    let find = |name: &str| {
        // What the hub has needs no catalogue, so a mistake in one bars it from nobody.
        if HubName::is_meant_by(name) {
            let read = HubName::parse(name).map_err(|error| model_path::failure(error.into()));
            return Ok((name.to_owned(), Named::Hub(read?)));
        }
        let found = model_path::catalogue().and_then(|catalogue| catalogue.find(name));
        Ok((name.to_owned(), found.map_err(model_path::failure)?))
    };
    let wanted = if *all {
        fetchable(&model_path::catalogue().map_err(model_path::failure)?)
    } else if names.is_empty() {
        vec![find(DEFAULT_MODEL)?]
    } else {
        names.iter().map(|name| find(name)).collect::<Result<Vec<_>, Failure>>()?
    };
    for (name, model) in wanted {
        let path = match model {
            Named::Model(entry) => model_path::pull(&entry, &model_path::home()?)?,
            Named::Hub(name) => model_path::pull_from_hub(&name)?,
            Named::Path(path) => path,
        };
        writeln!(std::io::stdout(), "{name}  {}", path.display())?;
    }
    Ok(())
}

/// Every model that is not the user's own file already.
fn fetchable(catalogue: &Catalogue) -> Vec<(String, Named)> {
    let fetched = |Model { name, source, .. }: &Model| {
        let named = match source {
            Source::File(entry) => Named::Model(entry.clone()),
            Source::Hub(hub) => Named::Hub(hub.clone()),
            Source::Path(_) => return None,
        };
        Some((name.clone(), named))
    };
    catalogue.models().iter().filter_map(fetched).collect()
}
