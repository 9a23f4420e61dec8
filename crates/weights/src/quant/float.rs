//! Plain element types: `f32`, `bfloat16`, and bytes.

use bytemuck::{Pod, Zeroable};

use super::{Block, assert_size};
use crate::DType;

/// An `f32` as its four little-endian bytes, at any address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Single([u8; 4]);

assert_size!(Single, 4);

impl Single {
    /// The float as the file has it.
    #[must_use]
    pub fn from_f32(value: f32) -> Self {
        Self(value.to_le_bytes())
    }

    /// The value.
    #[must_use]
    pub fn to_f32(self) -> f32 {
        f32::from_le_bytes(self.0)
    }
}

impl Block for Single {
    const DTYPE: DType = DType::F32;
    const LEN: usize = 1;

    fn dequantize(&self, out: &mut [f32]) {
        out[0] = self.to_f32();
    }
}

/// A bfloat16, the upper half of an `f32`, as its two little-endian bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct BFloat([u8; 2]);

assert_size!(BFloat, 2);

impl BFloat {
    /// The same value in `f32`, exact.
    #[must_use]
    pub fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(u16::from_le_bytes(self.0)) << 16)
    }
}

impl Block for BFloat {
    const DTYPE: DType = DType::BF16;
    const LEN: usize = 1;

    fn dequantize(&self, out: &mut [f32]) {
        out[0] = self.to_f32();
    }
}

impl Block for u8 {
    const DTYPE: DType = DType::U8;
    const LEN: usize = 1;

    fn dequantize(&self, out: &mut [f32]) {
        out[0] = f32::from(*self);
    }
}
