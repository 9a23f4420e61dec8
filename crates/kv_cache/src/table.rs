//! Where one sequence's blocks are.

use crate::store::Tiles;
use crate::{BLOCK_POSITIONS, BlockId};

/// The blocks of one sequence in one group of layers.
#[derive(Debug, Clone, Default)]
pub struct GroupTable {
    /// Blocks before this one were given back: no later query can read them.
    pub(crate) first_block: usize,
    pub(crate) blocks: Vec<BlockId>,
    /// Where each block's tiles lie.
    pub(crate) tiles: Vec<u32>,
}

impl GroupTable {
    /// Index of the first block still held, in blocks from position 0.
    #[must_use]
    pub fn first_block(&self) -> usize {
        self.first_block
    }

    pub(crate) fn tiles(&self) -> &[u32] {
        &self.tiles
    }

    pub(crate) fn of(first_block: usize, blocks: Vec<BlockId>, tiles: &Tiles) -> Self {
        let tiles = blocks.iter().map(|&block| tiles.number(block)).collect();
        Self { first_block, blocks, tiles }
    }

    pub(crate) fn push(&mut self, block: BlockId, tile: u32) {
        self.blocks.push(block);
        self.tiles.push(tile);
    }

    pub(crate) fn block(&self, position: usize) -> BlockId {
        self.blocks[position / BLOCK_POSITIONS - self.first_block]
    }
}
