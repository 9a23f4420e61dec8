//! Q3_K: 256 elements of 3 bits in 16 groups, each with a signed 6-bit scale.

use bytemuck::{Pod, Zeroable};

use super::q2_k::two_bits;
use super::{Block, Half, assert_size};
use crate::DType;

/// 256 signed elements of 3 bits, in groups of 16.
///
/// ```text
/// byte  0 … 31    32 … 95           96 … 107   108 109
///       hmask     lower two bits,   scales     d
///                 as in Q2_K
/// hmask:  bit k of byte i is for element i + 32 k; a 0 subtracts 4
/// scales: byte 96 + i, i < 8:   scale i in the low, scale i + 8 in the high nibble: bits 3 … 0
///         byte 104 + i, i < 4:  scales i, i + 4, i + 8, i + 12 in bits 1 0, 3 2, 5 4, 7 6:
///                               bits 5 4; 32 is subtracted from the six
/// value = (d × scale) × q
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct BlockQ3_K {
    pub hmask: [u8; 32],
    pub qs: [u8; 64],
    pub scales: [u8; 12],
    pub d: Half,
}

assert_size!(BlockQ3_K, 110);

impl BlockQ3_K {
    /// The elements in order, −4 to 3.
    #[must_use]
    pub fn quants(&self) -> [i8; 256] {
        let mut quants = two_bits(&self.qs);
        for (plane, out) in quants.chunks_exact_mut(32).enumerate() {
            for (q, byte) in out.iter_mut().zip(&self.hmask) {
                *q += ((byte >> plane & 1) << 2).cast_signed() - 4;
            }
        }
        quants
    }

    /// The scale of each group of 16 elements, −32 to 31.
    #[must_use]
    pub fn scales(&self) -> [i8; 16] {
        std::array::from_fn(|group| {
            let low = self.scales[group % 8] >> (4 * (group / 8)) & 0x0f;
            let high = self.scales[8 + group % 4] >> (2 * (group / 4)) & 3;
            (low | high << 4).cast_signed() - 32
        })
    }
}

impl Block for BlockQ3_K {
    const DTYPE: DType = DType::Q3_K;
    const LEN: usize = 256;

    fn dequantize(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        let (quants, scales) = (self.quants(), self.scales());
        for (group, out) in out.chunks_exact_mut(16).enumerate() {
            let scale = d * f32::from(scales[group]);
            for (value, &q) in out.iter_mut().zip(&quants[group * 16..]) {
                *value = scale * f32::from(q);
            }
        }
    }
}

#[cfg(test)]
mod tests;
