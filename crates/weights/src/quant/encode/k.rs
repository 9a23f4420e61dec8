//! Blocks of 256: what their searches share, and how what was found is packed.

use super::Encode;
use super::above_min::AboveMin;
use super::signed::Signed;
use crate::quant::{BlockQ4_K, BlockQ5_K, BlockQ6_K, KScales};

/// Lanes of a sum: a register of what every machine has. With eight, sums no longer fit in them.
pub(super) const LANES: usize = 4;
/// Ranges below this are taken as none: their inverse would not be finite.
pub(super) const RANGE_MIN: f32 = 1e-30;

/// The nearest integer, a tie to the even one, for less than 2^22: what is beyond the last place
/// of the larger number is rounded away.
pub(super) fn nearest(value: f32) -> f32 {
    const PLACE: f32 = 12_582_912.0;
    value + PLACE - PLACE
}

/// Between the two; the lower one for a NaN. `f32::clamp` is slower, since it keeps a NaN.
pub(super) fn between(value: f32, least: f32, most: f32) -> f32 {
    let value = if value > least { value } else { least };
    if value < most { value } else { most }
}

/// The lanes' sum, in halves: quicker than one after the other.
pub(super) fn total([a, b, c, d]: [f32; LANES]) -> f32 {
    (a + c) + (b + d)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 63 by then")]
pub(super) fn byte(value: f32) -> u8 {
    value as u8
}

pub(super) fn group<const N: usize>(values: &[f32], index: usize) -> &[f32; N] {
    let start = index * N;
    values[start..start + N].try_into().expect("a block is whole groups")
}

/// How much the squared error of each value counts: one, and a tenth of the value's own square
/// over the group's mean square.
///
/// Large values matter somewhat more in what a matrix gives. On real models a tenth took half a
/// hundredth off the error of the results and added as little to the plain squared error; more
/// helped some models and hurt others.
pub(super) fn weights<const N: usize>(x: &[f32; N]) -> [f32; N] {
    let mut squares = [0.0; LANES];
    for x in x.chunks_exact(LANES) {
        for lane in 0..LANES {
            squares[lane] += x[lane] * x[lane];
        }
    }
    let sum = total(squares);
    let tenth = if sum > RANGE_MIN { 0.1 * N as f32 / sum } else { 0.0 };
    x.map(|value| 1.0 + tenth * value * value)
}

impl Encode for BlockQ4_K {
    fn encode(values: &[f32]) -> Self {
        let block = AboveMin::new(values, 15.0);
        let scales = KScales::pack(block.scales, block.mins);
        Self { d: block.d, dmin: block.dmin, scales, qs: block.nibbles() }
    }
}

impl Encode for BlockQ5_K {
    fn encode(values: &[f32]) -> Self {
        let block = AboveMin::new(values, 31.0);
        let scales = KScales::pack(block.scales, block.mins);
        let fifth = |at: usize| {
            (0..8).fold(0, |byte, group| byte | (block.quants[group * 32 + at] >> 4) << group)
        };
        let qh = std::array::from_fn(fifth);
        Self { d: block.d, dmin: block.dmin, scales, qh, qs: block.nibbles() }
    }
}

impl Encode for BlockQ6_K {
    fn encode(values: &[f32]) -> Self {
        let Signed { d, scales, quants } = Signed::new(values);
        let six = |at: usize| (quants[at] + 32).cast_unsigned();
        let ql = std::array::from_fn(|at| {
            let low = at / 64 * 128 + at % 64;
            six(low) & 0x0f | six(low + 64) << 4
        });
        let qh = std::array::from_fn(|at| {
            let low = at / 32 * 128 + at % 32;
            (0..4).fold(0, |byte, plane| byte | six(low + 32 * plane) >> 4 << (2 * plane))
        });
        Self { ql, qh, scales, d }
    }
}
