//! Where idle prefixes go when they have no room in memory: a folder, and a limit for it.

use std::path::PathBuf;
use std::sync::Arc;

use causeway_server::observe::logs::kv_disk_trouble;
use causeway_session::KvDisk;

use crate::failure::Failure;

/// The limit where none is given.
const BYTES_MAX: u64 = 4 << 30;
/// Units of a size; `B` and none mean bytes.
const UNITS: &[(&str, u64)] = &[
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

/// A folder for prefixes, and its limit.
#[derive(Debug, clap::Args)]
pub(super) struct KvDiskFlags {
    /// Folder for keys and values of prompts that have no room in memory, and for all of them
    /// when the server ends: the next one begins with them.
    #[arg(long, value_name = "DIR", conflicts_with = "no_prefix_cache")]
    kv_disk: Option<PathBuf>,
    /// Most bytes of files in that folder, such as 512MiB; the longest unused leave first
    /// [default: 4GiB].
    #[arg(long, value_name = "SIZE", requires = "kv_disk", value_parser = size)]
    kv_disk_max: Option<u64>,
}

impl KvDiskFlags {
    /// Takes the folder up, where one is named.
    pub(super) fn open(&self) -> Result<Option<Arc<KvDisk>>, Failure> {
        let Some(folder) = &self.kv_disk else { return Ok(None) };
        let opened = KvDisk::open(folder, self.kv_disk_max.unwrap_or(BYTES_MAX), kv_disk_trouble);
        let failed = |error: causeway_session::KvDiskError| {
            let is_callers_mistake = error.is_callers_mistake();
            Failure::of(error, is_callers_mistake)
        };
        opened.map(|disk| Some(Arc::new(disk))).map_err(failed)
    }
}

/// Reads a size in bytes: a whole number, and a unit or none.
fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no size: a whole number with KiB, MiB, GiB, kB, MB, GB");
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim_start();
    let known = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, bytes)| *bytes);
    let factor = if unit.is_empty() { 1 } else { known.ok_or_else(wrong)? };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    match number.checked_mul(factor) {
        Some(0) => Err("the size is 0 bytes, the least is 1".to_owned()),
        Some(bytes) => Ok(bytes),
        None => Err(format!("`{text}` is more than the greatest size, 2^64-1 bytes")),
    }
}

#[cfg(test)]
mod tests;
