//! Q8_0 and Q8_K: elements of 8 bits with one scale, in blocks of 32 and of 256.

use bytemuck::{Pod, Zeroable};

use super::{Block, Half, Single, assert_size};
use crate::DType;

/// 32 signed elements of 8 bits.
///
/// ```text
/// byte  0 1   2 … 33
///       d     32 signed bytes, in order
/// value = q × d
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct BlockQ8_0 {
    pub d: Half,
    pub qs: [i8; 32],
}

assert_size!(BlockQ8_0, 34);

impl Block for BlockQ8_0 {
    const DTYPE: DType = DType::Q8_0;
    const LEN: usize = 32;

    fn dequantize(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (value, q) in out.iter_mut().zip(self.qs) {
            *value = f32::from(q) * d;
        }
    }
}

/// 256 signed elements of 8 bits, as other programs keep activations.
///
/// ```text
/// byte  0 … 3   4 … 259                        260 … 291
///       d, f32  256 signed bytes, in order     sums of each 16 elements, which no value needs
/// value = d × q
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct BlockQ8_K {
    pub d: Single,
    pub qs: [i8; 256],
    pub sums: [[u8; 2]; 16],
}

assert_size!(BlockQ8_K, 292);

impl Block for BlockQ8_K {
    const DTYPE: DType = DType::Q8_K;
    const LEN: usize = 256;

    fn dequantize(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (value, q) in out.iter_mut().zip(self.qs) {
            *value = d * f32::from(q);
        }
    }
}
