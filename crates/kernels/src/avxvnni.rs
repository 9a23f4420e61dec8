//! AVX-VNNI: the AVX2 path with the int8 dot product as one instruction.

use std::arch::x86_64::*;

use crate::avx2::*;
use crate::lanes_matmul::lane_matmul;

/// As `avx2::dot`; four products are added in 32 bits, so codes up to 255 are fine.
#[target_feature(enable = "avx2,fma,f16c,avxvnni")]
#[inline]
fn dot(sum: I, codes: I, x: i32) -> I {
    let x = _mm256_set1_epi32(x);
    I(_mm256_dpbusd_avx_epi32(sum.0, codes.0, x), _mm256_dpbusd_avx_epi32(sum.1, codes.1, x))
}

/// As `avx2::dot_pairs`, as one instruction.
#[target_feature(enable = "avx2,fma,f16c,avxvnni")]
#[inline]
fn dot_pairs(sum: I, pairs: I, x: i32) -> I {
    let x = _mm256_set1_epi32(x);
    I(_mm256_dpwssd_avx_epi32(sum.0, pairs.0, x), _mm256_dpwssd_avx_epi32(sum.1, pairs.1, x))
}

/// The same instruction serves eight-bit codes.
#[target_feature(enable = "avx2,fma,f16c,avxvnni")]
#[inline]
fn dot_wide(sum: I, codes: I, x: i32) -> I {
    dot(sum, codes, x)
}

lane_matmul!("avx2,fma,f16c,avxvnni", tile 4);
