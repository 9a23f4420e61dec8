//! Blocks of 32 with one scale: the arithmetic of ggml's C functions, step by step.

use super::Encode;
use crate::quant::{BlockQ4_0, BlockQ4_1, BlockQ5_0, BlockQ5_1, BlockQ8_0, Half};

/// The first value of the largest magnitude, with its sign.
fn largest(x: &[f32; 32]) -> f32 {
    let mut largest = 0.0_f32;
    for &value in x {
        if value.abs() > largest.abs() {
            largest = value;
        }
    }
    largest
}

fn range(x: &[f32; 32]) -> (f32, f32) {
    x.iter().fold((x[0], x[0]), |(least, most), &value| {
        (if value < least { value } else { least }, if value > most { value } else { most })
    })
}

fn inverse(d: f32) -> f32 {
    if d == 0.0 { 0.0 } else { 1.0 / d }
}

fn block(values: &[f32]) -> &[f32; 32] {
    values.try_into().expect("a block has 32 values")
}

/// Cut to an integer of 0 to `most`, as C does a float that is not negative.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cut, and saturated")]
fn cut(value: f32, most: u8) -> u8 {
    (value as u8).min(most)
}

/// The bytes of lower nibbles, and the word of fifth bits.
fn pack(quants: [u8; 32]) -> ([u8; 16], [u8; 4]) {
    let bytes = std::array::from_fn(|i| quants[i] & 0x0f | quants[i + 16] << 4);
    let fifth = quants.iter().rev().fold(0_u32, |word, q| word << 1 | u32::from(q >> 4 & 1));
    (bytes, fifth.to_le_bytes())
}

impl Encode for BlockQ4_0 {
    fn encode(values: &[f32]) -> Self {
        let x = block(values);
        let d = largest(x) / -8.0;
        let inverse = inverse(d);
        let (qs, _) = pack(x.map(|value| cut(value * inverse + 8.5, 15)));
        Self { d: Half::from_f32(d), qs }
    }
}

impl Encode for BlockQ4_1 {
    fn encode(values: &[f32]) -> Self {
        let x = block(values);
        let (least, most) = range(x);
        let d = (most - least) / 15.0;
        let inverse = inverse(d);
        let (qs, _) = pack(x.map(|value| cut((value - least) * inverse + 0.5, 15)));
        Self { d: Half::from_f32(d), m: Half::from_f32(least), qs }
    }
}

impl Encode for BlockQ5_0 {
    fn encode(values: &[f32]) -> Self {
        let x = block(values);
        let d = largest(x) / -16.0;
        let inverse = inverse(d);
        let (qs, qh) = pack(x.map(|value| cut(value * inverse + 16.5, 31)));
        Self { d: Half::from_f32(d), qh, qs }
    }
}

impl Encode for BlockQ5_1 {
    fn encode(values: &[f32]) -> Self {
        let x = block(values);
        let (least, most) = range(x);
        let d = (most - least) / 31.0;
        let inverse = inverse(d);
        let (qs, qh) = pack(x.map(|value| cut((value - least) * inverse + 0.5, 31)));
        Self { d: Half::from_f32(d), m: Half::from_f32(least), qh, qs }
    }
}

impl Encode for BlockQ8_0 {
    fn encode(values: &[f32]) -> Self {
        let x = block(values);
        let d = x.iter().fold(0.0_f32, |most, v| if v.abs() > most { v.abs() } else { most });
        let d = d / 127.0;
        let inverse = inverse(d);
        Self { d: Half::from_f32(d), qs: x.map(|value| away(value * inverse)) }
    }
}

/// The nearest integer, a tie away from zero; `f32::round` is a call, and this a few operations.
#[expect(clippy::cast_possible_truncation, reason = "±127 at the most, and 0 for a NaN")]
fn away(value: f32) -> i8 {
    // Beyond it lies only what a step too small for its inverse gives.
    let value = value.clamp(-127.0, 127.0);
    let whole = value as i32;
    let rest = value - whole as f32;
    (whole + i32::from(rest >= 0.5) - i32::from(rest <= -0.5)) as i8
}
