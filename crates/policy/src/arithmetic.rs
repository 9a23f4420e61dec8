//! The crate's own exponential and sums: plain multiplies and adds, the same bits everywhere.

use std::f32::consts::LN_2;
use std::f64::consts::LOG2_E;

/// Lanes of a long sum: lane `i` adds the elements `i, i + 16, …` in ascending order.
pub(crate) const LANES: usize = 16;

/// Coefficients of `(2^f - 1) / f` for `|f| <= 1/2`, ascending: interpolation at Chebyshev nodes.
///
/// Relative error of the polynomial below 6e-16, of [`exp`] below 4e-15 for `x >= -15` and
/// growing with `|x|` to 2e-13 at -693.
const EXP2: [f64; 10] = [
    0.693_147_180_559_946_2,
    0.240_226_506_959_100_75,
    0.055_504_108_664_651_67,
    0.009_618_129_107_618_665,
    0.001_333_355_820_079_459_2,
    0.000_154_035_304_247_765_29,
    1.525_267_292_485_073_7e-5,
    1.321_545_163_322_143_4e-6,
    1.020_590_541_376_559_5e-7,
    7.070_977_866_508_138e-9,
];

/// Adding and subtracting this rounds to the nearest whole number: 1.5 * 2^52.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// Smallest exponent kept: below it (and for minus infinity) the power counts as 2^-1000,
/// which no sum of weights at most 1 can feel.
pub(crate) const EXPONENT_MIN: f64 = -1000.0;

/// `2^t` for `t <= 0`; `exp2(0)` is exactly 1.
#[inline(always)]
pub(crate) fn exp2(t: f64) -> f64 {
    let t = if t > EXPONENT_MIN { t } else { EXPONENT_MIN };
    let shifted = t + ROUND;
    let f = t - (shifted - ROUND);
    let [c0, c1, c2, c3, c4, c5, c6, c7, c8, c9] = EXP2;
    // Pairs first, then their sums: short chains, and one order of rounding.
    let f2 = f * f;
    let f4 = f2 * f2;
    let low = (c0 + c1 * f) + (c2 + c3 * f) * f2;
    let high = (c4 + c5 * f) + (c6 + c7 * f) * f2;
    let power = 1.0 + f * (low + (high + (c8 + c9 * f) * f4) * f4);
    // The whole part, in the low bits of `shifted`, is added to the exponent.
    f64::from_bits(power.to_bits().wrapping_add(shifted.to_bits() << 52))
}

/// `e^x` for `x <= 0`.
#[inline(always)]
pub(crate) fn exp(x: f64) -> f64 {
    exp2(x * LOG2_E)
}

/// The 16 lanes of a long sum, folded by halves: 8 + 8, 4 + 4, 2 + 2, 1 + 1.
#[inline(always)]
pub(crate) fn fold(lanes: [f64; LANES]) -> f64 {
    let mut lanes = lanes;
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// The same for sixteen lanes of `f32`.
#[inline(always)]
pub(crate) fn fold_f32(lanes: [f32; LANES]) -> f32 {
    let mut lanes = lanes;
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// As [`EXP2`], six coefficients: relative error of the polynomial below 6e-9.
const EXP2_F32: [f32; 6] =
    [LN_2, 0.240_226_5, 0.055_503_57, 0.009_618_083, 0.001_339_086_4, 0.000_154_531_63];

/// The same for `f32`: its smallest normal power is 2^-126.
pub(crate) const EXPONENT_MIN_F32: f32 = -120.0;

/// `2^t` in `f32` for `t <= 0`, below -120 as if at -120; relative error below 3e-7.
#[inline(always)]
pub(crate) fn exp2_f32(t: f32) -> f32 {
    // 1.5 * 2^23 rounds to the nearest whole number, as ROUND does for f64.
    const ROUND_F32: f32 = 12_582_912.0;
    let t = if t > EXPONENT_MIN_F32 { t } else { EXPONENT_MIN_F32 };
    let shifted = t + ROUND_F32;
    let f = t - (shifted - ROUND_F32);
    let [c0, c1, c2, c3, c4, c5] = EXP2_F32;
    let f2 = f * f;
    let power = 1.0 + f * ((c0 + c1 * f) + ((c2 + c3 * f) + (c4 + c5 * f) * f2) * f2);
    f32::from_bits(power.to_bits().wrapping_add(shifted.to_bits() << 23))
}

#[cfg(test)]
mod tests;
