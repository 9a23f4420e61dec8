//! Named blocks outside memory: put there when their room is needed, checked when they come back.

use sha2::{Digest as _, Sha256};

use crate::group::Group;
use crate::{BLOCK_POSITIONS, BlockId, Cache, ChainHash};

/// Bytes of the hash that follows a block's own.
const SEAL_BYTES: usize = 32;

/// Keeps bytes by name where there is more room than in memory; a disk, for example.
///
/// It may forget whatever it wants: what does not come back is computed again. What comes back
/// wrong is found out by its hash, so a shelf need not guard against damage.
pub trait Shelf: std::fmt::Debug + Send + Sync {
    /// Most bytes that it keeps.
    fn bytes_max(&self) -> u64 {
        u64::MAX
    }

    /// Whether `get` would probably find it.
    fn holds(&self, name: &ChainHash) -> bool;

    /// Told that a block of so many bytes leaves memory: whether `put` would keep it, since it
    /// is not there yet and there is time for it.
    fn wants(&mut self, name: &ChainHash, bytes: usize) -> bool;

    /// Keeps `bytes`, or not; called between two steps, so it may not wait.
    fn put(&mut self, name: &ChainHash, bytes: Vec<u8>);

    /// Waits until there is time for another `put`.
    fn wait_for_room(&mut self) {}

    /// What was put there.
    fn get(&mut self, name: &ChainHash) -> Option<Vec<u8>>;

    /// Told when what `get` gave is damaged.
    fn discard(&mut self, name: &ChainHash);
}

/// A block of one group of layers as bytes: layer by layer and head by head its keys and its
/// values, then the SHA-256 over its name and all of them.
fn to_bytes(group: &Group, block: BlockId, name: &ChainHash) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(group.tiles.block_bytes() + SEAL_BYTES);
    group.tiles.block(block).for_each(|tile| bytes.extend_from_slice(tile));
    bytes.extend_from_slice(&seal(name, &bytes));
    bytes
}

fn seal(name: &ChainHash, bytes: &[u8]) -> [u8; SEAL_BYTES] {
    Sha256::new().chain_update(name.0).chain_update(bytes).finalize().into()
}

/// The block's bytes without their seal, where they are whole and of the right length.
fn unsealed<'b>(name: &ChainHash, bytes: &'b [u8], wanted: usize) -> Option<&'b [u8]> {
    let (block, found) = bytes.split_at_checked(wanted)?;
    (found == seal(name, block)).then_some(block)
}

impl Cache {
    /// Gives the prefix cache a shelf for what has no room in memory.
    pub fn set_shelf(&mut self, shelf: Box<dyn Shelf>) {
        self.shelf = Some(shelf);
    }

    /// Puts every kept block that nobody holds on the shelf, as far as it has room, those last
    /// that would leave memory last; they stay in memory too. May wait for the shelf.
    pub fn shelve(&mut self) {
        let Some(shelf) = &mut self.shelf else { return };
        // By group, the last to leave first.
        let mut idle: Vec<Vec<_>> = self.groups.iter().map(|g| g.idle_blocks().collect()).collect();
        idle.iter_mut().for_each(|blocks| blocks.reverse());
        let longest = idle.iter().map(Vec::len).max().unwrap_or(0);
        let ages = 0..longest;
        let of_age = |age| idle.iter().map(move |blocks: &Vec<_>| blocks.get(age)).enumerate();
        let mut leaving = Vec::new();
        let mut room = shelf.bytes_max();
        for (index, block) in ages.flat_map(of_age) {
            let (Some(&block), group) = (block, &self.groups[index]) else { continue };
            let bytes = (group.tiles.block_bytes() + SEAL_BYTES) as u64;
            let Some(rest) = room.checked_sub(bytes) else { break };
            room = rest;
            leaving.push((index, block));
        }
        for (index, block) in leaving.into_iter().rev() {
            shelf.wait_for_room();
            put(&mut **shelf, (index, &self.groups[index]), block);
        }
    }

    /// Shelves the block of a group that has to leave next, where it has to.
    pub(crate) fn shelve_next(&mut self, index: usize) {
        let Some(shelf) = &mut self.shelf else { return };
        let group = &self.groups[index];
        if let Some(leaving) = group.next_to_leave() {
            put(&mut **shelf, (index, group), leaving);
        }
    }

    /// Brings back what of `chain` is on the shelf, as far as it has no gap.
    pub(crate) fn restore(&mut self, chain: &[ChainHash]) {
        if self.shelf.is_none() {
            return;
        }
        let mut held = Vec::new();
        let mut count = chain.len();
        // Groups that keep everything say how far a prefix can reach.
        for index in 0..self.groups.len() {
            if self.groups[index].window.is_none() {
                count = self.restore_in(index, &chain[..count], &mut held);
            }
        }
        for index in 0..self.groups.len() {
            if self.groups[index].window.is_some() {
                let first = self.groups[index].first_read(count * BLOCK_POSITIONS);
                self.restore_in(index, &chain[first.min(count)..count], &mut held);
            }
        }
        for (index, block) in held.into_iter().rev() {
            self.groups[index].release(block);
        }
    }

    /// Holds the blocks of `chain` in one group, in memory or brought back; gives their number
    /// up to the first that is in neither place.
    fn restore_in(
        &mut self,
        index: usize,
        chain: &[ChainHash],
        held: &mut Vec<(usize, BlockId)>,
    ) -> usize {
        for (count, name) in chain.iter().enumerate() {
            let known = self.groups[index].find(name);
            known.iter().for_each(|&block| self.groups[index].hold(block));
            let Some(block) = known.or_else(|| self.bring_back(index, name)) else { return count };
            held.push((index, block));
        }
        chain.len()
    }

    /// Reads one block from the shelf into a block that is then held once, and named.
    fn bring_back(&mut self, index: usize, name: &ChainHash) -> Option<BlockId> {
        let wanted = self.groups[index].tiles.block_bytes();
        let (shelf, shelved) = (self.shelf.as_mut()?, name.in_group(index));
        // A request that waits for room asks again and again.
        if self.groups[index].available() == 0 || !shelf.holds(&shelved) {
            return None;
        }
        let bytes = shelf.get(&shelved)?;
        let Some(numbers) = unsealed(&shelved, &bytes, wanted) else {
            shelf.discard(&shelved);
            return None;
        };
        let block = self.allocate(index).ok()?;
        self.groups[index].tiles.set_block(block, numbers);
        self.groups[index].name(block, *name);
        self.restored += 1;
        Some(block)
    }
}

fn put(
    shelf: &mut dyn Shelf,
    (index, group): (usize, &Group),
    (block, name): (BlockId, ChainHash),
) {
    let shelved = name.in_group(index);
    if shelf.wants(&shelved, group.tiles.block_bytes() + SEAL_BYTES) {
        shelf.put(&shelved, to_bytes(group, block, &shelved));
    }
}
