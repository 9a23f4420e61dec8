//! From the bytes of a tensor to `f32` values: block formats, each with its layout and arithmetic.
//!
//! The arithmetic is `f32` throughout, in the order each format's file states; no step is fused.
//! Blocks have an alignment of 1, so a slice of them can be taken of any bytes of the right length.

mod encode;
mod float;
mod half;
mod iq4;
mod k_scales;
mod mxfp4;
mod q2_k;
mod q3_k;
mod q4;
mod q4_k;
mod q5;
mod q5_k;
mod q6_k;
mod q8;

pub use encode::{is_written, quantize};
pub use float::{BFloat, Single};
pub use half::Half;
pub use iq4::{BlockIQ4_NL, BlockIQ4_XS};
pub use k_scales::KScales;
pub use mxfp4::{BlockMXFP4, mxfp4};
pub use q2_k::BlockQ2_K;
pub use q3_k::BlockQ3_K;
pub use q4::{BlockQ4_0, BlockQ4_1};
pub use q4_k::BlockQ4_K;
pub use q5::{BlockQ5_0, BlockQ5_1};
pub use q5_k::BlockQ5_K;
pub use q6_k::BlockQ6_K;
pub use q8::{BlockQ8_0, BlockQ8_K};

use crate::DType;

/// Why a tensor's values cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ValuesError {
    #[error("the type {dtype} is not read, only listed")]
    Unreadable { dtype: DType },
    #[error("the type {dtype} is not written")]
    Unwritable { dtype: DType },
    #[error("{bytes} bytes are not a whole number of {dtype} blocks of {block_bytes}")]
    PartBlock { dtype: DType, bytes: usize, block_bytes: usize },
    #[error("{bytes} bytes of {dtype} hold {held} values, {wanted} are wanted")]
    Count { dtype: DType, bytes: usize, held: usize, wanted: usize },
}

/// One block of a format: the smallest piece of a row that can be read alone.
pub trait Block: bytemuck::Pod {
    const DTYPE: DType;
    /// Elements in a block.
    const LEN: usize;

    /// Writes the block's values to `out`, which has `LEN` places.
    fn dequantize(&self, out: &mut [f32]);
}

/// The bytes as blocks of one format, without a copy.
pub fn blocks<B: Block>(bytes: &[u8]) -> Result<&[B], ValuesError> {
    const { assert!(align_of::<B>() == 1, "blocks are taken of bytes at any address") };
    bytemuck::try_cast_slice(bytes).map_err(|_| ValuesError::PartBlock {
        dtype: B::DTYPE,
        bytes: bytes.len(),
        block_bytes: size_of::<B>(),
    })
}

/// Writes the values of `bytes`, whole blocks of type `dtype`, to `out`, which has exactly as
/// many places as there are values.
pub fn dequantize(dtype: DType, bytes: &[u8], out: &mut [f32]) -> Result<(), ValuesError> {
    match dtype {
        DType::F32 => dequantize_blocks::<Single>(bytes, out),
        DType::F16 => dequantize_blocks::<Half>(bytes, out),
        DType::BF16 => dequantize_blocks::<BFloat>(bytes, out),
        DType::Q4_0 => dequantize_blocks::<BlockQ4_0>(bytes, out),
        DType::Q4_1 => dequantize_blocks::<BlockQ4_1>(bytes, out),
        DType::Q5_0 => dequantize_blocks::<BlockQ5_0>(bytes, out),
        DType::Q5_1 => dequantize_blocks::<BlockQ5_1>(bytes, out),
        DType::Q8_0 => dequantize_blocks::<BlockQ8_0>(bytes, out),
        DType::Q2_K => dequantize_blocks::<BlockQ2_K>(bytes, out),
        DType::Q3_K => dequantize_blocks::<BlockQ3_K>(bytes, out),
        DType::Q4_K => dequantize_blocks::<BlockQ4_K>(bytes, out),
        DType::Q5_K => dequantize_blocks::<BlockQ5_K>(bytes, out),
        DType::Q6_K => dequantize_blocks::<BlockQ6_K>(bytes, out),
        DType::Q8_K => dequantize_blocks::<BlockQ8_K>(bytes, out),
        DType::IQ4_NL => dequantize_blocks::<BlockIQ4_NL>(bytes, out),
        DType::IQ4_XS => dequantize_blocks::<BlockIQ4_XS>(bytes, out),
        DType::MXFP4 => dequantize_blocks::<BlockMXFP4>(bytes, out),
        DType::U8 => dequantize_blocks::<u8>(bytes, out),
        DType::Listed(_) => Err(ValuesError::Unreadable { dtype }),
    }
}

fn dequantize_blocks<B: Block>(bytes: &[u8], out: &mut [f32]) -> Result<(), ValuesError> {
    let blocks = blocks::<B>(bytes)?;
    let (held, wanted) = (blocks.len() * B::LEN, out.len());
    if held != wanted {
        return Err(ValuesError::Count { dtype: B::DTYPE, bytes: bytes.len(), held, wanted });
    }
    for (block, out) in blocks.iter().zip(out.chunks_exact_mut(B::LEN)) {
        block.dequantize(out);
    }
    Ok(())
}

/// Ties a block's size to the row of the type table, at compile time.
macro_rules! assert_size {
    ($block:ty, $bytes:literal) => {
        const _: () = assert!(size_of::<$block>() == $bytes && align_of::<$block>() == 1);
    };
}
use assert_size;

#[cfg(test)]
mod tests;
