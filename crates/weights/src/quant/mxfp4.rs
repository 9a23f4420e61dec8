//! MXFP4: 32 floats of 4 bits with one power of two as their scale (OCP Microscaling, 2023).

use bytemuck::{Pod, Zeroable};

use super::q4::nibbles;
use super::{Block, assert_size};
use crate::DType;

/// Twice the floats of 4 bits, so that all are whole numbers.
const DOUBLED: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// 32 floats of one sign bit, two bits of exponent and one of fraction.
///
/// ```text
/// byte  0          1 … 16
///       exponent   16 bytes, nibbles as in Q4_0
/// value = (2 × float) × 2^(exponent − 128)
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct BlockMXFP4 {
    pub exponent: u8,
    pub qs: [u8; 16],
}

assert_size!(BlockMXFP4, 17);

impl BlockMXFP4 {
    /// Twice the floats in order, −12 to 12.
    #[must_use]
    pub fn quants(&self) -> [i8; 32] {
        nibbles(&self.qs).map(|nibble| DOUBLED[usize::from(nibble.cast_unsigned())])
    }
}

/// One number by its four bits and the exponent of its block, as two tensors of a folder may have
/// them; its `f32` has no bits below those of a bfloat16. The exponent 255 stands for no number.
#[must_use]
pub fn mxfp4(nibble: u8, exponent: u8) -> f32 {
    if exponent == u8::MAX {
        return f32::NAN;
    }
    f32::from(DOUBLED[usize::from(nibble & 0x0f)]) * half_scale(exponent)
}

/// Half of a scale, which the doubled floats are multiplied by: exact, subnormal for the two
/// smallest exponents.
fn half_scale(exponent: u8) -> f32 {
    match exponent {
        0 | 1 => f32::from_bits(0x0020_0000 << exponent),
        _ => f32::from_bits(u32::from(exponent - 1) << 23),
    }
}

impl Block for BlockMXFP4 {
    const DTYPE: DType = DType::MXFP4;
    const LEN: usize = 32;

    fn dequantize(&self, out: &mut [f32]) {
        let scale = half_scale(self.exponent);
        for (value, q) in out.iter_mut().zip(self.quants()) {
            *value = f32::from(q) * scale;
        }
    }
}
