//! A file at an address of its own: what it must be is known by its SHA-256, and no hub is asked.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Hub;
use super::client::{Ask, Client, Remote, fault, header};
use super::download::{Way, download_by};
use super::error::{AnswerFault, HubError};
use crate::{Entry, ModelsError, Progress};

/// Fetches what `entry` says from `url` into `folder` and returns its path there: checked, synced,
/// and not yet under the model's name.
///
/// # Errors
/// [`ModelsError::Hub`] with what the server did wrong, or [`ModelsError::DiskFull`].
pub(crate) fn fetch_address(
    url: &str,
    entry: &Entry,
    folder: &Path,
    progress: &mut dyn Progress,
) -> Result<PathBuf, ModelsError> {
    fetch_by(&nowhere(), url, entry, folder, progress)
}

/// Where the bytes of an unfinished download are; `folder` is that of all of them.
pub(crate) fn partial(folder: &Path, entry: &Entry) -> PathBuf {
    folder.join(format!("{}.incomplete", entry.sha256))
}

/// No hub: nothing has its origin, so nobody is shown a token.
fn nowhere() -> Hub {
    Hub {
        endpoint: String::new(),
        cache: PathBuf::new(),
        token: None,
        offline: false,
        pause: Duration::from_secs(1),
        stall: Duration::from_secs(30),
    }
}

fn fetch_by(
    hub: &Hub,
    url: &str,
    entry: &Entry,
    folder: &Path,
    progress: &mut dyn Progress,
) -> Result<PathBuf, ModelsError> {
    let client = Client::nameless(hub);
    let bytes = match entry.bytes {
        Some(bytes) => bytes,
        None => announced(&client, url)?,
    };
    let etag = entry.sha256.to_string();
    let (part, whole) = (partial(folder, entry), folder.join(&etag));
    let way = Way { url: url.to_owned(), part, whole };
    let remote = Remote { path: entry.name.clone(), etag, bytes, commit: String::new() };
    let mut at = |there| progress.at(there, bytes);
    download_by(&client, &way, &remote, &mut at).map_err(|error| match error {
        HubError::Space { path, bytes_needed, .. } => ModelsError::DiskFull { path, bytes_needed },
        error => ModelsError::Hub(error),
    })?;
    Ok(way.whole)
}

/// The length that the server tells of a file; none of its bytes are read.
fn announced(client: &Client<'_>, url: &str) -> Result<u64, HubError> {
    client.retried(|tries| {
        let answer = client.send(url, Ask::default(), tries)?;
        client.check_status(url, &answer.response, url, tries)?;
        let length = header(answer.response.headers(), "content-length");
        let bytes = length.and_then(|text| text.trim().parse().ok());
        let lacks = || super::client::Trouble::Final(fault(url, tries, AnswerFault::NoLength));
        bytes.ok_or_else(lacks)
    })
}

#[cfg(test)]
mod tests;
