//! Q4_K: 256 elements of 4 bits in 8 groups, each with a 6-bit scale and a 6-bit minimum.

use bytemuck::{Pod, Zeroable};

use super::{Block, Half, KScales, assert_size};
use crate::DType;

/// 256 unsigned elements of 4 bits above a minimum, in groups of 32.
///
/// ```text
/// byte  0 1   2 3    4 … 15     16 … 143
///       d     dmin   KScales    32 bytes for each quarter of the block; byte i of a quarter has
///                               its element i in the low, its element i + 32 in the high nibble
/// value = (d × scale) × nibble − dmin × minimum
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct BlockQ4_K {
    pub d: Half,
    pub dmin: Half,
    pub scales: KScales,
    pub qs: [u8; 128],
}

assert_size!(BlockQ4_K, 144);

impl BlockQ4_K {
    /// The elements in order, 0 to 15.
    #[must_use]
    pub fn quants(&self) -> [i8; 256] {
        quarters(&self.qs)
    }
}

impl Block for BlockQ4_K {
    const DTYPE: DType = DType::Q4_K;
    const LEN: usize = 256;

    fn dequantize(&self, out: &mut [f32]) {
        scale_and_shift(self.d, self.dmin, &self.scales, &self.quants(), out);
    }
}

/// The nibbles of four quarters of 32 bytes, in element order.
pub(super) fn quarters(bytes: &[u8; 128]) -> [i8; 256] {
    let mut quants = [0; 256];
    for (quarter, out) in bytes.chunks_exact(32).zip(quants.chunks_exact_mut(64)) {
        let (low, high) = out.split_at_mut(32);
        for (i, byte) in quarter.iter().enumerate() {
            low[i] = (byte & 0x0f).cast_signed();
            high[i] = (byte >> 4).cast_signed();
        }
    }
    quants
}

/// `(d × scale) × q − dmin × minimum` over eight groups of 32.
pub(super) fn scale_and_shift(
    d: Half,
    dmin: Half,
    packed: &KScales,
    quants: &[i8; 256],
    out: &mut [f32],
) {
    let (d, dmin) = (d.to_f32(), dmin.to_f32());
    let (scales, mins) = (packed.scales(), packed.mins());
    for (group, out) in out.chunks_exact_mut(32).enumerate() {
        let (scale, min) = (d * f32::from(scales[group]), dmin * f32::from(mins[group]));
        for (value, &q) in out.iter_mut().zip(&quants[group * 32..]) {
            *value = scale * f32::from(q) - min;
        }
    }
}
