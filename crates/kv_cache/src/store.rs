//! Holds the numbers: per layer one slab of keys and one of values.

use causeway_kernels::{KvSlab, KvType, TILE};

use crate::{BlockId, GroupTable, LayerShape};

/// One layer's keys and values.
///
/// A block is `(n_kv_heads, padded_dim, 16)` keys and `(n_kv_heads, 16, padded_dim)` values,
/// each number of the KV type; padding is zeros.
#[derive(Debug)]
pub struct Layer {
    kind: KvType,
    shape: LayerShape,
    keys: Vec<u8>,
    values: Vec<u8>,
}

impl Layer {
    pub(crate) fn new(kind: KvType, shape: LayerShape) -> Self {
        Self { kind, shape, keys: Vec::new(), values: Vec::new() }
    }

    fn padded_dim(&self) -> usize {
        self.shape.head_dim.next_multiple_of(TILE)
    }

    /// Bytes of one KV head in one block of keys (or of values).
    fn head_bytes(&self) -> usize {
        self.padded_dim() * TILE * self.kind.bytes()
    }

    /// Bytes of one block of keys (or of values).
    pub(crate) fn block_bytes(&self) -> usize {
        self.head_bytes() * self.shape.n_kv_heads
    }

    /// The keys and the values of one block.
    pub(crate) fn block(&self, block: BlockId) -> (&[u8], &[u8]) {
        let (size, at) = (self.block_bytes(), block.0 as usize * self.block_bytes());
        (&self.keys[at..at + size], &self.values[at..at + size])
    }

    /// Puts back what `block` gave.
    pub(crate) fn set_block(&mut self, block: BlockId, keys: &[u8], values: &[u8]) {
        let (size, at) = (self.block_bytes(), block.0 as usize * self.block_bytes());
        self.keys[at..at + size].copy_from_slice(keys);
        self.values[at..at + size].copy_from_slice(values);
    }

    /// Makes room for `blocks` blocks; false where memory does not suffice.
    pub(crate) fn grow(&mut self, blocks: usize) -> bool {
        let bytes = blocks * self.block_bytes();
        for slab in [&mut self.keys, &mut self.values] {
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

    /// Writes one position, rounding to the KV type; `k` and `v` are `(n_kv_heads, head_dim)`.
    pub(crate) fn write(&mut self, block: BlockId, lane: usize, k: &[f32], v: &[f32]) {
        let (head_dim, padded) = (self.shape.head_dim, self.padded_dim());
        let size = self.kind.bytes();
        for head in 0..self.shape.n_kv_heads {
            let base = block.0 as usize * self.block_bytes() + head * self.head_bytes();
            let from = head * head_dim..(head + 1) * head_dim;
            for (d, (&k, &v)) in k[from.clone()].iter().zip(&v[from]).enumerate() {
                put(self.kind, &mut self.keys[base + (d * TILE + lane) * size..], k);
                put(self.kind, &mut self.values[base + (lane * padded + d) * size..], v);
            }
        }
    }

    /// What one KV head's queries read.
    #[must_use]
    pub fn slab<'a>(&'a self, table: &'a GroupTable, head: usize) -> KvSlab<'a> {
        KvSlab {
            kind: self.kind,
            keys: &self.keys,
            values: &self.values,
            table: table.blocks_raw(),
            first_tile: table.first_block(),
            stride: self.block_bytes(),
            offset: head * self.head_bytes(),
            padded_dim: self.padded_dim(),
        }
    }
}

/// Rounds to nearest even where the type is narrower.
fn put(kind: KvType, to: &mut [u8], value: f32) {
    match kind {
        KvType::F32 => to[..4].copy_from_slice(&value.to_le_bytes()),
        KvType::F16 => to[..2].copy_from_slice(&half::f16::from_f32(value).to_le_bytes()),
    }
}
