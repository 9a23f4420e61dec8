//! Sequences and their blocks: full layers keep everything, windowed layers what they can read.

use std::collections::BTreeMap;
use std::ops::Range;

use causeway_request::RequestId;

use crate::group::Group;
use crate::store::{Layer, Tiles};
use crate::table::GroupTable;
use crate::{
    BLOCK_POSITIONS, BlockCounts, BlockId, ChainHash, KvType, LayerView, OpenBlock, Shelf,
};

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

/// What one sequence holds.
#[derive(Debug, Clone)]
struct Sequence {
    /// By group.
    tables: Vec<GroupTable>,
    /// Whole blocks whose contents were offered to those who come later.
    offered: usize,
}

/// The KV cache of an engine.
#[derive(Debug)]
pub struct Cache {
    layers: Vec<Layer>,
    /// Group of each layer.
    group_of: Vec<usize>,
    pub(crate) groups: Vec<Group>,
    sequences: BTreeMap<RequestId, Sequence>,
    pub(crate) shelf: Option<Box<dyn Shelf>>,
    /// Blocks brought back from the shelf.
    pub(crate) restored: u64,
}

impl Cache {
    /// An empty cache; memory is taken as sequences grow.
    #[must_use]
    pub fn new(shape: &KvShape) -> Self {
        let KvShape { layers, kind, positions_max, chunk_max, sequences_max } = shape;
        let mut groups: Vec<Group> = Vec::new();
        let mut group_of = Vec::new();
        let mut kept = Vec::new();
        for layer in layers {
            let is_alike = |g: &Group| g.window == layer.window && g.tiles.suit(layer);
            let known = groups.iter().position(is_alike);
            let group = known.unwrap_or_else(|| {
                // A sequence may hold its window, the pass in flight, the block that a sibling
                // may begin in, and two blocks' edges.
                let held = |window: usize| (window + chunk_max).div_ceil(BLOCK_POSITIONS) + 2;
                let all = positions_max.div_ceil(BLOCK_POSITIONS) + sequences_max;
                let blocks_max = layer.window.map_or(all, |w| (held(w) * sequences_max).min(all));
                let tiles = Tiles::new(*kind, layer.head_dim);
                groups.push(Group::new(layer.window, blocks_max, tiles));
                groups.len() - 1
            });
            kept.push(groups[group].tiles.add(*layer));
            group_of.push(group);
        }
        Self {
            layers: kept,
            group_of,
            groups,
            sequences: BTreeMap::new(),
            shelf: None,
            restored: 0,
        }
    }

    /// Gives `request` room for every position below `end`.
    ///
    /// # Errors
    /// `CacheError`; the sequence then keeps what it had and what it got until then.
    pub fn reserve(&mut self, request: RequestId, end: usize) -> Result<(), CacheError> {
        self.open(request);
        (0..self.groups.len()).try_for_each(|group| self.reserve_in(group, request, end))
    }

    /// Takes room for all `tokens` known positions of a sequence in layers that keep everything,
    /// where that leaves `spare` blocks to others; layers with a window have room for everyone.
    ///
    /// # Errors
    /// `CacheError`; the sequence then keeps what it had.
    pub fn promise(
        &mut self,
        request: RequestId,
        tokens: usize,
        spare: usize,
    ) -> Result<(), CacheError> {
        self.open(request);
        let tables = &self.sequences[&request].tables;
        for (group, table) in self.groups.iter().zip(tables).filter(|(g, _)| g.window.is_none()) {
            let wanted = tokens.div_ceil(BLOCK_POSITIONS).saturating_sub(table.blocks.len());
            if wanted + spare > group.available() {
                return Err(CacheError::NoBlocks { blocks_max: group.blocks_max });
            }
        }
        (0..self.groups.len()).try_for_each(|group| match self.groups[group].window {
            Some(_) => Ok(()),
            None => self.reserve_in(group, request, tokens),
        })
    }

    fn open(&mut self, request: RequestId) {
        let tables = vec![GroupTable::default(); self.groups.len()];
        self.sequences.entry(request).or_insert(Sequence { tables, offered: 0 });
    }

    fn reserve_in(
        &mut self,
        group: usize,
        request: RequestId,
        end: usize,
    ) -> Result<(), CacheError> {
        let sequence = self.sequences.get(&request);
        let sequence = sequence.expect("invariant: a sequence is open before it gets room");
        let table = &sequence.tables[group];
        let wanted = end.div_ceil(BLOCK_POSITIONS).saturating_sub(table.first_block);
        for _ in table.blocks.len()..wanted {
            let block = self.allocate(group)?;
            let tile = self.groups[group].tiles.number(block);
            let sequence = self.sequences.get_mut(&request);
            let sequence = sequence.expect("invariant: a sequence is open before it gets room");
            sequence.tables[group].push(block, tile);
        }
        Ok(())
    }

    /// A block of one group, held once, with memory behind it.
    pub(crate) fn allocate(&mut self, index: usize) -> Result<BlockId, CacheError> {
        self.shelve_next(index);
        let group = &mut self.groups[index];
        let none = CacheError::NoBlocks { blocks_max: group.blocks_max };
        let block = group.allocate().ok_or(none)?;
        if let Err(bytes) = group.tiles.map(group.blocks_max) {
            group.release(block);
            return Err(CacheError::OutOfMemory { bytes });
        }
        Ok(block)
    }

    /// Gives back what no query from the block of `next` on can read.
    ///
    /// Another sequence may still begin where that block begins: as far as whole blocks go, all
    /// that it would read is held.
    pub fn retire(&mut self, request: RequestId, next: usize) {
        let Some(sequence) = self.sequences.get_mut(&request) else {
            return;
        };
        let next = next / BLOCK_POSITIONS * BLOCK_POSITIONS;
        for (group, table) in self.groups.iter_mut().zip(&mut sequence.tables) {
            let keep = group.first_read(next);
            let gone = keep.saturating_sub(table.first_block).min(table.blocks.len());
            table.tiles.drain(..gone);
            table.blocks.drain(..gone).for_each(|block| group.release(block));
            table.first_block += gone;
        }
    }

    /// Forgets a sequence and gives back its blocks.
    pub fn remove(&mut self, request: RequestId) {
        let Some(Sequence { tables, .. }) = self.sequences.remove(&request) else { return };
        for (group, table) in self.groups.iter_mut().zip(tables) {
            // The last block goes first: of what is kept, the ends of chains are given up first.
            table.blocks.into_iter().rev().for_each(|block| group.release(block));
        }
    }

    /// Names the whole blocks of a sequence below `computed`, so that they are kept for others
    /// when it is gone; `chain` has a link for each.
    ///
    /// # Panics
    /// If the chain is too short.
    pub fn offer(&mut self, request: RequestId, chain: &[ChainHash], computed: usize) {
        let Some(sequence) = self.sequences.get_mut(&request) else { return };
        let end = computed / BLOCK_POSITIONS;
        for (group, table) in self.groups.iter_mut().zip(&sequence.tables) {
            let first = sequence.offered.max(table.first_block);
            for (index, link) in chain[..end].iter().enumerate().skip(first) {
                group.name(table.blocks[index - table.first_block], *link);
            }
        }
        sequence.offered = sequence.offered.max(end);
    }

    /// Begins a sequence with the longest kept prefix of `chain` that leaves at least one of
    /// `tokens` positions to compute; gives the number of positions it has.
    ///
    /// A prefix is found only as whole blocks, and only where every group of layers still holds
    /// all that a query after it reads.
    ///
    /// # Panics
    /// If the sequence has begun.
    pub fn attach(&mut self, request: RequestId, chain: &[ChainHash], tokens: usize) -> usize {
        assert!(!self.sequences.contains_key(&request), "a prefix comes first");
        let most = chain.len().min(tokens.saturating_sub(1) / BLOCK_POSITIONS);
        self.restore(&chain[..most]);
        let count = self.longest_prefix(&chain[..most]);
        if count == 0 {
            return 0;
        }
        let tables = self.groups.iter_mut().map(|group| {
            let first_block = group.first_read(count * BLOCK_POSITIONS);
            let kept = |link| group.find(link).expect("invariant: the prefix was found");
            let blocks: Vec<BlockId> = chain[first_block..count].iter().map(kept).collect();
            blocks.iter().for_each(|&block| group.hold(block));
            GroupTable::of(first_block, blocks, &group.tiles)
        });
        let sequence = Sequence { tables: tables.collect(), offered: count };
        self.sequences.insert(request, sequence);
        count * BLOCK_POSITIONS
    }

    /// Blocks of the longest prefix that every group of layers can offer.
    fn longest_prefix(&self, chain: &[ChainHash]) -> usize {
        // By group: kept blocks that end with the one looked at, without a gap.
        let mut runs = vec![0; self.groups.len()];
        let mut longest = 0;
        for (index, link) in chain.iter().enumerate() {
            let count = index + 1;
            let mut is_offered = true;
            for (group, run) in self.groups.iter().zip(&mut runs) {
                *run = if group.find(link).is_some() { *run + 1 } else { 0 };
                if *run == 0 && group.window.is_none() {
                    return longest;
                }
                is_offered &= count - group.first_read(count * BLOCK_POSITIONS) <= *run;
            }
            if is_offered {
                longest = count;
            }
        }
        longest
    }

    /// Begins sequence `target` with the whole blocks of `source` below `length`, where `source`
    /// still holds all that a query after them reads; gives the number of positions it has.
    ///
    /// # Panics
    /// If `target` has begun.
    pub fn fork(&mut self, source: RequestId, target: RequestId, length: usize) -> usize {
        assert!(!self.sequences.contains_key(&target), "a prefix comes first");
        let Some(source) = self.sequences.get(&source) else { return 0 };
        let count = length / BLOCK_POSITIONS;
        let first = |group: &Group| group.first_read(count * BLOCK_POSITIONS);
        let holds = |(group, table): (&Group, &GroupTable)| {
            table.first_block <= first(group) && table.first_block + table.blocks.len() >= count
        };
        if count == 0 || !self.groups.iter().zip(&source.tables).all(holds) {
            return 0;
        }
        let tables = self.groups.iter_mut().zip(&source.tables).map(|(group, table)| {
            let first_block = first(group);
            let range = first_block - table.first_block..count - table.first_block;
            let blocks = table.blocks[range].to_vec();
            blocks.iter().for_each(|&block| group.hold(block));
            GroupTable::of(first_block, blocks, &group.tiles)
        });
        let tables = tables.collect();
        self.sequences.insert(target, Sequence { tables, offered: count });
        count * BLOCK_POSITIONS
    }

    /// Whether a sequence holds anything.
    #[must_use]
    pub fn holds(&self, request: RequestId) -> bool {
        self.sequences.contains_key(&request)
    }

    /// Blocks there can be, over all groups of layers.
    #[must_use]
    pub fn blocks_max(&self) -> usize {
        self.groups.iter().map(|group| group.blocks_max).sum()
    }

    /// Where the blocks are.
    #[must_use]
    pub fn counts(&self) -> BlockCounts {
        let mut counts = BlockCounts { restored: self.restored, ..BlockCounts::default() };
        for group in &self.groups {
            counts.held += group.blocks().held_count();
            counts.cached += group.blocks().idle_count();
            counts.free += group.blocks().free_count();
            counts.evictions += group.evictions();
        }
        counts
    }

    /// Opens the blocks of one layer that hold `places`, one block for each run of rows that
    /// lie in it; what is written there is read by every later query.
    ///
    /// # Panics
    /// If a position was not reserved, or the runs of one block do not follow each other.
    pub fn open_blocks(
        &mut self,
        layer: usize,
        places: &[(RequestId, usize)],
    ) -> Vec<OpenBlock<'_>> {
        let group = self.group_of[layer];
        let block = |&(request, position): &(RequestId, usize)| {
            self.sequences[&request].tables[group].block(position)
        };
        let mut blocks: Vec<(BlockId, Range<usize>)> = Vec::new();
        for (row, id) in places.iter().map(block).enumerate() {
            match blocks.last_mut() {
                Some((last, rows)) if *last == id => rows.end = row + 1,
                _ => blocks.push((id, row..row + 1)),
            }
        }
        self.groups[group].tiles.open(&self.layers[layer], &blocks)
    }

    /// One layer and the blocks of one sequence in it.
    ///
    /// # Panics
    /// If the sequence has no room at all.
    #[must_use]
    pub fn view(&self, request: RequestId, layer: usize) -> (LayerView<'_>, &GroupTable) {
        let group = self.group_of[layer];
        let view = LayerView { layer: self.layers[layer], tiles: &self.groups[group].tiles };
        (view, &self.sequences[&request].tables[group])
    }

    /// Blocks held, by group of layers.
    pub fn held_counts(&self) -> impl Iterator<Item = usize> {
        self.groups.iter().map(|group| group.blocks().held_count())
    }

    /// Bytes that all blocks together take once each has been in use.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        let bytes = |group: &Group| group.tiles.block_bytes().saturating_mul(group.blocks_max);
        self.groups.iter().map(bytes).fold(0, usize::saturating_add)
    }

    /// Bytes of keys and values that one position takes in layers that keep everything.
    #[must_use]
    pub fn position_bytes(&self) -> usize {
        self.groups.iter().map(|group| group.tiles.block_bytes() / BLOCK_POSITIONS).sum()
    }
}
