//! Blocks as files: `ab/ab….kv` by the hexadecimal digits of their names, whole or not there.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use causeway_kv_cache::ChainHash;

use super::KvDiskError;
use super::index::Index;

/// Held by the process that has the folder.
const LOCK_NAME: &str = "lock";
/// What the lock's file says; it also shows that the disk takes bytes.
const LOCK_TEXT: &[u8] = b"Blocks of causeway's KV cache; may be deleted while no server runs.\n";
/// Ending of a whole block's file.
const WHOLE: &str = "kv";
/// Ending of a file that is being written.
const PART: &str = "part";
/// Keys and values tell of prompts: nobody else may read them.
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;

/// A folder of blocks, locked until it is given back or dropped.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    lock: File,
}

fn failed(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> KvDiskError {
    move |source| KvDiskError::File { operation, path: path.to_owned(), source }
}

impl Folder {
    /// Makes the folder where it is not there, and locks it.
    pub(super) fn open(path: &Path) -> Result<Self, KvDiskError> {
        let made = DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path);
        made.map_err(failed("make the KV folder", path))?;
        let at = path.join(LOCK_NAME);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(FILE_MODE);
        let mut lock = options.open(&at).map_err(failed("write in the KV folder", &at))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(KvDiskError::InUse { path: path.to_owned() });
            }
            Err(TryLockError::Error(source)) => {
                return Err(failed("lock the KV folder by", &at)(source));
            }
        }
        let said = lock.set_len(0).and_then(|()| lock.write_all(LOCK_TEXT));
        said.map_err(failed("write in the KV folder", &at))?;
        Ok(Self { path: path.to_owned(), lock })
    }

    /// Lets another process have the folder; nothing may be written from then on.
    pub(super) fn unlock(&self) {
        // A lock that stays goes with this process.
        let _ = self.lock.unlock();
    }

    /// Every whole block, those first that were not used the longest; removes what a process
    /// that was killed left half written.
    pub(super) fn scan(&self) -> Result<Index, KvDiskError> {
        let mut files = Vec::new();
        for shard in entries(&self.path)? {
            let name = shard.file_name();
            let is_shard = name.to_str().is_some_and(|name| name.len() == 2 && is_hex(name));
            if is_shard && shard.file_type().is_ok_and(|kind| kind.is_dir()) {
                scan_shard(&shard.path(), &mut files)?;
            }
        }
        files.sort_unstable();
        let mut index = Index::default();
        files.into_iter().for_each(|(_, name, bytes)| index.insert(name, bytes));
        Ok(index)
    }

    /// Where a block is, or is going to be.
    pub(super) fn path_of(&self, name: &ChainHash) -> PathBuf {
        let digits = digits(name);
        self.path.join(&digits[..2]).join(format!("{digits}.{WHOLE}"))
    }

    /// Writes a block beside its place and renames it. It is not synced: what a crash of the
    /// machine damages is found by its hash.
    pub(super) fn write(&self, name: &ChainHash, bytes: &[u8]) -> Result<(), KvDiskError> {
        let whole = self.path_of(name);
        let part = whole.with_extension(PART);
        if let Some(shard) = whole.parent() {
            match DirBuilder::new().mode(FOLDER_MODE).create(shard) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(failed("make", shard)(error));
                }
                _ => {}
            }
        }
        let written = write_part(&part, bytes).and_then(|()| fs::rename(&part, &whole));
        written.map_err(|error| {
            // Half a file takes room; where it cannot go, the next start removes it.
            let _ = fs::remove_file(&part);
            failed("write", &whole)(error)
        })
    }

    /// Reads a block that should have so many bytes; one byte more than that shows a longer file.
    pub(super) fn read(&self, name: &ChainHash, bytes: u64) -> Result<Vec<u8>, KvDiskError> {
        let path = self.path_of(name);
        let read = File::open(&path).and_then(|file| {
            let mut block = Vec::new();
            // A length that comes from the disk may be more than there is memory.
            block.try_reserve_exact(usize::try_from(bytes).unwrap_or(usize::MAX))?;
            file.take(bytes.saturating_add(1)).read_to_end(&mut block)?;
            Ok(block)
        });
        read.map_err(failed("read", &path))
    }

    /// Removes a block; one that is gone already is as good.
    pub(super) fn remove(&self, name: &ChainHash) -> Result<(), KvDiskError> {
        let path = self.path_of(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }

    /// Makes a block the last one used, for the next process that takes the folder up.
    pub(super) fn touch(&self, name: &ChainHash, bytes: u64) {
        // Setting a length, the same one too, sets the time of the last change. Where that
        // fails, the order of leaving is a little worse.
        let file = OpenOptions::new().write(true).open(self.path_of(name));
        let is_whole = |file: &File| file.metadata().is_ok_and(|about| about.len() == bytes);
        if let Some(file) = file.ok().filter(is_whole) {
            let _ = file.set_len(bytes);
        }
    }
}

fn write_part(part: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(FILE_MODE);
    options.open(part)?.write_all(bytes)
}

fn entries(path: &Path) -> Result<Vec<fs::DirEntry>, KvDiskError> {
    let listed = fs::read_dir(path).and_then(Iterator::collect);
    listed.map_err(failed("list", path))
}

/// A whole block: when it was last used (seconds, nanoseconds), its name and its bytes.
type Found = ((i64, i64), ChainHash, u64);

/// Adds the whole blocks of a subfolder.
fn scan_shard(shard: &Path, files: &mut Vec<Found>) -> Result<(), KvDiskError> {
    for entry in entries(shard)? {
        let path = entry.path();
        let Some((name, ending)) = name_of(&path) else { continue };
        let about = entry.metadata().map_err(failed("read", &path))?;
        if !about.is_file() {
            continue;
        }
        if ending == PART {
            fs::remove_file(&path).map_err(failed("remove", &path))?;
        } else {
            files.push(((about.mtime(), about.mtime_nsec()), name, about.len()));
        }
    }
    Ok(())
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

fn digits(name: &ChainHash) -> String {
    use std::fmt::Write as _;
    name.0.iter().fold(String::with_capacity(64), |mut digits, byte| {
        write!(digits, "{byte:02x}").expect("invariant: a String takes what is written");
        digits
    })
}

/// The block and the ending that a path names; `None` where it is nothing that this room wrote.
fn name_of(path: &Path) -> Option<(ChainHash, &'static str)> {
    let (digits, ending) = path.file_name()?.to_str()?.split_once('.')?;
    let ending = [WHOLE, PART].into_iter().find(|known| *known == ending)?;
    let is_here = digits.get(..2) == path.parent()?.file_name()?.to_str();
    if digits.len() != 64 || !is_hex(digits) || !is_here {
        return None;
    }
    let mut name = [0; 32];
    for (byte, pair) in name.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some((ChainHash(name), ending))
}
