//! A model from the hub: what is to be fetched and how much that is, then the fetching.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::cache::Repository;
use super::choose::{Chosen, choose};
use super::client::{Client, Remote};
use super::download::{download, length};
use super::error::HubError;
use super::{Hub, HubName, cached};
use crate::Progress;

/// A model on the hub and the files that make it, before a byte of them is fetched.
#[derive(Debug)]
pub struct Plan<'h> {
    hub: &'h Hub,
    name: &'h HubName,
    commit: String,
    /// The model's path inside its snapshot; empty for a folder.
    path: String,
    files: Vec<Remote>,
    /// Bytes of all its files.
    pub bytes_total: u64,
    /// Bytes of it that are not in the cache yet.
    pub bytes_missing: u64,
}

/// Asks the hub what `name` stands for.
///
/// # Errors
/// Where the hub or the model is not there, or nothing may be asked.
pub fn plan<'h>(hub: &'h Hub, name: &'h HubName) -> Result<Plan<'h>, HubError> {
    if hub.offline {
        return Err(HubError::Offline { name: name.to_string(), cache: hub.cache.clone() });
    }
    let client = Client::new(hub, name);
    let (commit, listed) = client.list()?;
    let chosen = choose(&listed, &name.wanted)
        .map_err(|fault| HubError::Choice { name: name.to_string(), fault })?;
    let (path, paths) = match chosen {
        Chosen::Gguf(parts) => (parts.first().cloned().unwrap_or_default(), parts),
        Chosen::Folder(files) => (String::new(), files),
    };
    let files: Result<Vec<Remote>, HubError> =
        paths.iter().map(|path| client.remote(&commit, path)).collect();
    // The hub may say another commit of a file than of the list; the list's is the one asked for.
    let files: Vec<Remote> =
        files?.into_iter().map(|file| Remote { commit: commit.clone(), ..file }).collect();
    let repository = Repository::of(hub, name);
    let missing = |file: &Remote| file.bytes - present(&repository, file).min(file.bytes);
    let bytes_missing = files.iter().map(missing).sum();
    let bytes_total = files.iter().map(|file| file.bytes).sum();
    Ok(Plan { hub, name, commit, path, files, bytes_total, bytes_missing })
}

impl Plan<'_> {
    /// Fetches what is missing and returns the model's path.
    ///
    /// Files get their names when they are whole, the branch its commit when all of them are: what
    /// breaks off leaves the last whole model in place, and parts that the next pull goes on with.
    ///
    /// # Errors
    /// Each says what to do; see [`HubError`].
    pub fn fetch(&self, progress: &mut dyn Progress) -> Result<PathBuf, HubError> {
        let repository = Repository::of(self.hub, self.name);
        self.check_space(&repository)?;
        let client = Client::new(self.hub, self.name);
        let mut bytes_before = 0;
        for file in &self.files {
            let _lock = repository.lock(&file.etag, &mut || progress.waiting())?;
            let mut at = |bytes| progress.at(bytes_before + bytes, self.bytes_total);
            if length(&repository.blob(&file.etag)) != file.bytes {
                download(&client, &repository, file, &mut at)?;
            }
            at(file.bytes);
            repository.link(file)?;
            bytes_before += file.bytes;
        }
        repository.remember(self.name.revision_or_main(), &self.commit)?;
        Ok(repository.snapshot(&self.commit).join(&self.path))
    }

    fn check_space(&self, repository: &Repository) -> Result<(), HubError> {
        let path = repository.root.clone();
        match bytes_free(&path) {
            Some(bytes_free) if bytes_free < self.bytes_missing => {
                Err(HubError::Space { path, bytes_needed: self.bytes_missing, bytes_free })
            }
            _ => Ok(()),
        }
    }
}

/// The path of a model that is in the cache whole, for a command that does not download.
///
/// # Errors
/// [`HubError::NotFetched`], or [`HubError::Offline`] where fetching is forbidden.
pub fn there(hub: &Hub, name: &HubName) -> Result<PathBuf, HubError> {
    cached(hub, name).ok_or_else(|| {
        let (name, cache) = (name.to_string(), hub.cache.clone());
        if hub.offline { HubError::Offline { name, cache } } else { HubError::NotFetched { name } }
    })
}

/// Bytes of a file that the cache has, whole or in part.
fn present(repository: &Repository, file: &Remote) -> u64 {
    let blob = length(&repository.blob(&file.etag));
    if blob == file.bytes { blob } else { length(&repository.part(&file.etag)) }
}

/// Bytes free where `path` will lie, as `df` tells them; `None` where it cannot.
///
/// The standard library does not say, and a wrong guess costs no more than a later refusal.
fn bytes_free(path: &Path) -> Option<u64> {
    let there = path.ancestors().find(|folder| folder.is_dir())?;
    let output = Command::new("df")
        .args(["-P", "-k", "--"])
        .arg(there)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let kilobytes: u64 = text.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
pub(crate) mod tests;
