//! The words of attention: where keys and values lie, and what a query may see.

use std::ops::Range;

use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

/// Positions whose softmax is computed together, aligned to absolute positions; segments are
/// merged in ascending order. Part of the numerics version.
pub const SEGMENT: usize = 128;

/// Positions that lie side by side in one tile of the cache, keys in lanes.
pub const TILE: usize = 16;

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Head dimensions of one position that share a scale in `KvType::Q8_0`.
pub const KV_BLOCK: usize = 32;

/// Numbers that follow a query's values in a segment taken by itself: largest score, sum of
/// exponentials, and padding to whole lanes.
pub const STATE: usize = 16;

/// What a query sees of one segment.
pub(crate) fn range_in(segment: usize, (first, end): (usize, usize)) -> (usize, usize) {
    let start = segment * SEGMENT;
    let low = first.clamp(start, start + SEGMENT);
    (low, end.clamp(low, start + SEGMENT))
}

/// What each of some queries sees of one segment.
pub(crate) fn ranges_in<'a>(
    segment: usize,
    visible: &[(usize, usize)],
    ranges: &'a mut [(usize, usize)],
) -> &'a [(usize, usize)] {
    for (range, &visible) in ranges.iter_mut().zip(visible) {
        *range = range_in(segment, visible);
    }
    &ranges[..visible.len()]
}

/// What each of some queries may see, its sink where there are any, and the first of the segments
/// at hand.
pub(crate) type Seen<'a> = (&'a [(usize, usize)], &'a [f32], usize);

/// How keys and values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvType {
    F32,
    F16,
    /// Codes of eight bits, and an f16 scale for each `KV_BLOCK` head dimensions.
    Q8_0,
}

impl KvType {
    /// Every type there is.
    pub const ALL: [Self; 3] = [Self::F32, Self::F16, Self::Q8_0];

    /// Bytes of one number; of its code where a scale lies elsewhere.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 => 2,
            Self::Q8_0 => 1,
        }
    }

    /// Bytes of one tile of keys, or of values, of one KV head.
    ///
    /// Numbers or codes come first. The scales of `Q8_0` follow, `(blocks, 16)` in f16, and then
    /// zeros up to a whole cache line, so that every tile begins on the edge of one.
    #[must_use]
    pub fn tile_bytes(self, padded_dim: usize) -> usize {
        let numbers = padded_dim * TILE * self.bytes();
        match self {
            Self::F32 | Self::F16 => numbers,
            Self::Q8_0 => {
                let scales = padded_dim.div_ceil(KV_BLOCK) * TILE * size_of::<u16>();
                (numbers + scales).next_multiple_of(LINE)
            }
        }
    }

    /// The type's name on the command line and in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Q8_0 => "q8_0",
        }
    }

    /// The type of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Adding this to a number below 2^22 in size rounds it to the nearest integer, ties to even,
/// and leaves that in the low bits: 1.5 * 2^23.
const TO_INTEGER: f32 = 12_582_912.0;

/// Rounds at most `KV_BLOCK` numbers of one position to `KvType::Q8_0`; gives the f16 bits of
/// their scale. The same bits as `scalar::quantise_kv`, on any processor's first instructions.
///
/// # Panics
/// If there is not a code for each number.
pub fn quantise_kv(x: &[f32], codes: &mut [i8]) -> u16 {
    assert_eq!(x.len(), codes.len(), "a code for each number");
    let largest = x.iter().fold(0, |largest, v| v.abs().to_bits().max(largest));
    let scale = half::f16::from_f32(f32::from_bits(largest) / 127.0);
    if !scale.is_finite() || scale == half::f16::ZERO {
        codes.fill(0);
        return if scale.is_finite() { 0 } else { half::f16::NAN.to_bits() };
    }
    let divisor = scale.to_f32();
    for (code, v) in codes.iter_mut().zip(x) {
        let rounded = (v / divisor).clamp(-127.0, 127.0) + TO_INTEGER;
        *code = i8::from_le_bytes([rounded.to_bits().to_le_bytes()[0]]);
    }
    scale.to_bits()
}

/// Rounds numbers to `KvType::F16`, to nearest even, right where they belong: a copy of what was
/// just rounded elsewhere would wait for every write before it.
///
/// # Panics
/// If `to` is not two bytes for each number, on an even address.
pub fn narrow_kv(x: &[f32], to: &mut [u8]) {
    let halves: &mut [u16] = bytemuck::cast_slice_mut(to);
    halves.reinterpret_cast_mut::<half::f16>().convert_from_f32_slice(x);
}

/// Keys and values of one sequence for one layer and one KV head.
///
/// Tile `t` of the sequence (positions `16 t` to `16 t + 15`) is number
/// `table[t - first_tile]` of both slices; a tile of keys is `(padded_dim, 16)`, one of values
/// `(16, padded_dim)`. Where there are scales, those of a tile follow its codes,
/// `(blocks, 16)` for both: sixteen positions side by side.
#[derive(Debug, Clone, Copy)]
pub struct KvSlab<'a> {
    pub kind: KvType,
    pub keys: &'a [u8],
    pub values: &'a [u8],
    pub table: &'a [u32],
    pub first_tile: usize,
    /// Head dimension, rounded up to a multiple of 16 by zeros.
    pub padded_dim: usize,
}

impl<'a> KvSlab<'a> {
    fn tile<'b>(&self, bytes: &'b [u8], tile: usize) -> &'b [u8] {
        let len = self.kind.tile_bytes(self.padded_dim);
        let at = self.table[tile - self.first_tile] as usize * len;
        &bytes[at..at + len]
    }

    /// Where the keys of a tile begin, if the sequence has it: to ask for them ahead.
    pub(crate) fn keys_at(&self, tile: usize) -> Option<*const u8> {
        let number = *self.table.get(tile.checked_sub(self.first_tile)?)? as usize;
        let at = number * self.kind.tile_bytes(self.padded_dim);
        self.keys.get(at..).map(<[u8]>::as_ptr)
    }

    /// Keys of one tile, `(padded_dim, 16)`, and their scales.
    ///
    /// # Panics
    /// If the sequence does not have it.
    #[must_use]
    pub fn keys_of(&self, tile: usize) -> &'a [u8] {
        self.tile(self.keys, tile)
    }

    /// Values of one tile, `(16, padded_dim)`, and their scales.
    ///
    /// # Panics
    /// If the sequence does not have it.
    #[must_use]
    pub fn values_of(&self, tile: usize) -> &'a [u8] {
        self.tile(self.values, tile)
    }
}

/// Queries that share one KV head.
#[derive(Debug, Clone, Copy, Default)]
pub struct HeadQueries<'a> {
    /// Each already times the attention scale: `head_dim` numbers, at most `padded_dim`.
    pub queries: &'a [&'a [f32]],
    /// First position each may see, and the one past the last.
    pub visible: &'a [(usize, usize)],
    /// Scores become `cap * tanh(score / cap)`, as `math::soft_cap` has it; 0 leaves them.
    pub soft_cap: f32,
    /// A score for each that joins its softmax and brings no value; empty where there are none.
    pub sinks: &'a [f32],
}

impl HeadQueries<'_> {
    /// Some of the queries.
    #[must_use]
    pub(crate) fn part(&self, range: Range<usize>) -> Self {
        Self {
            queries: &self.queries[range.clone()],
            visible: &self.visible[range.clone()],
            sinks: self.sinks.get(range).unwrap_or_default(),
            ..*self
        }
    }

    /// Every segment that one of the queries sees something of.
    #[must_use]
    pub fn segments(&self) -> Range<usize> {
        let first = self.visible.iter().map(|v| v.0).min().unwrap_or(0);
        let end = self.visible.iter().map(|v| v.1).max().unwrap_or(0);
        first / SEGMENT..end.div_ceil(SEGMENT)
    }

    /// Checks what every path relies on.
    pub(crate) fn check(&self, slab: &KvSlab<'_>, outputs: usize) {
        assert_eq!(self.queries.len(), self.visible.len(), "a range for each query");
        assert_eq!(outputs, self.queries.len() * slab.padded_dim, "an output for each query");
        assert!(slab.padded_dim.is_multiple_of(TILE), "padded to whole lanes");
        assert!(self.visible.iter().all(|&(first, end)| first < end), "each sees a position");
        assert!(self.queries.iter().all(|q| q.len() <= slab.padded_dim), "head dimension fits");
        let has_sinks = self.sinks.len() == self.queries.len();
        assert!(has_sinks || self.sinks.is_empty(), "a sink for each query");
    }
}
