//! What the cache keeps, and what of it may go: never a byte that another snapshot needs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::cache::Repository;
use super::choose::{Chosen, choose};
use super::download::length;
use super::error::HubError;
use super::{Hub, HubName, Wanted};

/// One repository in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// `owner/repo`.
    pub repository: String,
    pub path: PathBuf,
    /// Bytes of whole files.
    pub bytes: u64,
    /// Bytes of downloads that broke off.
    pub bytes_partial: u64,
    /// Files of its snapshots, each once.
    pub files: Vec<String>,
}

/// Files of the cache that go together, and the bytes that come free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    paths: Vec<PathBuf>,
    pub bytes: u64,
}

/// Every repository of models in the cache, by name.
#[must_use]
pub fn kept(hub: &Hub) -> Vec<Kept> {
    let mut all: Vec<Kept> =
        fs::read_dir(&hub.cache).into_iter().flatten().flatten().filter_map(|e| of(&e)).collect();
    all.sort_by(|a, b| a.repository.cmp(&b.repository));
    all
}

fn of(entry: &fs::DirEntry) -> Option<Kept> {
    let folder = entry.file_name().into_string().ok()?;
    let (owner, repo) = folder.strip_prefix("models--")?.split_once("--")?;
    let path = entry.path();
    let (mut bytes, mut bytes_partial) = (0, 0);
    for blob in paths_in(&path.join("blobs")) {
        let is_partial = blob.extension().is_some_and(|end| end == "incomplete");
        *(if is_partial { &mut bytes_partial } else { &mut bytes }) += length(&blob);
    }
    let links = paths_in(&path.join("snapshots")).into_iter().flat_map(|snapshot| links(&snapshot));
    let name = |link: PathBuf| {
        let inside = link.strip_prefix(path.join("snapshots")).ok()?.to_str()?.to_owned();
        inside.split_once('/').map(|(_, file)| file.to_owned())
    };
    let files: BTreeSet<String> = links.filter_map(name).collect();
    let files = files.into_iter().collect();
    Some(Kept { repository: format!("{owner}/{repo}"), path, bytes, bytes_partial, files })
}

/// What goes where `name` is removed: the whole repository where no revision, quantisation or file
/// is named, and otherwise its files with the bytes that no other snapshot links to.
///
/// # Errors
/// [`HubError::NotFetched`] where nothing of it is there, or a name that fits several files.
pub fn removal(hub: &Hub, name: &HubName) -> Result<Removal, HubError> {
    let repository = Repository::of(hub, name);
    let absent = || HubError::NotFetched { name: name.to_string() };
    // A link would lead out of the cache.
    let is_own = fs::symlink_metadata(&repository.root).is_ok_and(|found| found.is_dir());
    if !is_own {
        return Err(absent());
    }
    if name.wanted == Wanted::Default && name.revision.is_none() {
        let bytes = paths_in(&repository.root.join("blobs")).iter().map(|blob| length(blob)).sum();
        return Ok(Removal { paths: vec![repository.root], bytes });
    }
    let commit = repository.commit(name.revision_or_main()).ok_or_else(absent)?;
    let files = repository.files(&commit);
    if files.is_empty() {
        return Err(absent());
    }
    let chosen = if name.wanted == Wanted::Default {
        files
    } else {
        match choose(&files, &name.wanted) {
            Ok(Chosen::Gguf(files) | Chosen::Folder(files)) => files,
            Err(fault) => return Err(HubError::Choice { name: name.to_string(), fault }),
        }
    };
    let snapshot = repository.snapshot(&commit);
    let mut paths: Vec<PathBuf> = chosen.iter().map(|file| snapshot.join(file)).collect();
    let going: BTreeSet<PathBuf> = paths.iter().cloned().collect();
    let all = paths_in(&repository.root.join("snapshots"));
    let staying: BTreeSet<PathBuf> = all
        .iter()
        .flat_map(|snapshot| links(snapshot))
        .filter(|link| !going.contains(link))
        .filter_map(|link| fs::canonicalize(link).ok())
        .collect();
    let blobs = fs::canonicalize(repository.root.join("blobs"));
    let blobs = blobs.map_err(HubError::file("read", repository.root.join("blobs")))?;
    let freed: BTreeSet<PathBuf> = going
        .iter()
        .filter_map(|link| fs::canonicalize(link).ok())
        .filter(|blob| blob.parent() == Some(blobs.as_path()) && !staying.contains(blob))
        .collect();
    let bytes = freed.iter().map(|blob| length(blob)).sum();
    paths.extend(freed);
    Ok(Removal { paths, bytes })
}

impl Removal {
    /// Removes it.
    ///
    /// # Errors
    /// [`HubError::File`] with the first path that stays.
    pub fn run(&self) -> Result<(), HubError> {
        for path in &self.paths {
            let removed = match fs::symlink_metadata(path) {
                Ok(found) if found.is_dir() => fs::remove_dir_all(path),
                _ => fs::remove_file(path),
            };
            removed.map_err(HubError::file("remove", path))?;
        }
        Ok(())
    }
}

/// Links and files below a snapshot.
fn links(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in paths_in(&folder) {
            // A link is never gone into: it may lead anywhere.
            match fs::symlink_metadata(&path) {
                Ok(inside) if inside.is_dir() => folders.push(path),
                _ => found.push(path),
            }
        }
    }
    found
}

fn paths_in(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests;
