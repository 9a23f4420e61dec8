//! From `f32` values to the blocks of a format, the inverse of reading them.
//!
//! Blocks of 32 have the bytes that ggml's own C functions write; the scales of K blocks come of
//! searches of this project's own (`above_min.rs`, `signed.rs`), which minimise the sum of squared
//! errors, those of large values counted somewhat more (`k.rs`).

mod above_min;
mod fit;
mod k;
mod legacy;
mod signed;

use super::{
    Block, BlockQ4_0, BlockQ4_1, BlockQ4_K, BlockQ5_0, BlockQ5_1, BlockQ5_K, BlockQ6_K, BlockQ8_0,
    Half, Single, ValuesError,
};
use crate::DType;

/// A block that can be made of values.
trait Encode: Block {
    /// The block for `values`, `LEN` finite ones.
    fn encode(values: &[f32]) -> Self;
}

impl Encode for Single {
    fn encode(values: &[f32]) -> Self {
        Self::from_f32(values[0])
    }
}

impl Encode for Half {
    fn encode(values: &[f32]) -> Self {
        Self::from_f32(values[0])
    }
}

/// Whether [`quantize`] writes this type.
#[must_use]
pub fn is_written(dtype: DType) -> bool {
    encoder(dtype).is_some()
}

type Encoder = fn(&[f32], &mut [u8]);

fn encoder(dtype: DType) -> Option<Encoder> {
    Some(match dtype {
        DType::F32 => encode_blocks::<Single>,
        DType::F16 => encode_blocks::<Half>,
        DType::Q4_0 => encode_blocks::<BlockQ4_0>,
        DType::Q4_1 => encode_blocks::<BlockQ4_1>,
        DType::Q5_0 => encode_blocks::<BlockQ5_0>,
        DType::Q5_1 => encode_blocks::<BlockQ5_1>,
        DType::Q8_0 => encode_blocks::<BlockQ8_0>,
        DType::Q4_K => encode_blocks::<BlockQ4_K>,
        DType::Q5_K => encode_blocks::<BlockQ5_K>,
        DType::Q6_K => encode_blocks::<BlockQ6_K>,
        _ => return None,
    })
}

/// Writes `values`, finite ones, as whole blocks of type `dtype` to `out`, which has exactly as
/// many bytes as they take.
pub fn quantize(dtype: DType, values: &[f32], out: &mut [u8]) -> Result<(), ValuesError> {
    let encode = encoder(dtype).ok_or(ValuesError::Unwritable { dtype })?;
    let (block_bytes, bytes) = (dtype.block_bytes(), out.len());
    if !bytes.is_multiple_of(block_bytes) {
        return Err(ValuesError::PartBlock { dtype, bytes, block_bytes });
    }
    let (held, wanted) = (bytes / block_bytes * dtype.block_len(), values.len());
    if held != wanted {
        return Err(ValuesError::Count { dtype, bytes, held, wanted });
    }
    encode(values, out);
    Ok(())
}

fn encode_blocks<B: Encode>(values: &[f32], out: &mut [u8]) {
    let values = values.chunks_exact(B::LEN);
    for (values, out) in values.zip(out.chunks_exact_mut(size_of::<B>())) {
        out.copy_from_slice(bytemuck::bytes_of(&B::encode(values)));
    }
}

#[cfg(test)]
mod tests;
