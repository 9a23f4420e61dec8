//! Idle prefixes in a folder with a limit: a shelf whose blocks are files, written behind the step.
//!
//! A folder belongs to one process at a time and serves all its models: names tell them apart.
//! Whatever goes wrong later than the start costs blocks and never a request.

mod folder;
mod index;
mod queue;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use causeway_kv_cache::{ChainHash, Shelf};

use self::folder::Folder;
use self::queue::Queue;

/// Why a folder cannot keep blocks, at the start or later.
#[derive(Debug, thiserror::Error)]
pub enum KvDiskError {
    #[error("cannot {operation} `{}`", .path.display())]
    File { operation: &'static str, path: PathBuf, source: std::io::Error },
    #[error("the KV folder `{}` is in use by another process", .path.display())]
    InUse { path: PathBuf },
    #[error("the limit of KV folder `{}` is {bytes_max} bytes, the least is 1", .path.display())]
    NoRoom { path: PathBuf, bytes_max: u64 },
    #[error("`{}` is damaged and was removed", .path.display())]
    Damaged { path: PathBuf },
    #[error("no thread can be started for the KV folder `{}`", .path.display())]
    Thread { path: PathBuf, source: std::io::Error },
}

impl KvDiskError {
    /// Whether another flag would do; else the disk is at fault.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        match self {
            Self::NoRoom { .. } => true,
            Self::File { .. } | Self::InUse { .. } | Self::Damaged { .. } | Self::Thread { .. } => {
                false
            }
        }
    }
}

/// What a folder holds, and what happened to blocks since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KvDiskCounts {
    pub bytes: u64,
    pub bytes_max: u64,
    /// Files, one for each block.
    pub blocks: usize,
    pub written: u64,
    /// Blocks that were asked for and found, damaged ones among them.
    pub read: u64,
    /// Blocks whose length or hash was wrong when they were read.
    pub damaged: u64,
    /// Blocks removed since others needed their room, the longest unused first.
    pub evicted: u64,
    /// Blocks that were not kept: the disk was too slow, full or out of order, or the block
    /// larger than the limit.
    pub lost: u64,
}

/// Told of trouble as it comes, on whatever thread that is; of a disk that fails again and
/// again it is told once, until the disk works again.
pub type Told = fn(&KvDiskError);

/// A folder that keeps blocks, and the thread that writes them.
#[derive(Debug)]
pub struct KvDisk {
    queue: Arc<Queue>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl KvDisk {
    /// Takes a folder up, or makes it: what an earlier process left in it counts and is found,
    /// half-written files are removed, and files of other names are left alone.
    ///
    /// # Errors
    /// A folder that cannot be read and written, or that another process has.
    pub fn open(path: &Path, bytes_max: u64, told: Told) -> Result<Self, KvDiskError> {
        if bytes_max == 0 {
            return Err(KvDiskError::NoRoom { path: path.to_owned(), bytes_max });
        }
        let folder = Folder::open(path)?;
        let index = folder.scan()?;
        let queue = Arc::new(Queue::new(folder, index, bytes_max, told)?);
        let seen = Arc::clone(&queue);
        let writer = std::thread::Builder::new().name("kv-disk".to_owned());
        let writer = writer.spawn(move || seen.run());
        let writer =
            writer.map_err(|source| KvDiskError::Thread { path: path.to_owned(), source })?;
        Ok(Self { queue, writer: Mutex::new(Some(writer)) })
    }

    /// The folder as the shelf of one cache; it is shared with all others.
    #[must_use]
    pub fn shelf(&self) -> Box<dyn Shelf> {
        Box::new(DiskShelf(Arc::clone(&self.queue)))
    }

    #[must_use]
    pub fn counts(&self) -> KvDiskCounts {
        self.queue.counts()
    }

    /// Writes what still waits and gives the folder back; nothing is kept from then on.
    pub fn close(&self) {
        self.queue.close();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            // A writer that panicked has told that nothing is kept any more.
            let _ = writer.join();
            self.queue.unlock();
        }
    }
}

impl Drop for KvDisk {
    fn drop(&mut self) {
        self.close();
    }
}

/// One cache's way to the folder.
#[derive(Debug)]
struct DiskShelf(Arc<Queue>);

impl Shelf for DiskShelf {
    fn bytes_max(&self) -> u64 {
        self.0.counts().bytes_max
    }

    fn holds(&self, name: &ChainHash) -> bool {
        self.0.holds(name)
    }

    fn wants(&mut self, name: &ChainHash, bytes: usize) -> bool {
        self.0.wants(name, bytes)
    }

    fn put(&mut self, name: &ChainHash, bytes: Vec<u8>) {
        self.0.put(name, bytes);
    }

    fn wait_for_room(&mut self) {
        self.0.wait_for_room();
    }

    fn get(&mut self, name: &ChainHash) -> Option<Vec<u8>> {
        self.0.get(name)
    }

    fn discard(&mut self, name: &ChainHash) {
        self.0.discard(name);
    }
}

#[cfg(test)]
mod tests;
