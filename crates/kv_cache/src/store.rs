//! Holds the numbers: per layer and KV head one slab of keys and one of values.

use std::ops::Range;

use causeway_kernels::{KV_BLOCK, KvSlab, KvType, TILE, quantise_kv};
use half::f16;
use half::slice::HalfFloatSliceExt;

use crate::{BlockId, GroupTable, LayerShape};

/// Numbers that are rounded to the KV type at once: a call for each lane would cost more.
const AT_ONCE: usize = 128;

/// One KV head's tiles of keys, `(padded_dim, 16)`, and of values, `(16, padded_dim)`, by the
/// number of their block.
#[derive(Debug, Clone, Default)]
struct Head {
    keys: Vec<u8>,
    values: Vec<u8>,
}

/// One layer's keys and values.
///
/// Each head lies by itself: its queries then read one run of memory, which the processor sees
/// coming, where heads side by side in a block would have it jump from tile to tile. A tile is
/// as long as `KvType::tile_bytes` says; padding is zeros.
#[derive(Debug)]
pub struct Layer {
    kind: KvType,
    shape: LayerShape,
    heads: Vec<Head>,
}

impl Layer {
    pub(crate) fn new(kind: KvType, shape: LayerShape) -> Self {
        Self { kind, shape, heads: vec![Head::default(); shape.n_kv_heads] }
    }

    fn padded_dim(&self) -> usize {
        self.shape.head_dim.next_multiple_of(TILE)
    }

    /// Bytes of one KV head in one block of keys (or of values).
    fn head_bytes(&self) -> usize {
        self.kind.tile_bytes(self.padded_dim())
    }

    /// Bytes of one block of keys (or of values).
    pub(crate) fn block_bytes(&self) -> usize {
        self.head_bytes() * self.shape.n_kv_heads
    }

    /// Keys, then values, of one block, head by head.
    pub(crate) fn block(&self, block: BlockId) -> impl Iterator<Item = &[u8]> {
        let len = self.head_bytes();
        let at = block.0 as usize * len;
        self.heads.iter().flat_map(|head| [&head.keys, &head.values]).map(move |s| &s[at..at + len])
    }

    /// Puts back what `block` gave, one after the other.
    pub(crate) fn set_block(&mut self, block: BlockId, bytes: &[u8]) {
        let len = self.head_bytes();
        let at = block.0 as usize * len;
        let slabs = self.heads.iter_mut().flat_map(|head| [&mut head.keys, &mut head.values]);
        for (slab, bytes) in slabs.zip(bytes.chunks_exact(len)) {
            slab[at..at + len].copy_from_slice(bytes);
        }
    }

    /// Makes room for `blocks` blocks; false where memory does not suffice.
    pub(crate) fn grow(&mut self, blocks: usize) -> bool {
        let bytes = blocks * self.head_bytes();
        for slab in self.heads.iter_mut().flat_map(|head| [&mut head.keys, &mut head.values]) {
            if slab.len() >= bytes {
                continue;
            }
            if slab.try_reserve(bytes - slab.len()).is_err() {
                return false;
            }
            slab.resize(bytes, 0);
        }
        true
    }

    /// The bytes of some blocks, in the order of their numbers, to be written at the same time.
    ///
    /// # Panics
    /// If a block is named twice.
    pub(crate) fn open(&mut self, blocks: &[(BlockId, Range<usize>)]) -> Vec<OpenBlock<'_>> {
        let (kind, shape, len) = (self.kind, self.shape, self.head_bytes());
        let mut blocks = blocks.to_vec();
        blocks.sort_unstable_by_key(|(block, _)| block.0);
        let mut open: Vec<OpenBlock<'_>> = Vec::with_capacity(blocks.len());
        open.extend(blocks.iter().map(|(_, rows)| {
            let heads = Vec::with_capacity(shape.n_kv_heads);
            OpenBlock { kind, shape, rows: rows.clone(), heads }
        }));
        for head in &mut self.heads {
            let (mut keys, mut values) = (head.keys.as_mut_slice(), head.values.as_mut_slice());
            let mut skipped = 0;
            for (open, (block, _)) in open.iter_mut().zip(&blocks) {
                let at = (block.0 as usize - skipped) * len;
                skipped = block.0 as usize + 1;
                open.heads.push((cut_out(&mut keys, at, len), cut_out(&mut values, at, len)));
            }
        }
        open
    }

    /// What one KV head's queries read.
    #[must_use]
    pub fn slab<'a>(&'a self, table: &'a GroupTable, head: usize) -> KvSlab<'a> {
        KvSlab {
            kind: self.kind,
            keys: &self.heads[head].keys,
            values: &self.heads[head].values,
            table: table.blocks_raw(),
            first_tile: table.first_block(),
            padded_dim: self.padded_dim(),
        }
    }
}

/// One block of one layer, open for the rows of a pass that belong to it.
#[derive(Debug)]
pub struct OpenBlock<'a> {
    kind: KvType,
    shape: LayerShape,
    rows: Range<usize>,
    /// Keys and values of each KV head.
    heads: Vec<(&'a mut [u8], &'a mut [u8])>,
}

impl OpenBlock<'_> {
    /// The rows of the pass, in order of their positions.
    #[must_use]
    pub fn rows(&self) -> Range<usize> {
        self.rows.clone()
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
        for ((k, v), (keys, values)) in heads.zip(&mut self.heads) {
            let row = lane * padded * self.kind.bytes();
            match self.kind {
                KvType::F32 => write_head(keys, &mut values[row..], lane, (k, v), |part, to| {
                    part.iter().zip(to).for_each(|(x, to)| *to = x.to_le_bytes());
                }),
                KvType::F16 => write_head(keys, &mut values[row..], lane, (k, v), |part, to| {
                    let mut halves = [f16::ZERO; AT_ONCE];
                    halves[..part.len()].convert_from_f32_slice(part);
                    halves.iter().zip(to).for_each(|(x, to)| *to = x.to_le_bytes());
                }),
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

/// Writes one head's key into its lane and its value into its row; `narrow` rounds to the KV
/// type, to nearest even.
fn write_head<const BYTES: usize>(
    keys: &mut [u8],
    values: &mut [u8],
    lane: usize,
    (k, v): (&[f32], &[f32]),
    narrow: impl Fn(&[f32], &mut [[u8; BYTES]]),
) {
    let (keys, _) = keys.as_chunks_mut::<BYTES>();
    let (values, _) = values.as_chunks_mut::<BYTES>();
    let mut key = [[0; BYTES]; AT_ONCE];
    let parts = k.chunks(AT_ONCE).zip(v.chunks(AT_ONCE)).enumerate();
    for (at, (k, v)) in parts.map(|(index, parts)| (index * AT_ONCE, parts)) {
        narrow(k, &mut key[..k.len()]);
        for (d, key) in (at..).zip(&key[..k.len()]) {
            keys[d * TILE + lane] = *key;
        }
        narrow(v, &mut values[at..at + v.len()]);
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
