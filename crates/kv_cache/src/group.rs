//! Layers that share a window share a pool of blocks; what it keeps of sequences that are gone.

use std::collections::BTreeMap;

use crate::store::Tiles;
use crate::{BLOCK_POSITIONS, BlockId, Blocks, ChainHash};

/// One pool of blocks, and the index of those whose contents have a name.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) window: Option<usize>,
    pub(crate) tiles: Tiles,
    pub(crate) blocks_max: usize,
    blocks: Blocks,
    named: BTreeMap<ChainHash, BlockId>,
    names: BTreeMap<BlockId, ChainHash>,
    /// Named blocks that nobody holds, those first that were let go the longest ago.
    idle: BTreeMap<u64, BlockId>,
    turns: BTreeMap<BlockId, u64>,
    turn: u64,
    evictions: u64,
}

impl Group {
    pub(crate) fn new(window: Option<usize>, blocks_max: usize, tiles: Tiles) -> Self {
        Self {
            window,
            tiles,
            blocks_max,
            blocks: Blocks::new(blocks_max),
            named: BTreeMap::new(),
            names: BTreeMap::new(),
            idle: BTreeMap::new(),
            turns: BTreeMap::new(),
            turn: 0,
            evictions: 0,
        }
    }

    pub(crate) fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    pub(crate) fn evictions(&self) -> u64 {
        self.evictions
    }

    /// Index of the first block that a query at `position` or later reads.
    pub(crate) fn first_read(&self, position: usize) -> usize {
        self.window.map_or(0, |window| (position + 1).saturating_sub(window) / BLOCK_POSITIONS)
    }

    /// A block to write to; where none is free, the one that was idle the longest is given up.
    pub(crate) fn allocate(&mut self) -> Option<BlockId> {
        if self.blocks.free_count() == 0 {
            let (_, block) = self.idle.pop_first()?;
            self.turns.remove(&block);
            let name = self.names.remove(&block).expect("invariant: an idle block has a name");
            self.named.remove(&name);
            self.blocks.discard(block);
            self.evictions += 1;
        }
        self.blocks.allocate()
    }

    /// The block that `allocate` would give up, and its name.
    pub(crate) fn next_to_leave(&self) -> Option<(BlockId, ChainHash)> {
        if self.blocks.free_count() > 0 { None } else { self.idle_blocks().next() }
    }

    /// Blocks that nobody holds and that are kept, the next to leave first.
    pub(crate) fn idle_blocks(&self) -> impl Iterator<Item = (BlockId, ChainHash)> {
        self.idle.values().map(|block| (*block, self.names[block]))
    }

    /// Blocks that `allocate` can still hand out.
    pub(crate) fn available(&self) -> usize {
        self.blocks_max - self.blocks.held_count()
    }

    /// Adds a holder.
    pub(crate) fn hold(&mut self, block: BlockId) {
        self.blocks.share(block);
        if let Some(turn) = self.turns.remove(&block) {
            self.idle.remove(&turn);
        }
    }

    /// Takes a holder away; a block with a name stays when its last holder goes.
    pub(crate) fn release(&mut self, block: BlockId) {
        if !self.blocks.release(block) {
            return;
        }
        if !self.names.contains_key(&block) {
            self.blocks.discard(block);
            return;
        }
        self.turn += 1;
        self.idle.insert(self.turn, block);
        self.turns.insert(block, self.turn);
    }

    /// Names the contents of a held block; a second block of the same contents stays nameless.
    pub(crate) fn name(&mut self, block: BlockId, name: ChainHash) {
        if self.named.contains_key(&name) || self.names.contains_key(&block) {
            return;
        }
        self.named.insert(name, block);
        self.names.insert(block, name);
    }

    pub(crate) fn find(&self, name: &ChainHash) -> Option<BlockId> {
        self.named.get(name).copied()
    }
}
