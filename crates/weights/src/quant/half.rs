//! Half-precision floats (IEEE 754 binary16), as values and as the scales of blocks.

use bytemuck::{Pod, Zeroable};

use super::{Block, assert_size};
use crate::DType;

/// A half-precision float as its two little-endian bytes.
///
/// ```text
/// bit  15    14…10     9…0
///      sign  exponent  fraction      value = ±1.fraction × 2^(exponent − 15)
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Half([u8; 2]);

assert_size!(Half, 2);

impl Half {
    /// The half with these bits.
    #[must_use]
    pub fn from_bits(bits: u16) -> Self {
        Self(bits.to_le_bytes())
    }

    /// The float's bits.
    #[must_use]
    pub fn to_bits(self) -> u16 {
        u16::from_le_bytes(self.0)
    }

    /// The same value in `f32`; exact for every half, subnormals included.
    #[must_use]
    pub fn to_f32(self) -> f32 {
        // 2^112: the difference of the exponents' biases, 127 − 15.
        const REBIAS: f32 = f32::from_bits((127 + 112) << 23);
        let bits = u32::from(self.to_bits());
        let sign = (bits & 0x8000) << 16;
        let magnitude = (bits & 0x7fff) << 13;
        let is_finite = bits & 0x7c00 != 0x7c00;
        let magnitude = if is_finite {
            (f32::from_bits(magnitude) * REBIAS).to_bits()
        } else {
            magnitude | 0x7f80_0000
        };
        f32::from_bits(sign | magnitude)
    }
}

impl Block for Half {
    const DTYPE: DType = DType::F16;
    const LEN: usize = 1;

    fn dequantize(&self, out: &mut [f32]) {
        out[0] = self.to_f32();
    }
}

#[cfg(test)]
mod tests;
