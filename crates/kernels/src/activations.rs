//! Rows of activations, quantised per 32 values to int8.

use crate::BLOCK;

/// An activation was infinite or not a number, so no dot product with it has a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("activation {column} of row {row} is not finite")]
pub struct NonFinite {
    pub row: usize,
    pub column: usize,
}

/// Quantised rows: for each block of 32 values one scale, 32 codes and their sums.
///
/// `scale = amax / 127`, `code = round_half_even(x * (127 / amax))`, in f32.
/// A block whose `amax` is below 2^-120 is zeros with scale 0: its inverse would overflow.
#[derive(Debug, Clone, Default)]
pub struct QuantisedRows {
    pub(crate) rows: usize,
    pub(crate) blocks: usize,
    /// Codes, four to a word as the dot product reads them: `(rows, blocks, 8)`.
    pub(crate) codes: Vec<[[i8; 4]; 8]>,
    /// `(rows, blocks)`.
    pub(crate) scales: Vec<f32>,
    /// Sums of the codes per 16: `(rows, blocks, 2)`.
    pub(crate) sums: Vec<[i32; 2]>,
    /// `scale * (sum of all 32 codes)`, rounded once: `(rows, blocks)`.
    pub(crate) scaled_sums: Vec<f32>,
}

/// Blocks whose largest value is below this are zeros.
pub(crate) const AMAX_MIN: f32 = 7.523_164e-37; // 2^-120

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

    /// Makes room for `rows` rows of `columns` values.
    pub(crate) fn resize(&mut self, rows: usize, columns: usize) {
        self.rows = rows;
        self.blocks = columns.div_ceil(BLOCK);
        let count = rows * self.blocks;
        self.codes.resize(count, [[0; 4]; 8]);
        self.scales.resize(count, 0.0);
        self.sums.resize(count, [0; 2]);
        self.scaled_sums.resize(count, 0.0);
    }

    /// Stores one block's scale and sums, given its codes.
    pub(crate) fn finish_block(&mut self, index: usize, scale: f32) {
        let codes = &self.codes[index];
        let sum = |words: &[[i8; 4]]| words.iter().flatten().map(|&c| i32::from(c)).sum::<i32>();
        let sums = [sum(&codes[..4]), sum(&codes[4..])];
        self.scales[index] = scale;
        self.sums[index] = sums;
        #[expect(clippy::cast_precision_loss, reason = "at most 32 * 127, exact in f32")]
        let total = (sums[0] + sums[1]) as f32;
        self.scaled_sums[index] = scale * total;
    }
}
