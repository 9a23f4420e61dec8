//! The folder where models live, and what a user means by a model's name.

use std::path::{Path, PathBuf};

use crate::hub::HubName;
use crate::{Catalogue, Entry, Hashes, ModelsError};

/// The folder that `$CAUSEWAY_HOME` names; nothing in it need exist.
#[derive(Debug, Clone)]
pub struct Home {
    root: PathBuf,
}

/// How a model of the catalogue stands on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Not fetched.
    Absent,
    /// Fetched, and its hash is the catalogue's.
    Ready,
    /// A file is there whose length or hash is another.
    Damaged,
}

impl Home {
    /// The home at `root`.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder that holds the model files.
    #[must_use]
    pub fn models(&self) -> PathBuf {
        self.root.join("models")
    }

    /// Where the file of a catalogue model belongs, fetched or not.
    #[must_use]
    pub fn file_of(&self, entry: &Entry) -> PathBuf {
        self.models().join(&entry.file_name)
    }

    /// Where downloads from an address are kept until they are whole.
    pub(crate) fn partial(&self) -> PathBuf {
        self.models().join(".partial")
    }

    /// Where the bytes of such a download lie, where one broke off.
    #[must_use]
    pub fn partial_of(&self, entry: &Entry) -> PathBuf {
        crate::hub::partial(&self.partial(), entry)
    }

    /// Where a user's own catalogue is looked for.
    #[must_use]
    pub fn catalogue(&self) -> PathBuf {
        self.root.join("catalogue.toml")
    }

    /// The hashes remembered in this home.
    #[must_use]
    pub fn hashes(&self) -> Hashes {
        Hashes::new(self.root.join("hashes.txt"))
    }

    /// Whether a catalogue model is fetched and whole.
    ///
    /// # Errors
    /// [`ModelsError::File`] when a file is there and cannot be read.
    pub fn state(&self, entry: &Entry) -> Result<State, ModelsError> {
        match self.checked(entry) {
            Ok(_) => Ok(State::Ready),
            Err(ModelsError::NotFetched { .. }) => Ok(State::Absent),
            Err(ModelsError::Damaged { .. }) => Ok(State::Damaged),
            Err(error) => Err(error),
        }
    }

    /// The path of a catalogue model, once its length and hash are the catalogue's.
    ///
    /// # Errors
    /// [`ModelsError::NotFetched`], [`ModelsError::Damaged`], or [`ModelsError::File`].
    pub fn checked(&self, entry: &Entry) -> Result<PathBuf, ModelsError> {
        let path = self.file_of(entry);
        let metadata = match path.metadata() {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(ModelsError::NotFetched { name: entry.name.clone() });
            }
            Err(source) => {
                return Err(ModelsError::File { operation: "read", path, source });
            }
        };
        let found = self.hashes().sha256_of(&path)?;
        let is_long = entry.bytes.is_none_or(|bytes| bytes == metadata.len());
        if is_long && found == entry.sha256 {
            return Ok(path);
        }
        let entry = Box::new(entry.clone());
        Err(ModelsError::Damaged { entry, path, bytes: metadata.len(), found })
    }
}

/// What a user's name for a model means, before anything is known of this machine's models.
#[derive(Debug, Clone, PartialEq)]
pub enum Named {
    /// A file or folder that is there.
    Path(PathBuf),
    /// A model of the catalogue, fetched or not.
    Model(Entry),
    /// A model of the hub, fetched or not.
    Hub(HubName),
}

/// Reads what a user typed where a model is wanted.
///
/// What begins with `hf:` is a name on the hub; what contains a separator or ends in `.gguf` is a
/// path. Anything else is a catalogue name first, and only then the name of something in the
/// current folder. The catalogue is read where it is needed: a mistake in it bars no path.
///
/// # Errors
/// [`ModelsError::NoSuchPath`], [`ModelsError::UnknownName`], [`ModelsError::NothingThere`] or
/// [`ModelsError::Hub`], all the caller's mistake, and those of the catalogue.
pub fn named(
    text: &str,
    catalogue: &dyn Fn() -> Result<Catalogue, ModelsError>,
) -> Result<Named, ModelsError> {
    if HubName::is_meant_by(text) {
        return Ok(Named::Hub(HubName::parse(text)?));
    }
    let path = Path::new(text);
    if looks_like_path(text) {
        let path = path.to_owned();
        return if path.exists() {
            Ok(Named::Path(path))
        } else {
            Err(ModelsError::NoSuchPath { path })
        };
    }
    match catalogue()?.find(text) {
        Ok(named) => Ok(named),
        Err(ModelsError::UnknownName { .. }) if !text.is_empty() && path.exists() => {
            Ok(Named::Path(path.to_owned()))
        }
        Err(unknown) => Err(unknown),
    }
}

fn looks_like_path(text: &str) -> bool {
    let ends_in_gguf = Path::new(text).extension().is_some_and(|e| e.eq_ignore_ascii_case("gguf"));
    ends_in_gguf || text.contains(std::path::is_separator)
}

#[cfg(test)]
mod tests;
