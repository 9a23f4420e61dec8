//! Q2_K: 256 elements of 2 bits in 16 groups, each with a 4-bit scale and a 4-bit minimum.

use bytemuck::{Pod, Zeroable};

use super::{Block, Half, assert_size};
use crate::DType;

/// 256 unsigned elements of 2 bits above a minimum, in groups of 16.
///
/// ```text
/// byte  0 … 15                       16 … 79    80 81   82 83
///       per group: scale in the low,  elements   d       dmin
///       minimum in the high nibble
/// elements: 32 bytes for each half of the block; byte i of a half has its elements
///           i, i + 32, i + 64, i + 96 in bits 1 0, 3 2, 5 4, 7 6
/// value = (d × scale) × q − dmin × minimum
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct BlockQ2_K {
    pub scales: [u8; 16],
    pub qs: [u8; 64],
    pub d: Half,
    pub dmin: Half,
}

assert_size!(BlockQ2_K, 84);

impl BlockQ2_K {
    /// The elements in order, 0 to 3.
    #[must_use]
    pub fn quants(&self) -> [i8; 256] {
        two_bits(&self.qs)
    }

    /// The scale of each group of 16 elements, 0 to 15.
    #[must_use]
    pub fn scales(&self) -> [u8; 16] {
        self.scales.map(|byte| byte & 0x0f)
    }

    /// The minimum of each group of 16 elements, 0 to 15.
    #[must_use]
    pub fn mins(&self) -> [u8; 16] {
        self.scales.map(|byte| byte >> 4)
    }
}

impl Block for BlockQ2_K {
    const DTYPE: DType = DType::Q2_K;
    const LEN: usize = 256;

    fn dequantize(&self, out: &mut [f32]) {
        let (d, dmin) = (self.d.to_f32(), self.dmin.to_f32());
        let (quants, scales, mins) = (self.quants(), self.scales(), self.mins());
        for (group, out) in out.chunks_exact_mut(16).enumerate() {
            let (scale, min) = (d * f32::from(scales[group]), dmin * f32::from(mins[group]));
            for (value, &q) in out.iter_mut().zip(&quants[group * 16..]) {
                *value = scale * f32::from(q) - min;
            }
        }
    }
}

/// The 2-bit fields of two halves of 32 bytes, in element order.
pub(super) fn two_bits(bytes: &[u8; 64]) -> [i8; 256] {
    let mut quants = [0; 256];
    for (half, out) in bytes.chunks_exact(32).zip(quants.chunks_exact_mut(128)) {
        for (plane, out) in out.chunks_exact_mut(32).enumerate() {
            for (q, byte) in out.iter_mut().zip(half) {
                *q = (byte >> (2 * plane) & 3).cast_signed();
            }
        }
    }
    quants
}
