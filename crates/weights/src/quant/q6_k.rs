//! Q6_K: 256 elements of 6 bits in 16 groups, each with a signed 8-bit scale.

use bytemuck::{Pod, Zeroable};

use super::{Block, Half, assert_size};
use crate::DType;

/// 256 signed elements of 6 bits, in groups of 16.
///
/// ```text
/// byte  0 … 127            128 … 191         192 … 207             208 209
///       lower four bits    upper two bits    16 signed scales      d
/// each half of the block has 64 bytes of the first and 32 of the second; of its 128 elements
///   element i,      i < 32:  low nibble of byte i,        bits 1 0 of byte i
///   element i + 32:          low nibble of byte i + 32,   bits 3 2 of byte i
///   element i + 64:          high nibble of byte i,       bits 5 4 of byte i
///   element i + 96:          high nibble of byte i + 32,  bits 7 6 of byte i
/// value = (d × scale) × (six bits − 32)
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct BlockQ6_K {
    pub ql: [u8; 128],
    pub qh: [u8; 64],
    pub scales: [i8; 16],
    pub d: Half,
}

assert_size!(BlockQ6_K, 210);

impl BlockQ6_K {
    /// The elements in order, −32 to 31.
    #[must_use]
    pub fn quants(&self) -> [i8; 256] {
        let mut quants = [0; 256];
        let halves = self.ql.chunks_exact(64).zip(self.qh.chunks_exact(32));
        for ((low, high), out) in halves.zip(quants.chunks_exact_mut(128)) {
            for (plane, out) in out.chunks_exact_mut(32).enumerate() {
                let low = &low[32 * (plane % 2)..];
                for (i, q) in out.iter_mut().enumerate() {
                    let nibble = low[i] >> (4 * (plane / 2)) & 0x0f;
                    let upper = high[i] >> (2 * plane) & 3;
                    *q = (nibble | upper << 4).cast_signed() - 32;
                }
            }
        }
        quants
    }
}

impl Block for BlockQ6_K {
    const DTYPE: DType = DType::Q6_K;
    const LEN: usize = 256;

    fn dequantize(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        let quants = self.quants();
        for (group, out) in out.chunks_exact_mut(16).enumerate() {
            let scale = d * f32::from(self.scales[group]);
            for (value, &q) in out.iter_mut().zip(&quants[group * 16..]) {
                *value = scale * f32::from(q);
            }
        }
    }
}
