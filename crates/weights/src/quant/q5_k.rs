//! Q5_K: 256 elements of 5 bits in 8 groups, each with a 6-bit scale and a 6-bit minimum.

use bytemuck::{Pod, Zeroable};

use super::q4_k::{quarters, scale_and_shift};
use super::{Block, Half, KScales, assert_size};
use crate::DType;

/// 256 unsigned elements of 5 bits above a minimum, in groups of 32.
///
/// ```text
/// byte  0 1   2 3    4 … 15     16 … 47                    48 … 175
///       d     dmin   KScales    fifth bits: bit k of byte i  lower four bits,
///                               is for element i + 32 k      as in Q4_K
/// value = (d × scale) × (nibble + 16 × fifth bit) − dmin × minimum
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct BlockQ5_K {
    pub d: Half,
    pub dmin: Half,
    pub scales: KScales,
    pub qh: [u8; 32],
    pub qs: [u8; 128],
}

assert_size!(BlockQ5_K, 176);

impl BlockQ5_K {
    /// The elements in order, 0 to 31.
    #[must_use]
    pub fn quants(&self) -> [i8; 256] {
        let mut quants = quarters(&self.qs);
        for (plane, out) in quants.chunks_exact_mut(32).enumerate() {
            for (q, byte) in out.iter_mut().zip(&self.qh) {
                *q |= ((byte >> plane & 1) << 4).cast_signed();
            }
        }
        quants
    }
}

impl Block for BlockQ5_K {
    const DTYPE: DType = DType::Q5_K;
    const LEN: usize = 256;

    fn dequantize(&self, out: &mut [f32]) {
        scale_and_shift(self.d, self.dmin, &self.scales, &self.quants(), out);
    }
}
