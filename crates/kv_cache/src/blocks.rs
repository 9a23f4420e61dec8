//! Counts blocks: which are free, and how many hold each of the others.

use std::collections::BTreeSet;

/// One block of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct BlockId(pub u32);

/// A pool of at most `blocks_max` blocks, each held by any number of sequences.
///
/// The lowest free block is handed out first, so that a small load touches little memory.
#[derive(Debug, Clone)]
pub struct Blocks {
    /// Holders of every block handed out so far; 0 where it is free again.
    holders: Vec<u32>,
    free: BTreeSet<BlockId>,
    blocks_max: usize,
}

impl Blocks {
    #[must_use]
    pub fn new(blocks_max: usize) -> Self {
        Self { holders: Vec::new(), free: BTreeSet::new(), blocks_max }
    }

    /// Hands out the lowest free block, held once; `None` when every block is held.
    pub fn allocate(&mut self) -> Option<BlockId> {
        if let Some(block) = self.free.pop_first() {
            self.holders[block.0 as usize] = 1;
            return Some(block);
        }
        if self.holders.len() == self.blocks_max {
            return None;
        }
        let block = BlockId(u32::try_from(self.holders.len()).ok()?);
        self.holders.push(1);
        Some(block)
    }

    /// Adds a holder to a block that is held.
    ///
    /// # Panics
    /// If nobody holds it.
    pub fn share(&mut self, block: BlockId) {
        let holders = &mut self.holders[block.0 as usize];
        assert!(*holders > 0, "only a held block can be shared");
        *holders += 1;
    }

    /// Takes one holder away; the block is free when the last is gone.
    ///
    /// # Panics
    /// If nobody holds it.
    pub fn release(&mut self, block: BlockId) {
        let holders = &mut self.holders[block.0 as usize];
        assert!(*holders > 0, "only a held block can be released");
        *holders -= 1;
        if *holders == 0 {
            self.free.insert(block);
        }
    }

    /// Blocks that can still be handed out.
    #[must_use]
    pub fn free_count(&self) -> usize {
        self.blocks_max - self.held_count()
    }

    /// Blocks that somebody holds.
    #[must_use]
    pub fn held_count(&self) -> usize {
        self.holders.len() - self.free.len()
    }

    /// One more than the highest block ever handed out: what a store must have room for.
    #[must_use]
    pub fn extent(&self) -> usize {
        self.holders.len()
    }
}
