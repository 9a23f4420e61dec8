//! The hub's cache on this machine, laid out as its own client lays it out.
//!
//! `models--owner--repo/` has `blobs/` with bytes by their tag, `snapshots/COMMIT/` with links to
//! them by their paths, and `refs/` with the commits that branches stood for.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::choose::{Chosen, choose, is_beside};
use super::client::{Remote, is_commit};
use super::error::HubError;
use super::name::{is_gguf, is_inside};
use super::{Hub, HubName, Wanted};

/// Deepest folder of a snapshot that is looked into, and most files of one.
const DEPTH_MAX: usize = 6;
const FILES_MAX: usize = 100_000;

/// Longest file of a branch: a commit and a line's end.
const REF_BYTES_MAX: usize = 64;

/// One repository in the cache.
#[derive(Debug, Clone)]
pub(crate) struct Repository {
    pub(crate) root: PathBuf,
    locks: PathBuf,
}

impl Repository {
    pub(crate) fn of(hub: &Hub, name: &HubName) -> Self {
        let folder = format!("models--{}--{}", name.owner, name.repo);
        let locks = hub.cache.join(".locks").join(&folder);
        Self { root: hub.cache.join(folder), locks }
    }

    pub(crate) fn blob(&self, etag: &str) -> PathBuf {
        self.root.join("blobs").join(etag)
    }

    /// Where the bytes of an unfinished download are.
    pub(crate) fn part(&self, etag: &str) -> PathBuf {
        self.root.join("blobs").join(format!("{etag}.incomplete"))
    }

    pub(crate) fn snapshot(&self, commit: &str) -> PathBuf {
        self.root.join("snapshots").join(commit)
    }

    /// The commit that a revision stood for when it was last fetched.
    pub(crate) fn commit(&self, revision: &str) -> Option<String> {
        if is_commit(revision) {
            return Some(revision.to_owned());
        }
        let bytes = fs::read(self.root.join("refs").join(revision)).ok()?;
        let text = std::str::from_utf8(bytes.get(..bytes.len().min(REF_BYTES_MAX))?).ok()?.trim();
        is_commit(text).then(|| text.to_owned())
    }

    /// Writes down what a revision stands for.
    pub(crate) fn remember(&self, revision: &str, commit: &str) -> Result<(), HubError> {
        if is_commit(revision) {
            return Ok(());
        }
        let path = self.root.join("refs").join(revision);
        create_parent(&path)?;
        let draft = self.root.join(format!(".ref.{}.draft", std::process::id()));
        let written = fs::write(&draft, commit).and_then(|()| fs::rename(&draft, &path));
        written.map_err(HubError::file("write", path))
    }

    /// Paths of the files of a snapshot whose bytes are there.
    pub(crate) fn files(&self, commit: &str) -> Vec<String> {
        let root = self.snapshot(commit);
        let mut files = Vec::new();
        let mut folders = vec![(root.clone(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten().take(FILES_MAX) {
                let path = entry.path();
                // Follows links: what leads nowhere is not there.
                match fs::metadata(&path) {
                    Ok(found) if found.is_dir() && depth < DEPTH_MAX => {
                        folders.push((path, depth + 1));
                    }
                    Ok(found) if found.is_file() => files.extend(relative(&root, &path)),
                    _ => {}
                }
            }
        }
        files.sort();
        files
    }

    /// Makes a whole blob appear in a snapshot under its path.
    pub(crate) fn link(&self, remote: &Remote) -> Result<(), HubError> {
        let path = self.snapshot(&remote.commit).join(&remote.path);
        let blob = self.blob(&remote.etag);
        create_parent(&path)?;
        let up = "../".repeat(remote.path.split('/').count() + 1);
        let target = PathBuf::from(format!("{up}blobs/{}", remote.etag));
        if fs::read_link(&path).is_ok_and(|seen| seen == target) {
            return Ok(());
        }
        // Made beside its place and renamed, so that a reader never misses it.
        let draft = path.with_extension(format!("{}.draft", std::process::id()));
        fs::remove_file(&draft).ok();
        let linked = symlink(&target, &blob, &draft).and_then(|()| fs::rename(&draft, &path));
        linked.map_err(HubError::file("write", path))
    }

    /// Takes the lock of one blob, which the hub's own client takes too.
    pub(crate) fn lock(&self, etag: &str, waiting: &mut dyn FnMut()) -> Result<File, HubError> {
        let path = self.locks.join(format!("{etag}.lock"));
        create_parent(&path)?;
        let file = File::create(&path).map_err(HubError::file("create", &path))?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(fs::TryLockError::WouldBlock) => waiting(),
            Err(fs::TryLockError::Error(source)) => {
                return Err(HubError::file("lock", path)(source));
            }
        }
        file.lock().map_err(HubError::file("lock", path))?;
        Ok(file)
    }
}

/// The path of a model that is in the cache whole; no network is asked.
pub fn cached(hub: &Hub, name: &HubName) -> Option<PathBuf> {
    let repository = Repository::of(hub, name);
    let commit = repository.commit(name.revision_or_main())?;
    let files = repository.files(&commit);
    let snapshot = repository.snapshot(&commit);
    match choose(&files, &name.wanted).ok()? {
        Chosen::Gguf(parts) => parts.first().map(|first| snapshot.join(first)),
        Chosen::Folder(files) => is_whole(&snapshot, &files).then_some(snapshot),
    }
}

/// The models that a repository's main branch has in the cache, whole, with their paths.
///
/// Each has a name that means it alone: with its quantisation where that is clear, and otherwise
/// with its file.
#[must_use]
pub fn models_of(hub: &Hub, owner: &str, repo: &str) -> Vec<(HubName, PathBuf)> {
    let name = |wanted| {
        let (owner, repo) = (owner.to_owned(), repo.to_owned());
        HubName { owner, repo, revision: None, wanted }
    };
    let repository = Repository::of(hub, &name(Wanted::Default));
    let commit = repository.commit(super::name::MAIN).unwrap_or_default();
    let files = repository.files(&commit);
    let mut found: Vec<(HubName, PathBuf)> = Vec::new();
    let mut add = |name: HubName, path: PathBuf| {
        if found.iter().all(|(_, known)| *known != path) {
            found.push((name, path));
        }
    };
    for file in files.iter().filter(|file| is_gguf(file) && !is_beside(file)) {
        let full = name(Wanted::File(file.clone()));
        let Some(path) = cached(hub, &full) else { continue };
        let stem = &file[..file.len() - ".gguf".len()];
        let stem = stem.split("-00001-of-").next().unwrap_or(stem);
        let quant = stem.rsplit(['-', '.', '/']).next().unwrap_or(stem);
        let short = name(Wanted::Quant(quant.to_owned()));
        let is_clear = cached(hub, &short).as_ref() == Some(&path);
        add(if is_clear { short } else { full }, path);
    }
    let folder = name(Wanted::Quant(super::choose::SAFETENSORS.to_owned()));
    if let Some(path) = cached(hub, &folder) {
        add(folder, path);
    }
    found
}

/// Whether every shard that the index names is there.
fn is_whole(snapshot: &Path, files: &[String]) -> bool {
    #[derive(serde::Deserialize)]
    struct Index {
        weight_map: std::collections::BTreeMap<String, String>,
    }
    let Some(index) = files.iter().find(|file| file.ends_with(".index.json")) else {
        return true;
    };
    let text = fs::read(snapshot.join(index)).unwrap_or_default();
    let index: Result<Index, _> = serde_json::from_slice(&text);
    index.is_ok_and(|index| index.weight_map.values().all(|shard| files.contains(shard)))
}

fn create_parent(path: &Path) -> Result<(), HubError> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent).map_err(HubError::file("create", parent))
}

fn relative(root: &Path, path: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> =
        path.strip_prefix(root).ok()?.iter().map(|part| part.to_str()).collect();
    parts.map(|parts| parts.join("/")).filter(|path| is_inside(path))
}

#[cfg(unix)]
fn symlink(target: &Path, _blob: &Path, at: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, at)
}

/// Where links are a privilege, the bytes themselves go to the snapshot, as with the hub's client.
#[cfg(not(unix))]
fn symlink(_target: &Path, blob: &Path, at: &Path) -> io::Result<()> {
    fs::rename(blob, at)
}
