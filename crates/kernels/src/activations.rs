//! Rows of activations, quantised per 32 values to int8.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{BLOCK, PackError};

/// An activation was infinite or not a number, so no dot product with it has a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("activation {column} of row {row} is not finite")]
pub struct NonFinite {
    pub row: usize,
    pub column: usize,
}

/// One block of 32 activations.
///
/// `scale = amax / 127`, `code = round_half_even(x * (127 / amax))`, in f32.
/// A block whose `amax` is below 2^-120 is zeros with scale 0: its inverse would overflow.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[repr(C)]
pub(crate) struct ActivationBlock {
    /// Codes, four to a word as the dot product reads them.
    pub(crate) codes: [[i8; 4]; 8],
    pub(crate) scale: f32,
    /// `scale * (sum of all 32 codes)`, rounded once.
    pub(crate) scaled_sum: f32,
    /// Sum of all codes.
    pub(crate) sum: i32,
    /// Sums of the codes per 16.
    pub(crate) halves: [i16; 2],
}

/// Whether all values of a block were finite, so that it was quantised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Finite(pub(crate) bool);

/// Blocks whose largest value is below this are zeros.
pub(crate) const AMAX_MIN: f32 = 7.523_164e-37; // 2^-120

/// The first value that was not finite, found by whichever thread.
#[derive(Debug)]
pub(crate) struct Fault(AtomicU64);

impl Fault {
    pub(crate) fn none() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }

    /// Notes a value; the one of the lowest row, and there of the lowest column, stays.
    pub(crate) fn note(&self, row: usize, column: usize) {
        self.0.fetch_min((row as u64) << 32 | column as u64, Ordering::Relaxed);
    }

    pub(crate) fn into_result(self) -> Result<(), NonFinite> {
        let place = self.0.into_inner();
        if place == u64::MAX {
            return Ok(());
        }
        let part = |bits: u64| usize::try_from(bits).expect("invariant: it was an index");
        Err(NonFinite { row: part(place >> 32), column: part(place & u64::from(u32::MAX)) })
    }
}

/// Rows whose blocks lie side by side, so that a tile reads one stream.
pub(crate) const TILE_ROWS: usize = 16;

/// One tile of quantised rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActivationTile<'a> {
    /// First row.
    pub(crate) first: usize,
    /// Rows there are; what the places behind them hold is computed and never read.
    pub(crate) rows: usize,
    pub(crate) places: usize,
    /// `(blocks, places)`.
    pub(crate) blocks: &'a [ActivationBlock],
}

/// Quantised rows, in tiles of sixteen; what is left forms tiles of eight, four, two and one, the
/// last of which may have places to spare.
///
/// A tile of `t` places is `(blocks, t)`.
#[derive(Debug, Clone, Default)]
pub struct QuantisedRows {
    pub(crate) rows: usize,
    /// Blocks of one row.
    pub(crate) blocks: usize,
    pub(crate) tiles: Vec<ActivationBlock>,
}

impl QuantisedRows {
    /// How many rows were quantised last.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of a row, a multiple of 32: shorter rows end in zeros.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.blocks * BLOCK
    }

    /// Takes the memory for `rows` rows of `columns` values.
    ///
    /// # Errors
    /// `PackError::OutOfMemory`.
    pub fn reserve(&mut self, rows: usize, columns: usize) -> Result<(), PackError> {
        let blocks = places_for(rows).saturating_mul(columns.div_ceil(BLOCK));
        let more = blocks.saturating_sub(self.tiles.len());
        let bytes = blocks.saturating_mul(size_of::<ActivationBlock>());
        self.tiles.try_reserve(more).map_err(|_| PackError::OutOfMemory { bytes })
    }

    /// Makes room for `rows` rows of `columns` values.
    pub(crate) fn resize(&mut self, rows: usize, columns: usize) {
        self.rows = rows;
        self.blocks = columns.div_ceil(BLOCK);
        self.tiles.resize(places_for(rows) * self.blocks, ActivationBlock::default());
    }

    /// The tiles, in order of their rows.
    pub(crate) fn each_tile(&self) -> impl Iterator<Item = ActivationTile<'_>> {
        let mut first = 0;
        std::iter::from_fn(move || {
            let left = self.rows - first;
            let places = tile_places(left);
            (places > 0).then(|| {
                let start = first * self.blocks;
                let blocks = &self.tiles[start..start + places * self.blocks];
                let rows = places.min(left);
                let tile = ActivationTile { first, rows, places, blocks };
                first += rows;
                tile
            })
        })
    }

    /// Where each block lies.
    pub(crate) fn places(&self) -> BlockPlaces {
        BlockPlaces { rows: self.rows, blocks: self.blocks }
    }
}

/// Where the blocks of `QuantisedRows` lie: no two in one place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockPlaces {
    rows: usize,
    blocks: usize,
}

impl BlockPlaces {
    /// Index of one block of one row.
    pub(crate) fn place(self, row: usize, block: usize) -> usize {
        debug_assert!(row < self.rows && block < self.blocks, "inside the rows");
        let (first, rows) = tile_of(row, self.rows);
        first * self.blocks + block * rows + (row - first)
    }
}

/// Places of the next tile when `left` rows are left.
///
/// One tile with one to three places to spare takes less time than the three or four it stands
/// for: each reads the weights and unpacks them anew.
pub(crate) fn tile_places(left: usize) -> usize {
    match left {
        0 => 0,
        1 => 1,
        2 => 2,
        3..7 => 4,
        7..13 => 8,
        _ => TILE_ROWS,
    }
}

/// Places that `rows` rows take in their tiles.
fn places_for(rows: usize) -> usize {
    let Some(last) = rows.checked_sub(1) else { return 0 };
    let (first, places) = tile_of(last, rows);
    first.saturating_add(places)
}

/// First row and places of the tile that holds `row`.
pub(crate) fn tile_of(row: usize, rows: usize) -> (usize, usize) {
    let mut first = row / TILE_ROWS * TILE_ROWS;
    if first + TILE_ROWS <= rows {
        return (first, TILE_ROWS);
    }
    loop {
        let size = tile_places(rows - first);
        if row < first + size {
            return (first, size);
        }
        first += size;
    }
}

impl ActivationBlock {
    /// Stores the scale, and the sums of the codes per 16 that stand there.
    pub(crate) fn finish(&mut self, scale: f32, halves: [i32; 2]) {
        #[expect(clippy::cast_possible_truncation, reason = "at most 16 * 127")]
        let short = halves.map(|sum| sum as i16);
        self.halves = short;
        self.sum = halves[0] + halves[1];
        self.scale = scale;
        #[expect(clippy::cast_precision_loss, reason = "at most 32 * 127, exact in f32")]
        let total = self.sum as f32;
        self.scaled_sum = scale * total;
    }
}
