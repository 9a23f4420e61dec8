//! Sequences and their blocks: full layers keep everything, windowed layers what they can read.

use std::collections::BTreeMap;

use causeway_request::RequestId;

use crate::{BLOCK_POSITIONS, BlockId, Blocks, KvType, Layer};

/// What one layer keeps per position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerShape {
    pub n_kv_heads: usize,
    pub head_dim: usize,
    /// Positions a query can read, its own among them; `None` reads all.
    pub window: Option<usize>,
}

/// What a cache is made for.
#[derive(Debug, Clone, PartialEq)]
pub struct KvShape {
    pub layers: Vec<LayerShape>,
    pub kind: KvType,
    /// Positions that all sequences together may hold in layers that keep everything.
    pub positions_max: usize,
    /// Most positions that one pass computes for one sequence.
    pub chunk_max: usize,
    /// Most sequences at a time.
    pub sequences_max: usize,
}

/// Why a sequence could not be given room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CacheError {
    #[error("no free KV block: all {blocks_max} are held")]
    NoBlocks { blocks_max: usize },
    #[error("the KV cache cannot grow by {bytes} bytes: out of memory")]
    OutOfMemory { bytes: usize },
}

/// The blocks of one sequence in the layers of one window.
#[derive(Debug, Clone, Default)]
pub struct GroupTable {
    /// Blocks before this one were given back: no later query can read them.
    first_block: usize,
    blocks: Vec<u32>,
}

impl GroupTable {
    /// Index of the first block still held, in blocks from position 0.
    #[must_use]
    pub fn first_block(&self) -> usize {
        self.first_block
    }

    pub(crate) fn blocks_raw(&self) -> &[u32] {
        &self.blocks
    }

    fn block(&self, position: usize) -> BlockId {
        BlockId(self.blocks[position / BLOCK_POSITIONS - self.first_block])
    }
}

/// Layers that share a window share tables and a pool of blocks.
#[derive(Debug)]
struct Group {
    window: Option<usize>,
    blocks_max: usize,
    blocks: Blocks,
    layers: Vec<usize>,
}

/// The KV cache of an engine.
#[derive(Debug)]
pub struct Cache {
    layers: Vec<Layer>,
    /// Group of each layer.
    group_of: Vec<usize>,
    groups: Vec<Group>,
    sequences: BTreeMap<RequestId, Vec<GroupTable>>,
}

impl Cache {
    /// An empty cache; memory is taken as sequences grow.
    #[must_use]
    pub fn new(shape: &KvShape) -> Self {
        let KvShape { layers, kind, positions_max, chunk_max, sequences_max } = shape;
        let mut groups: Vec<Group> = Vec::new();
        let mut group_of = Vec::new();
        for (index, layer) in layers.iter().enumerate() {
            let known = groups.iter().position(|g| g.window == layer.window);
            let group = known.unwrap_or_else(|| {
                // A sequence may hold its window, the pass in flight, and two blocks' edges.
                let held = |window: usize| (window + chunk_max).div_ceil(BLOCK_POSITIONS) + 1;
                let all = positions_max.div_ceil(BLOCK_POSITIONS) + sequences_max;
                let blocks_max = layer.window.map_or(all, |w| (held(w) * sequences_max).min(all));
                let blocks = Blocks::new(blocks_max);
                groups.push(Group { window: layer.window, blocks_max, blocks, layers: vec![] });
                groups.len() - 1
            });
            groups[group].layers.push(index);
            group_of.push(group);
        }
        let layers = layers.iter().map(|&layer| Layer::new(*kind, layer)).collect();
        Self { layers, group_of, groups, sequences: BTreeMap::new() }
    }

    /// Gives `request` room for every position below `end`.
    ///
    /// # Errors
    /// `CacheError`; the sequence then keeps what it had.
    pub fn reserve(&mut self, request: RequestId, end: usize) -> Result<(), CacheError> {
        let count = self.groups.len();
        let tables = self.sequences.entry(request).or_insert_with(|| vec![<_>::default(); count]);
        for (group, table) in self.groups.iter_mut().zip(tables) {
            let wanted = end.div_ceil(BLOCK_POSITIONS).saturating_sub(table.first_block);
            while table.blocks.len() < wanted {
                let none = CacheError::NoBlocks { blocks_max: group.blocks_max };
                let block = group.blocks.allocate().ok_or(none)?;
                table.blocks.push(block.0);
            }
            let extent = group.blocks.extent();
            for &layer in &group.layers {
                let layer = &mut self.layers[layer];
                if !layer.grow(extent) {
                    let bytes = extent * layer.block_bytes();
                    return Err(CacheError::OutOfMemory { bytes });
                }
            }
        }
        Ok(())
    }

    /// Gives back what no query at `next` or later can read.
    pub fn retire(&mut self, request: RequestId, next: usize) {
        let Some(tables) = self.sequences.get_mut(&request) else {
            return;
        };
        for (group, table) in self.groups.iter_mut().zip(tables) {
            let Some(window) = group.window else { continue };
            let readable = (next + 1).saturating_sub(window);
            let keep = readable / BLOCK_POSITIONS;
            let gone = keep.saturating_sub(table.first_block).min(table.blocks.len());
            table.blocks.drain(..gone).for_each(|block| group.blocks.release(BlockId(block)));
            table.first_block += gone;
        }
    }

    /// Forgets a sequence and gives back its blocks.
    pub fn remove(&mut self, request: RequestId) {
        for (group, table) in
            self.groups.iter_mut().zip(self.sequences.remove(&request).unwrap_or_default())
        {
            table.blocks.into_iter().for_each(|block| group.blocks.release(BlockId(block)));
        }
    }

    /// Writes one position of one layer; `k` and `v` are `(n_kv_heads, head_dim)`.
    ///
    /// # Panics
    /// If the position was not reserved.
    pub fn write(
        &mut self,
        request: RequestId,
        layer: usize,
        position: usize,
        kv: (&[f32], &[f32]),
    ) {
        let table = &self.sequences[&request][self.group_of[layer]];
        let block = table.block(position);
        self.layers[layer].write(block, position % BLOCK_POSITIONS, kv.0, kv.1);
    }

    /// One layer and the blocks of one sequence in it.
    ///
    /// # Panics
    /// If the sequence has no room at all.
    #[must_use]
    pub fn view(&self, request: RequestId, layer: usize) -> (&Layer, &GroupTable) {
        (&self.layers[layer], &self.sequences[&request][self.group_of[layer]])
    }

    /// Blocks held, by group of layers.
    pub fn held_counts(&self) -> impl Iterator<Item = usize> {
        self.groups.iter().map(|group| group.blocks.held_count())
    }

    /// Bytes of keys and values that one position takes in layers that keep everything.
    #[must_use]
    pub fn position_bytes(&self) -> usize {
        self.layers.iter().map(|layer| 2 * layer.block_bytes() / BLOCK_POSITIONS).sum()
    }
}
