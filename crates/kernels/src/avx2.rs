//! AVX2 with FMA and F16C: sixteen lanes as two registers of eight.
#![expect(unsafe_code, reason = "vector loads and stores take pointers")]

use std::arch::x86_64::*;

use crate::lanes::lane_ops;
use crate::lanes_attention::lane_attention;
use crate::lanes_matmul::lane_matmul;

/// Sixteen f32.
#[derive(Clone, Copy)]
pub(crate) struct F(pub(crate) __m256, pub(crate) __m256);

/// Sixteen i32, or sixty-four bytes.
#[derive(Clone, Copy)]
pub(crate) struct I(pub(crate) __m256i, pub(crate) __m256i);

/// Defines primitives by what they do to each half.
macro_rules! halves {
    ($($name:ident($($arg:ident: $kind:ident),+) -> $out:ident = $intrinsic:expr;)+) => {$(
        #[target_feature(enable = "avx2,fma,f16c")]
        #[inline]
        pub(crate) fn $name($($arg: $kind),+) -> $out {
            $out($intrinsic($($arg.0),+), $intrinsic($($arg.1),+))
        }
    )+};
}

halves! {
    f_add(a: F, b: F) -> F = _mm256_add_ps;
    f_sub(a: F, b: F) -> F = _mm256_sub_ps;
    f_mul(a: F, b: F) -> F = _mm256_mul_ps;
    f_div(a: F, b: F) -> F = _mm256_div_ps;
    f_fma(a: F, b: F, c: F) -> F = _mm256_fmadd_ps;
    f_max(a: F, b: F) -> F = _mm256_max_ps;
    f_min(a: F, b: F) -> F = _mm256_min_ps;
    f_round(a: F) -> F = _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>;
    f_from_i(a: I) -> F = _mm256_cvtepi32_ps;
    i_from_f(a: F) -> I = _mm256_cvtps_epi32;
    i_add(a: I, b: I) -> I = _mm256_add_epi32;
    i_sub(a: I, b: I) -> I = _mm256_sub_epi32;
    i_mul(a: I, b: I) -> I = _mm256_mullo_epi32;
    i_and(a: I, b: I) -> I = _mm256_and_si256;
    i_or(a: I, b: I) -> I = _mm256_or_si256;
    i_half(a: I) -> I = _mm256_srai_epi32::<1>;
}

/// Folds sixteen lanes into one: lane l with l + 8, then 4, 2, 1.
macro_rules! trees {
    ($($name:ident: $eight:ident, $four:ident;)+) => {$(
        #[target_feature(enable = "avx2,fma,f16c")]
        #[inline]
        pub(crate) fn $name(x: F) -> f32 {
            let x = $eight(x.0, x.1);
            let x = $four(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
            let x = $four(x, _mm_movehl_ps(x, x));
            _mm_cvtss_f32($four(x, _mm_movehdup_ps(x)))
        }
    )+};
}

trees! {
    f_tree_sum: _mm256_add_ps, _mm_add_ps;
    f_tree_max: _mm256_max_ps, _mm_max_ps;
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
pub(crate) fn f_splat(x: f32) -> F {
    F(_mm256_set1_ps(x), _mm256_set1_ps(x))
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
pub(crate) fn i_splat(x: i32) -> I {
    I(_mm256_set1_epi32(x), _mm256_set1_epi32(x))
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
pub(crate) fn f_load(x: &[f32; 16]) -> F {
    // SAFETY: eight readable floats, and `loadu` needs no alignment.
    let low = unsafe { _mm256_loadu_ps(x[..8].as_ptr()) };
    // SAFETY: as above, the other eight.
    let high = unsafe { _mm256_loadu_ps(x[8..].as_ptr()) };
    F(low, high)
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
pub(crate) fn f_store(x: F, to: &mut [f32; 16]) {
    // SAFETY: eight writable floats, and `storeu` needs no alignment.
    unsafe { _mm256_storeu_ps(to[..8].as_mut_ptr(), x.0) };
    // SAFETY: as above, the other eight.
    unsafe { _mm256_storeu_ps(to[8..].as_mut_ptr(), x.1) };
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn load_16(x: &[u8]) -> __m128i {
    assert!(x.len() >= 16, "sixteen bytes");
    // SAFETY: sixteen readable bytes, and `loadu` needs no alignment.
    unsafe { _mm_loadu_si128(x.as_ptr().cast()) }
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
pub(crate) fn i_load(x: &[u8; 64]) -> I {
    // SAFETY: thirty-two readable bytes, and `loadu` needs no alignment.
    let low = unsafe { _mm256_loadu_si256(x[..32].as_ptr().cast()) };
    // SAFETY: as above, the other thirty-two.
    let high = unsafe { _mm256_loadu_si256(x[32..].as_ptr().cast()) };
    I(low, high)
}

/// Sixteen f16 to f32, exact.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
pub(crate) fn f_half(x: &[u8; 32]) -> F {
    F(_mm256_cvtph_ps(load_16(&x[..16])), _mm256_cvtph_ps(load_16(&x[16..])))
}

/// Sixteen bf16 to f32, exact.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
pub(crate) fn f_bf16(x: &[u8; 32]) -> F {
    let widen =
        |x: &[u8]| _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(load_16(x))));
    F(widen(&x[..16]), widen(&x[16..]))
}

/// Sixteen signed bytes to i32.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
pub(crate) fn i_bytes(x: &[u8; 16]) -> I {
    let x = load_16(x);
    I(_mm256_cvtepi8_epi32(x), _mm256_cvtepi8_epi32(_mm_srli_si128::<8>(x)))
}

/// Sixteen unsigned bytes to i32.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
pub(crate) fn i_ubytes(x: &[u8; 16]) -> I {
    let x = load_16(x);
    I(_mm256_cvtepu8_epi32(x), _mm256_cvtepu8_epi32(_mm_srli_si128::<8>(x)))
}

/// Sum of sixteen signed bytes.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
pub(crate) fn i_sum_bytes(bytes: __m128i) -> i32 {
    // As unsigned bytes, 128 more each: there is an instruction that sums those by eight.
    let more = _mm_xor_si128(bytes, _mm_set1_epi8(-128));
    let sums = _mm_sad_epu8(more, _mm_setzero_si128());
    let sum = _mm_add_epi32(sums, _mm_unpackhi_epi64(sums, sums));
    _mm_cvtsi128_si32(sum) - 16 * 128
}

/// Stores the low byte of each of sixteen i32 that lie between -128 and 127, and gives them.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
pub(crate) fn i_store_bytes(x: I, to: &mut [i8; 16]) -> __m128i {
    let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(x.0, x.1));
    let bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words));
    // SAFETY: sixteen writable bytes, and `storeu` needs no alignment.
    unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), bytes) };
    bytes
}

/// Largest absolute value of 32 floats, as bits: any NaN or infinity shows.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
pub(crate) fn i_max_abs_bits(a: F, b: F) -> u32 {
    let abs = |x: __m256| _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7fff_ffff));
    let largest = _mm256_max_epi32(
        _mm256_max_epi32(abs(a.0), abs(a.1)),
        _mm256_max_epi32(abs(b.0), abs(b.1)),
    );
    let x = _mm_max_epi32(_mm256_castsi256_si128(largest), _mm256_extracti128_si256::<1>(largest));
    let x = _mm_max_epi32(x, _mm_shuffle_epi32::<0b01_00_11_10>(x));
    let x = _mm_max_epi32(x, _mm_shuffle_epi32::<0b10_11_00_01>(x));
    _mm_cvtsi128_si32(x).cast_unsigned()
}

/// `x * 2^n` for whole `n` between -252 and 254, in two steps of which the first is exact.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn f_scale(x: F, n: F) -> F {
    let n = i_from_f(n);
    let half = i_half(n);
    f_mul(f_mul(x, f_power_of_two(half)), f_power_of_two(i_sub(n, half)))
}

/// `2^n` for n between -126 and 127.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn f_power_of_two(n: I) -> F {
    let biased = i_add(n, i_splat(127));
    F(
        _mm256_castsi256_ps(_mm256_slli_epi32::<23>(biased.0)),
        _mm256_castsi256_ps(_mm256_slli_epi32::<23>(biased.1)),
    )
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
pub(crate) fn i_shr16<const N: i32>(x: I) -> I {
    I(_mm256_srli_epi16::<N>(x.0), _mm256_srli_epi16::<N>(x.1))
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
pub(crate) fn i_shl16<const N: i32>(x: I) -> I {
    I(_mm256_slli_epi16::<N>(x.0), _mm256_slli_epi16::<N>(x.1))
}

/// Adds to each lane the product of four unsigned codes below 128 and the four bytes of `x`.
///
/// Pairs are summed in 16 bits first: 2 * 127 * 127 fits.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn dot(sum: I, codes: I, x: i32) -> I {
    let (x, ones) = (_mm256_set1_epi32(x), _mm256_set1_epi16(1));
    let half = |sum: __m256i, codes: __m256i| {
        _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(codes, x), ones))
    };
    I(half(sum.0, codes.0), half(sum.1, codes.1))
}

/// Adds to each lane the product of its two signed numbers of 16 bits and the two of `x`.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn dot_pairs(sum: I, pairs: I, x: i32) -> I {
    let x = _mm256_set1_epi32(x);
    let half = |sum, pairs| _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, x));
    I(half(sum.0, pairs.0), half(sum.1, pairs.1))
}

/// As `dot` for codes up to 255, whose pairs would saturate 16 bits: widened first.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
pub(crate) fn dot_wide(sum: I, codes: I, x: i32) -> I {
    let x = _mm256_set1_epi32(x);
    let (x_even, x_odd) =
        (_mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(x)), _mm256_srai_epi16::<8>(x));
    let half = |sum: __m256i, codes: __m256i| {
        let even = _mm256_and_si256(codes, _mm256_set1_epi16(0xff));
        let odd = _mm256_srli_epi16::<8>(codes);
        let pairs =
            _mm256_add_epi32(_mm256_madd_epi16(even, x_even), _mm256_madd_epi16(odd, x_odd));
        _mm256_add_epi32(sum, pairs)
    };
    I(half(sum.0, codes.0), half(sum.1, codes.1))
}

/// Asks for a cache line that is read soon.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
pub(crate) fn prefetch(line: *const u8) {
    _mm_prefetch::<_MM_HINT_T0>(line.cast());
}

lane_ops!("avx2,fma,f16c");
lane_matmul!("avx2,fma,f16c", tile 4);
lane_attention!("avx2,fma,f16c", tile 4, beside 2, 1, 1);
