//! The project's own transcendental functions in f32: the scalar definition of every path.
//!
//! Each SIMD path repeats these steps in lanes, operation for operation.

/// log2(e), rounded to f32.
pub(crate) const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// High part of ln 2: few bits, so that a product with a small integer is exact.
pub(crate) const LN2_HI: f32 = 0.693_359_4;
/// ln 2 minus the high part.
pub(crate) const LN2_LO: f32 = -0.000_212_194_44;
/// `e^r = 1 + r + r^2 * q(r)` on |r| <= ln 2 / 2; the coefficients of q from the highest.
/// Minimax by Remez exchange on the relative error, 3.1e-9 before rounding to f32.
pub(crate) const EXP_POLY: [f32; 5] =
    [0.001_381_454, 0.008_368_745, 0.041_668_39, 0.166_665_21, 0.499_999_94];
/// Below this the result is 0; above `EXP_MAX` it is infinite.
pub(crate) const EXP_MIN: f32 = -104.0;
pub(crate) const EXP_MAX: f32 = 89.0;

/// `max(a, b)` as the vector instruction has it: `b` unless `a > b`.
pub(crate) fn max(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// `min(a, b)` as the vector instruction has it: `b` unless `a < b`.
pub(crate) fn min(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

/// `2^n` for n in -126 to 127, by its exponent bits.
#[expect(clippy::cast_sign_loss, reason = "n + 127 is positive in the stated range")]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits(((n + 127) as u32) << 23)
}

/// `e^x`; relative error below 2 ulp where the result is a normal number.
#[must_use]
pub fn exp(x: f32) -> f32 {
    let x = max(min(x, EXP_MAX), EXP_MIN);
    let n = (x * LOG2_E).round_ties_even();
    let r = n.mul_add(-LN2_LO, n.mul_add(-LN2_HI, x));
    let mut q = EXP_POLY[0];
    for &c in &EXP_POLY[1..] {
        q = q.mul_add(r, c);
    }
    let p = q.mul_add(r * r, r) + 1.0;
    #[expect(clippy::cast_possible_truncation, reason = "n lies between -150 and 129")]
    let n = n as i32;
    // Two factors, so that neither leaves the range of normal numbers.
    let half = n >> 1;
    p * power_of_two(half) * power_of_two(n - half)
}

/// `1 / (1 + e^-x)`.
#[must_use]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// `x * sigmoid(x)` (Hendrycks & Gimpel 2016, SiLU), as one division.
#[must_use]
pub fn silu(x: f32) -> f32 {
    x / (1.0 + exp(-x))
}

/// 2 * sqrt(2 / pi).
pub(crate) const GELU_SCALE: f32 = 1.595_769;
/// The cubic term of the approximation.
pub(crate) const GELU_CUBIC: f32 = 0.044_715;

/// GELU in its tanh form (Hendrycks & Gimpel 2016): `0.5 x (1 + tanh(u)) = x / (1 + e^(-2u))`
/// with `u = sqrt(2/pi) (x + 0.044715 x^3)`.
#[must_use]
pub fn gelu(x: f32) -> f32 {
    let inner = (GELU_CUBIC * x * x).mul_add(x, x);
    x / (1.0 + exp(-(GELU_SCALE * inner)))
}

/// `cap * tanh(x / cap)` for a positive `cap`, as `cap - 2 cap / (e^(2 x / cap) + 1)`; not a
/// number where `x` is not finite.
#[must_use]
pub(crate) fn soft_cap(x: f32, cap: f32) -> f32 {
    let twice = cap + cap;
    let e = exp(x * (2.0 / cap));
    // The product is 0 of a finite number.
    (cap - twice / (e + 1.0)) + x * 0.0
}

/// Slope of the sigmoid in the clamped `SwiGLU` of gpt-oss (Agarwal et al. 2025).
pub(crate) const CLAMPED_SLOPE: f32 = 1.702;
/// What its gate is clamped to from above, and its second branch from both sides.
pub(crate) const CLAMP: f32 = 7.0;

/// `(u + 1) g sigmoid(1.702 g)` with `g = min(gate, 7)` and `u` the second branch within -7 to 7.
#[must_use]
pub(crate) fn clamped_swiglu(gate: f32, up: f32) -> f32 {
    // The bound comes first: what is not a number stays what it is.
    let g = min(CLAMP, gate);
    let u = max(-CLAMP, min(CLAMP, up));
    (g / (1.0 + exp(-(CLAMPED_SLOPE * g)))) * (u + 1.0)
}
