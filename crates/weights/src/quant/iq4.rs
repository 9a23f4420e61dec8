//! IQ4_NL and IQ4_XS: 4 bits that choose one of sixteen uneven steps.

use bytemuck::{Pod, Zeroable};

use super::q4::nibbles;
use super::{Block, Half, assert_size};
use crate::DType;

/// The steps, denser around zero.
const STEPS: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// The step that each nibble of 16 bytes chooses, low nibbles first.
fn steps(bytes: &[u8; 16]) -> [i8; 32] {
    nibbles(bytes).map(|nibble| STEPS[usize::from(nibble.cast_unsigned())])
}

/// 32 elements with one scale.
///
/// ```text
/// byte  0 1   2 … 17
///       d     16 bytes, nibbles as in Q4_0
/// value = d × step[nibble]
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct BlockIQ4_NL {
    pub d: Half,
    pub qs: [u8; 16],
}

assert_size!(BlockIQ4_NL, 18);

impl BlockIQ4_NL {
    /// The steps in order, −127 to 113.
    #[must_use]
    pub fn quants(&self) -> [i8; 32] {
        steps(&self.qs)
    }
}

impl Block for BlockIQ4_NL {
    const DTYPE: DType = DType::IQ4_NL;
    const LEN: usize = 32;

    fn dequantize(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (value, q) in out.iter_mut().zip(self.quants()) {
            *value = d * f32::from(q);
        }
    }
}

/// 256 elements in 8 groups of 32, each with a signed 6-bit scale.
///
/// ```text
/// byte  0 1   2 3              4 … 7                      8 … 135
///       d     upper two bits   lower four bits of scales  16 bytes a group, nibbles as in Q4_0
///             of scale g in    2 g in the low, 2 g + 1
///             bits 2g+1, 2g    in the high nibble
/// value = (d × (scale − 32)) × step[nibble]
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct BlockIQ4_XS {
    pub d: Half,
    pub scales_high: [u8; 2],
    pub scales_low: [u8; 4],
    pub qs: [[u8; 16]; 8],
}

assert_size!(BlockIQ4_XS, 136);

impl BlockIQ4_XS {
    /// The steps in order, −127 to 113.
    #[must_use]
    pub fn quants(&self) -> [i8; 256] {
        let mut quants = [0; 256];
        for (bytes, out) in self.qs.iter().zip(quants.chunks_exact_mut(32)) {
            out.copy_from_slice(&steps(bytes));
        }
        quants
    }

    /// The scale of each group of 32 elements, −32 to 31.
    #[must_use]
    pub fn scales(&self) -> [i8; 8] {
        let high = u16::from_le_bytes(self.scales_high);
        std::array::from_fn(|group| {
            let low = self.scales_low[group / 2] >> (4 * (group % 2)) & 0x0f;
            let [high, _] = (high >> (2 * group) & 3).to_le_bytes();
            (low | high << 4).cast_signed() - 32
        })
    }
}

impl Block for BlockIQ4_XS {
    const DTYPE: DType = DType::IQ4_XS;
    const LEN: usize = 256;

    fn dequantize(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        let (quants, scales) = (self.quants(), self.scales());
        for (group, out) in out.chunks_exact_mut(32).enumerate() {
            let scale = d * f32::from(scales[group]);
            for (value, &q) in out.iter_mut().zip(&quants[group * 32..]) {
                *value = scale * f32::from(q);
            }
        }
    }
}
