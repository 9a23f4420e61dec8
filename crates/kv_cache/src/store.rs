//! Holds the numbers: tiles of keys and of values, one mapping for a group of layers.

use std::ops::Range;

use causeway_kernels::{KV_BLOCK, KvSlab, KvType, TILE, ask_to_write, narrow_kv, quantise_kv};
use half::f16;
use half::slice::HalfFloatSliceExt;
use memmap2::{MmapMut, MmapOptions};

use crate::{BlockId, GroupTable, LayerShape};

/// Numbers that are rounded to the KV type at once: a call for each lane would cost more.
const AT_ONCE: usize = 128;
/// Blocks whose tiles of one head lie side by side: enough for the processor to see them coming,
/// few enough that a short answer touches little memory.
const RUN: usize = 16;

/// The tiles of all blocks of a group of layers.
///
/// Sixteen blocks are a stretch: layer by layer and head by head a run of sixteen tiles of keys,
/// `(padded_dim, 16)` each, and one of values, `(16, padded_dim)`; padding is zeros.
/// A head's queries then read runs of memory, and all stretches together are dense enough to lie
/// in huge pages. The mapping is as long as all blocks, but only what was written takes memory.
#[derive(Debug)]
pub(crate) struct Tiles {
    kind: KvType,
    padded_dim: usize,
    /// Of one stretch: two for every KV head of every layer.
    runs: usize,
    map: Option<MmapMut>,
}

impl Tiles {
    /// Tiles for layers of this kind and head dimension, without any layer yet.
    pub(crate) fn new(kind: KvType, head_dim: usize) -> Self {
        Self { kind, padded_dim: head_dim.next_multiple_of(TILE), runs: 0, map: None }
    }

    /// Whether a layer's tiles are as long as these.
    pub(crate) fn suit(&self, shape: &LayerShape) -> bool {
        self.padded_dim == shape.head_dim.next_multiple_of(TILE)
    }

    /// Takes a layer in; before any memory is taken.
    pub(crate) fn add(&mut self, shape: LayerShape) -> Layer {
        let first_run = self.runs;
        self.runs += 2 * shape.n_kv_heads;
        Layer { kind: self.kind, shape, first_run }
    }

    fn tile_bytes(&self) -> usize {
        self.kind.tile_bytes(self.padded_dim)
    }

    /// Bytes of the keys and values of one block in all layers.
    pub(crate) fn block_bytes(&self) -> usize {
        self.runs * self.tile_bytes()
    }

    /// The number of a block's tile, counted from the first tile of any run of the first stretch.
    pub(crate) fn number(&self, block: BlockId) -> u32 {
        let (stretch, within) = (block.0 as usize / RUN, block.0 as usize % RUN);
        let number = stretch * self.runs * RUN + within;
        u32::try_from(number).expect("invariant: the mapping was refused if it has too many tiles")
    }

    /// Reserves addresses for `blocks_max` blocks, once.
    ///
    /// # Errors
    /// The bytes that the system or the numbers of tiles have no room for.
    pub(crate) fn map(&mut self, blocks_max: usize) -> Result<(), usize> {
        if self.map.is_some() {
            return Ok(());
        }
        let tiles = blocks_max.div_ceil(RUN).saturating_mul(RUN).saturating_mul(self.runs);
        let bytes = tiles.saturating_mul(self.tile_bytes());
        if u32::try_from(tiles).is_err() {
            return Err(bytes);
        }
        let map = MmapOptions::new().len(bytes).no_reserve_swap().map_anon().map_err(|_| bytes)?;
        // Where the system has no huge pages, the small ones do.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        self.map = Some(map);
        Ok(())
    }

    fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }

    /// Where the tile of `block` lies in `run`.
    fn place(&self, run: usize, block: BlockId) -> Range<usize> {
        let at = (run * RUN + self.number(block) as usize) * self.tile_bytes();
        at..at + self.tile_bytes()
    }

    /// The tiles of one block, run by run: of each layer and head keys, then values.
    pub(crate) fn block(&self, block: BlockId) -> impl Iterator<Item = &[u8]> {
        (0..self.runs).map(move |run| &self.bytes()[self.place(run, block)])
    }

    /// Puts back what `block` gave, one after the other.
    pub(crate) fn set_block(&mut self, block: BlockId, bytes: &[u8]) {
        for (run, bytes) in bytes.chunks_exact(self.tile_bytes()).enumerate().take(self.runs) {
            let place = self.place(run, block);
            self.map.as_deref_mut().unwrap_or_default()[place].copy_from_slice(bytes);
        }
    }

    /// The tiles of some blocks in one layer, in the order of their numbers, to be written at the
    /// same time.
    ///
    /// # Panics
    /// If a block is named twice.
    pub(crate) fn open(
        &mut self,
        layer: &Layer,
        blocks: &[(BlockId, Range<usize>)],
    ) -> Vec<OpenBlock<'_>> {
        let Layer { kind, shape, first_run } = *layer;
        let mut blocks = blocks.to_vec();
        blocks.sort_unstable_by_key(|(block, _)| block.0);
        let mut open: Vec<OpenBlock<'_>> = Vec::with_capacity(blocks.len());
        open.extend(blocks.iter().map(|(_, rows)| {
            let heads = (0..shape.n_kv_heads).map(|_| <[&mut [u8]; 2]>::default()).collect();
            OpenBlock { kind, shape, rows: rows.clone(), heads }
        }));
        let (len, runs) = (self.tile_bytes(), self.runs);
        let mut rest = self.map.as_deref_mut().unwrap_or_default();
        // Tiles that were cut off the front of `rest`.
        let mut gone = 0;
        let in_stretches =
            blocks.chunk_by(|(a, _), (b, _)| a.0 as usize / RUN == b.0 as usize / RUN);
        let mut open_blocks = open.as_mut_slice();
        for blocks in in_stretches {
            let (these, others) = open_blocks.split_at_mut(blocks.len());
            open_blocks = others;
            let first = (blocks[0].0.0 as usize / RUN * runs + first_run) * RUN;
            for run in 0..2 * shape.n_kv_heads {
                for (open, (block, _)) in these.iter_mut().zip(blocks) {
                    let tile = first + run * RUN + block.0 as usize % RUN;
                    open.heads[run / 2][run % 2] = cut_out(&mut rest, (tile - gone) * len, len);
                    gone = tile + 1;
                }
            }
        }
        open
    }
}

/// One layer's part of the tiles of its group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layer {
    kind: KvType,
    shape: LayerShape,
    first_run: usize,
}

/// One layer's keys and values.
#[derive(Debug, Clone, Copy)]
pub struct LayerView<'a> {
    pub(crate) layer: Layer,
    pub(crate) tiles: &'a Tiles,
}

impl<'a> LayerView<'a> {
    /// What one KV head's queries read.
    #[must_use]
    pub fn slab(&self, table: &'a GroupTable, head: usize) -> KvSlab<'a> {
        let run_bytes = RUN * self.tiles.tile_bytes();
        let at = (self.layer.first_run + 2 * head) * run_bytes;
        let keys = self.tiles.bytes().get(at..).unwrap_or_default();
        KvSlab {
            kind: self.layer.kind,
            keys,
            values: keys.get(run_bytes..).unwrap_or_default(),
            table: table.tiles(),
            first_tile: table.first_block(),
            padded_dim: self.tiles.padded_dim,
        }
    }
}

/// One block of one layer, open for the rows of a pass that belong to it.
#[derive(Debug)]
pub struct OpenBlock<'a> {
    kind: KvType,
    shape: LayerShape,
    rows: Range<usize>,
    /// Of each KV head the keys and the values.
    heads: Vec<[&'a mut [u8]; 2]>,
}

impl OpenBlock<'_> {
    /// The rows of the pass, in order of their positions.
    #[must_use]
    pub fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// Asks for the memory of the rows, the first of which stands at `position`, before they are
    /// written: the tiles were last read a pass ago.
    pub fn bring(&mut self, position: usize) {
        let row = self.shape.head_dim.next_multiple_of(TILE) * self.kind.bytes();
        let lanes = position % TILE..position % TILE + self.rows.len();
        for [keys, values] in &mut self.heads {
            ask_to_write(keys);
            ask_to_write(&mut values[lanes.start * row..lanes.end * row]);
        }
    }

    /// Writes one position, rounding to the KV type; `k` and `v` are `(n_kv_heads, head_dim)`.
    ///
    /// # Panics
    /// If they are not.
    pub fn write(&mut self, position: usize, k: &[f32], v: &[f32]) {
        let LayerShape { n_kv_heads, head_dim, .. } = self.shape;
        let (padded, lane) = (head_dim.next_multiple_of(TILE), position % TILE);
        assert_eq!((k.len(), v.len()), (n_kv_heads * head_dim, n_kv_heads * head_dim), "a row");
        let heads = k.chunks_exact(head_dim).zip(v.chunks_exact(head_dim));
        for ((k, v), [keys, values]) in heads.zip(&mut self.heads) {
            let row = lane * padded * self.kind.bytes();
            match self.kind {
                KvType::F32 => {
                    scatter(keys, lane, 0, k.iter().map(|x| x.to_le_bytes()));
                    let to = values[row..].as_chunks_mut().0;
                    v.iter().zip(to).for_each(|(x, to)| *to = x.to_le_bytes());
                }
                KvType::F16 => {
                    let mut halves = [f16::ZERO; AT_ONCE];
                    for (part, k) in k.chunks(AT_ONCE).enumerate() {
                        let halves = &mut halves[..k.len()];
                        halves.convert_from_f32_slice(k);
                        scatter(keys, lane, part * AT_ONCE, halves.iter().map(|x| x.to_le_bytes()));
                    }
                    narrow_kv(v, &mut values[row..][..v.len() * self.kind.bytes()]);
                }
                KvType::Q8_0 => {
                    write_codes(keys, padded, lane, k, |d| d * TILE + lane);
                    write_codes(values, padded, lane, v, |d| row + d);
                }
            }
        }
    }
}

/// Takes `len` bytes at `at` off the front of a slab, which then begins behind them.
fn cut_out<'a>(slab: &mut &'a mut [u8], at: usize, len: usize) -> &'a mut [u8] {
    let (bytes, rest) = std::mem::take(slab)[at..].split_at_mut(len);
    *slab = rest;
    bytes
}

/// Writes the numbers of a key from dimension `at` on into its lane.
fn scatter<const BYTES: usize>(
    keys: &mut [u8],
    lane: usize,
    at: usize,
    numbers: impl Iterator<Item = [u8; BYTES]>,
) {
    let (keys, _) = keys.as_chunks_mut::<BYTES>();
    for (d, number) in (at..).zip(numbers) {
        keys[d * TILE + lane] = number;
    }
}

/// Writes one head's key or value as codes, dimension `d` to `place(d)`, and behind the codes of
/// the tile the scales of its blocks.
fn write_codes(
    tile: &mut [u8],
    padded: usize,
    lane: usize,
    x: &[f32],
    place: impl Fn(usize) -> usize,
) {
    let (numbers, scales) = tile.split_at_mut(padded * TILE);
    let (scales, _) = scales.as_chunks_mut::<2>();
    for (block, x) in x.chunks(KV_BLOCK).enumerate() {
        let mut codes = [0; KV_BLOCK];
        let codes = &mut codes[..x.len()];
        scales[block * TILE + lane] = quantise_kv(x, codes).to_le_bytes();
        for (d, code) in (block * KV_BLOCK..).zip(codes) {
            numbers[place(d)] = code.to_le_bytes()[0];
        }
    }
}
