//! Q8_0: 32 elements of 8 bits with one scale.

use bytemuck::{Pod, Zeroable};

use super::{Block, Half, assert_size};
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
