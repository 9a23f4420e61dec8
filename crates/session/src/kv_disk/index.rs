//! Which blocks are in the folder, how large they are, and which was not used the longest.

use std::collections::BTreeMap;

use causeway_kv_cache::ChainHash;

/// One file.
#[derive(Debug, Clone, Copy)]
struct Entry {
    bytes: u64,
    /// Of the last use.
    turn: u64,
}

/// The files of a folder by their names and in the order of their use.
#[derive(Debug, Default)]
pub(super) struct Index {
    entries: BTreeMap<ChainHash, Entry>,
    by_turn: BTreeMap<u64, ChainHash>,
    turn: u64,
    bytes: u64,
}

impl Index {
    /// Bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn count(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn contains(&self, name: &ChainHash) -> bool {
        self.entries.contains_key(name)
    }

    /// Adds a file, the last one used.
    pub(super) fn insert(&mut self, name: ChainHash, bytes: u64) {
        self.remove(&name);
        self.turn += 1;
        self.entries.insert(name, Entry { bytes, turn: self.turn });
        self.by_turn.insert(self.turn, name);
        self.bytes += bytes;
    }

    /// Takes a file out; gives its bytes where it was there.
    pub(super) fn remove(&mut self, name: &ChainHash) -> Option<u64> {
        let Entry { bytes, turn } = self.entries.remove(name)?;
        self.by_turn.remove(&turn);
        self.bytes -= bytes;
        Some(bytes)
    }

    /// Makes a file the last one used; gives its bytes where it is there.
    pub(super) fn touch(&mut self, name: &ChainHash) -> Option<u64> {
        let bytes = self.remove(name)?;
        self.insert(*name, bytes);
        Some(bytes)
    }

    /// Takes out the file that was not used the longest.
    pub(super) fn pop_oldest(&mut self) -> Option<(ChainHash, u64)> {
        let (_, name) = self.by_turn.first_key_value()?;
        let name = *name;
        let bytes = self.remove(&name).expect("invariant: both maps have the same files");
        Some((name, bytes))
    }
}
