//! Q4_0 and Q4_1: 32 elements of 4 bits with one scale, and for Q4_1 one minimum.

use bytemuck::{Pod, Zeroable};

use super::{Block, Half, assert_size};
use crate::DType;

/// 32 signed elements of 4 bits.
///
/// ```text
/// byte  0 1   2 … 17
///       d     16 bytes: byte i has element i in its low and element i + 16 in its high nibble
/// value = (nibble − 8) × d
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct BlockQ4_0 {
    pub d: Half,
    pub qs: [u8; 16],
}

assert_size!(BlockQ4_0, 18);

impl BlockQ4_0 {
    /// The elements in order, −8 to 7.
    #[must_use]
    pub fn quants(&self) -> [i8; 32] {
        nibbles(&self.qs).map(|q| q - 8)
    }
}

impl Block for BlockQ4_0 {
    const DTYPE: DType = DType::Q4_0;
    const LEN: usize = 32;

    fn dequantize(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (value, q) in out.iter_mut().zip(self.quants()) {
            *value = f32::from(q) * d;
        }
    }
}

/// 32 unsigned elements of 4 bits above a minimum.
///
/// ```text
/// byte  0 1   2 3   4 … 19
///       d     m     16 bytes, nibbles as in Q4_0
/// value = nibble × d + m
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct BlockQ4_1 {
    pub d: Half,
    pub m: Half,
    pub qs: [u8; 16],
}

assert_size!(BlockQ4_1, 20);

impl BlockQ4_1 {
    /// The elements in order, 0 to 15.
    #[must_use]
    pub fn quants(&self) -> [i8; 32] {
        nibbles(&self.qs)
    }
}

impl Block for BlockQ4_1 {
    const DTYPE: DType = DType::Q4_1;
    const LEN: usize = 32;

    fn dequantize(&self, out: &mut [f32]) {
        let (d, m) = (self.d.to_f32(), self.m.to_f32());
        for (value, q) in out.iter_mut().zip(self.quants()) {
            *value = f32::from(q) * d + m;
        }
    }
}

/// The low nibbles of 16 bytes, then the high ones, 0 to 15.
pub(super) fn nibbles(bytes: &[u8; 16]) -> [i8; 32] {
    let mut quants = [0; 32];
    for (i, &byte) in bytes.iter().enumerate() {
        quants[i] = (byte & 0x0f).cast_signed();
        quants[i + 16] = (byte >> 4).cast_signed();
    }
    quants
}
