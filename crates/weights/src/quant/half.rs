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

    /// The nearest half, ties to the even one; beyond the largest it is infinite.
    #[must_use]
    pub fn from_f32(value: f32) -> Self {
        const INFINITE: u32 = 0x7c00;
        let bits = value.to_bits();
        let (sign, magnitude) = (bits >> 16 & 0x8000, bits & 0x7fff_ffff);
        let half = if magnitude > 0x7f80_0000 {
            INFINITE | 0x200
        } else if magnitude < 0x3880_0000 {
            // Below 2^-14: the last place of 0.5 is 2^-24, so the sum is rounded as a subnormal is.
            (f32::from_bits(magnitude) + 0.5).to_bits() - 0.5_f32.to_bits()
        } else if magnitude < 0x4780_0000 {
            (magnitude + 0x0fff + (magnitude >> 13 & 1) - (112 << 23)) >> 13
        } else {
            INFINITE
        };
        let bits = u16::try_from(sign | half).expect("a half has 16 bits");
        Self::from_bits(bits)
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
