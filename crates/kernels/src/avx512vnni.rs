//! AVX-512 with VNNI: the AVX-512 path with the int8 dot product as one instruction.

use std::arch::x86_64::*;

use crate::avx512::*;
use crate::lanes_matmul::lane_matmul;

/// As `avx512::dot`; four products are added in 32 bits, so codes up to 255 are fine.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
#[inline]
fn dot(sum: I, codes: I, x: i32) -> I {
    I(_mm512_dpbusd_epi32(sum.0, codes.0, _mm512_set1_epi32(x)))
}

/// As `avx512::dot_pairs`, as one instruction.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
#[inline]
fn dot_pairs(sum: I, pairs: I, x: i32) -> I {
    I(_mm512_dpwssd_epi32(sum.0, pairs.0, _mm512_set1_epi32(x)))
}

/// The same instruction serves eight-bit codes.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
#[inline]
fn dot_wide(sum: I, codes: I, x: i32) -> I {
    dot(sum, codes, x)
}

lane_matmul!("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni", tile 16);
