//! Q5_0 and Q5_1: 32 elements of 5 bits with one scale, and for Q5_1 one minimum.

use bytemuck::{Pod, Zeroable};

use super::q4::nibbles;
use super::{Block, Half, assert_size};
use crate::DType;

/// 32 signed elements of 5 bits.
///
/// ```text
/// byte  0 1   2 … 5                          6 … 21
///       d     fifth bits, a little-endian    16 bytes, the lower four bits,
///             word: bit i for element i      nibbles as in Q4_0
/// value = (nibble + 16 × fifth bit − 16) × d
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct BlockQ5_0 {
    pub d: Half,
    pub qh: [u8; 4],
    pub qs: [u8; 16],
}

assert_size!(BlockQ5_0, 22);

impl BlockQ5_0 {
    /// The elements in order, −16 to 15.
    #[must_use]
    pub fn quants(&self) -> [i8; 32] {
        five_bits(self.qh, &self.qs).map(|q| q - 16)
    }
}

impl Block for BlockQ5_0 {
    const DTYPE: DType = DType::Q5_0;
    const LEN: usize = 32;

    fn dequantize(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (value, q) in out.iter_mut().zip(self.quants()) {
            *value = f32::from(q) * d;
        }
    }
}

/// 32 unsigned elements of 5 bits above a minimum.
///
/// ```text
/// byte  0 1   2 3   4 … 7         8 … 23
///       d     m     fifth bits    lower four bits, both as in Q5_0
/// value = (nibble + 16 × fifth bit) × d + m
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct BlockQ5_1 {
    pub d: Half,
    pub m: Half,
    pub qh: [u8; 4],
    pub qs: [u8; 16],
}

assert_size!(BlockQ5_1, 24);

impl BlockQ5_1 {
    /// The elements in order, 0 to 31.
    #[must_use]
    pub fn quants(&self) -> [i8; 32] {
        five_bits(self.qh, &self.qs)
    }
}

impl Block for BlockQ5_1 {
    const DTYPE: DType = DType::Q5_1;
    const LEN: usize = 32;

    fn dequantize(&self, out: &mut [f32]) {
        let (d, m) = (self.d.to_f32(), self.m.to_f32());
        for (value, q) in out.iter_mut().zip(self.quants()) {
            *value = f32::from(q) * d + m;
        }
    }
}

/// The elements' five bits, 0 to 31.
fn five_bits(qh: [u8; 4], qs: &[u8; 16]) -> [i8; 32] {
    let mut quants = nibbles(qs);
    let fifth = u32::from_le_bytes(qh);
    for (i, q) in quants.iter_mut().enumerate() {
        let bit = i8::from(fifth >> i & 1 == 1);
        *q |= bit << 4;
    }
    quants
}
