//! AVX-512 (F, BW, DQ, VL) without VNNI: sixteen lanes in one register.
#![expect(unsafe_code, reason = "vector loads and stores take pointers")]

use std::arch::x86_64::*;

use crate::avx2::{self, i_sum_bytes};
use crate::lanes::lane_ops;
use crate::lanes_attention::lane_attention;
use crate::lanes_matmul::lane_matmul;

/// Sixteen f32.
#[derive(Clone, Copy)]
pub(crate) struct F(pub(crate) __m512);

/// Sixteen i32, or sixty-four bytes.
#[derive(Clone, Copy)]
pub(crate) struct I(pub(crate) __m512i);

/// Defines primitives by what they do to the register.
macro_rules! whole {
    ($($name:ident($($arg:ident: $kind:ident),+) -> $out:ident = $intrinsic:expr;)+) => {$(
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
        #[inline]
        pub(crate) fn $name($($arg: $kind),+) -> $out {
            $out($intrinsic($($arg.0),+))
        }
    )+};
}

whole! {
    f_add(a: F, b: F) -> F = _mm512_add_ps;
    f_sub(a: F, b: F) -> F = _mm512_sub_ps;
    f_mul(a: F, b: F) -> F = _mm512_mul_ps;
    f_div(a: F, b: F) -> F = _mm512_div_ps;
    f_fma(a: F, b: F, c: F) -> F = _mm512_fmadd_ps;
    f_max(a: F, b: F) -> F = _mm512_max_ps;
    f_min(a: F, b: F) -> F = _mm512_min_ps;
    f_round(a: F) -> F = _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>;
    f_from_i(a: I) -> F = _mm512_cvtepi32_ps;
    i_from_f(a: F) -> I = _mm512_cvtps_epi32;
    i_add(a: I, b: I) -> I = _mm512_add_epi32;
    i_mul(a: I, b: I) -> I = _mm512_mullo_epi32;
    i_and(a: I, b: I) -> I = _mm512_and_si512;
    i_or(a: I, b: I) -> I = _mm512_or_si512;
}

/// The sixteen lanes as `avx2` has them.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
fn halves(x: F) -> avx2::F {
    avx2::F(_mm512_castps512_ps256(x.0), _mm512_extractf32x8_ps::<1>(x.0))
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
pub(crate) fn f_tree_sum(x: F) -> f32 {
    avx2::f_tree_sum(halves(x))
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
pub(crate) fn f_tree_max(x: F) -> f32 {
    avx2::f_tree_max(halves(x))
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
pub(crate) fn f_splat(x: f32) -> F {
    F(_mm512_set1_ps(x))
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
pub(crate) fn i_splat(x: i32) -> I {
    I(_mm512_set1_epi32(x))
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
pub(crate) fn f_load(x: &[f32; 16]) -> F {
    // SAFETY: sixteen readable floats, and `loadu` needs no alignment.
    F(unsafe { _mm512_loadu_ps(x.as_ptr()) })
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
pub(crate) fn f_store(x: F, to: &mut [f32; 16]) {
    // SAFETY: sixteen writable floats, and `storeu` needs no alignment.
    unsafe { _mm512_storeu_ps(to.as_mut_ptr(), x.0) };
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
pub(crate) fn i_load(x: &[u8; 64]) -> I {
    // SAFETY: sixty-four readable bytes, and `loadu` needs no alignment.
    I(unsafe { _mm512_loadu_si512(x.as_ptr().cast()) })
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
fn load_32(x: &[u8; 32]) -> __m256i {
    // SAFETY: thirty-two readable bytes, and `loadu` needs no alignment.
    unsafe { _mm256_loadu_si256(x.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
fn load_16(x: &[u8; 16]) -> __m128i {
    // SAFETY: sixteen readable bytes, and `loadu` needs no alignment.
    unsafe { _mm_loadu_si128(x.as_ptr().cast()) }
}

/// Sixteen f16 to f32, exact.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
pub(crate) fn f_half(x: &[u8; 32]) -> F {
    F(_mm512_cvtph_ps(load_32(x)))
}

/// Sixteen bf16 to f32, exact.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
pub(crate) fn f_bf16(x: &[u8; 32]) -> F {
    F(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(load_32(x)))))
}

/// Sixteen signed bytes to i32.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
pub(crate) fn i_bytes(x: &[u8; 16]) -> I {
    I(_mm512_cvtepi8_epi32(load_16(x)))
}

/// Sixteen unsigned bytes to i32.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
pub(crate) fn i_ubytes(x: &[u8; 16]) -> I {
    I(_mm512_cvtepu8_epi32(load_16(x)))
}

/// Stores the low byte of each of sixteen i32 that lie between -128 and 127, and gives them.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
pub(crate) fn i_store_bytes(x: I, to: &mut [i8; 16]) -> __m128i {
    let bytes = _mm512_cvtepi32_epi8(x.0);
    // SAFETY: sixteen writable bytes, and `storeu` needs no alignment.
    unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), bytes) };
    bytes
}

/// Largest absolute value of 32 floats, as bits: any NaN or infinity shows.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
pub(crate) fn i_max_abs_bits(a: F, b: F) -> u32 {
    let abs = |x: __m512| _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fff_ffff));
    _mm512_reduce_max_epi32(_mm512_max_epi32(abs(a.0), abs(b.0))).cast_unsigned()
}

/// `x * 2^n` for whole `n`, rounded once: two steps would be the same, of which the first is exact.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
fn f_scale(x: F, n: F) -> F {
    F(_mm512_scalef_ps(x.0, n.0))
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
pub(crate) fn i_shr16<const N: u32>(x: I) -> I {
    I(_mm512_srli_epi16::<N>(x.0))
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
pub(crate) fn i_shl16<const N: u32>(x: I) -> I {
    I(_mm512_slli_epi16::<N>(x.0))
}

/// Adds to each lane the product of four unsigned codes below 128 and the four bytes of `x`.
///
/// Pairs are summed in 16 bits first: 2 * 127 * 127 fits.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
fn dot(sum: I, codes: I, x: i32) -> I {
    let pairs = _mm512_maddubs_epi16(codes.0, _mm512_set1_epi32(x));
    I(_mm512_add_epi32(sum.0, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1))))
}

/// Adds to each lane the product of its two signed numbers of 16 bits and the two of `x`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
fn dot_pairs(sum: I, pairs: I, x: i32) -> I {
    I(_mm512_add_epi32(sum.0, _mm512_madd_epi16(pairs.0, _mm512_set1_epi32(x))))
}

/// As `dot` for codes up to 255, whose pairs would saturate 16 bits: widened first.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
fn dot_wide(sum: I, codes: I, x: i32) -> I {
    let x = _mm512_set1_epi32(x);
    let x_even = _mm512_srai_epi16::<8>(_mm512_slli_epi16::<8>(x));
    let x_odd = _mm512_srai_epi16::<8>(x);
    let even = _mm512_and_si512(codes.0, _mm512_set1_epi16(0xff));
    let odd = _mm512_srli_epi16::<8>(codes.0);
    let pairs = _mm512_add_epi32(_mm512_madd_epi16(even, x_even), _mm512_madd_epi16(odd, x_odd));
    I(_mm512_add_epi32(sum.0, pairs))
}

/// Asks for a cache line that is read soon.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
pub(crate) fn prefetch(line: *const u8) {
    _mm_prefetch::<_MM_HINT_T0>(line.cast());
}

lane_ops!("avx512f,avx512bw,avx512dq,avx512vl");
lane_matmul!("avx512f,avx512bw,avx512dq,avx512vl", tile 16);
lane_attention!("avx512f,avx512bw,avx512dq,avx512vl", tile 8, beside 4, 4, 2);
