//! Counts blocks: which are free, which are kept though nobody holds them, who holds the others.

use std::collections::BTreeSet;

/// One block of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct BlockId(pub u32);

/// A pool of at most `blocks_max` blocks, each held by any number of sequences.
///
/// A block is free, or held, or idle: held by nobody, and yet not to be handed out.
/// The lowest free block is handed out first, so that a small load touches little memory.
#[derive(Debug, Clone)]
pub struct Blocks {
    /// Holders of every block handed out so far; 0 where it is free again or idle.
    holders: Vec<u32>,
    free: BTreeSet<BlockId>,
    held: usize,
    blocks_max: usize,
}

impl Blocks {
    #[must_use]
    pub fn new(blocks_max: usize) -> Self {
        Self { holders: Vec::new(), free: BTreeSet::new(), held: 0, blocks_max }
    }

    /// Hands out the lowest free block, held once; `None` when there is no free one.
    pub fn allocate(&mut self) -> Option<BlockId> {
        if let Some(block) = self.free.pop_first() {
            self.holders[block.0 as usize] = 1;
            self.held += 1;
            return Some(block);
        }
        if self.holders.len() == self.blocks_max {
            return None;
        }
        let block = BlockId(u32::try_from(self.holders.len()).ok()?);
        self.holders.push(1);
        self.held += 1;
        Some(block)
    }

    /// Adds a holder to a block that is held or idle.
    ///
    /// # Panics
    /// If it is free.
    pub fn share(&mut self, block: BlockId) {
        assert!(!self.free.contains(&block), "a free block has nothing to share");
        let holders = &mut self.holders[block.0 as usize];
        self.held += usize::from(*holders == 0);
        *holders += 1;
    }

    /// Takes one holder away; true when it was the last, and the block is idle.
    ///
    /// # Panics
    /// If nobody holds it.
    pub fn release(&mut self, block: BlockId) -> bool {
        let holders = &mut self.holders[block.0 as usize];
        assert!(*holders > 0, "only a held block can be released");
        *holders -= 1;
        let is_idle = *holders == 0;
        self.held -= usize::from(is_idle);
        is_idle
    }

    /// Makes an idle block free.
    ///
    /// # Panics
    /// If somebody holds it, or it is free.
    pub fn discard(&mut self, block: BlockId) {
        assert_eq!(self.holders[block.0 as usize], 0, "a held block cannot be free");
        assert!(self.free.insert(block), "a block can become free only once");
    }

    /// Blocks that can be handed out.
    #[must_use]
    pub fn free_count(&self) -> usize {
        self.blocks_max - self.holders.len() + self.free.len()
    }

    /// Blocks that nobody holds and that are not free.
    #[must_use]
    pub fn idle_count(&self) -> usize {
        self.holders.len() - self.free.len() - self.held
    }

    /// Blocks that somebody holds.
    #[must_use]
    pub fn held_count(&self) -> usize {
        self.held
    }

    /// One more than the highest block ever handed out: what a store must have room for.
    #[must_use]
    pub fn extent(&self) -> usize {
        self.holders.len()
    }
}

/// Where the blocks of a cache are, over all groups of layers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlockCounts {
    /// Held by sequences.
    pub held: usize,
    /// Held by nobody, and kept for sequences that begin alike.
    pub cached: usize,
    /// To be handed out without loss.
    pub free: usize,
    /// Kept blocks given up so far because room was needed.
    pub evictions: u64,
    /// Blocks brought back from the shelf so far.
    pub restored: u64,
}
