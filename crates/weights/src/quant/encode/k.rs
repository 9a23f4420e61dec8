//! Blocks of 256: a search for the scales of groups, then for the integers that stand for them.
//!
//! A group is fitted by itself first: a few step sizes are tried, each gives its integers, and
//! for these the scale (and minimum) of least squared error is known in closed form (normal
//! equations of one or two unknowns). The groups' scales are then shared out as integers below
//! the block's own: each group tries the neighbours too and keeps what errs least on its values.
//! Last, the block's scale is fitted once more to all that was chosen, and kept where it helps.

use super::Encode;
use crate::quant::{BlockQ4_K, BlockQ5_K, BlockQ6_K, Half, KScales};

/// Lanes of a sum: enough for any vector register.
const LANES: usize = 8;
/// Ranges below this are taken as none: their inverse would not be finite.
const RANGE_MIN: f32 = 1e-30;

/// The nearest integer, a tie to the even one, for less than 2^22: what is beyond the last place
/// of the larger number is rounded away.
fn nearest(value: f32) -> f32 {
    const PLACE: f32 = 12_582_912.0;
    value + PLACE - PLACE
}

/// Between the two; the lower one for a NaN. `f32::clamp` is slower, since it keeps a NaN.
fn between(value: f32, least: f32, most: f32) -> f32 {
    let value = if value > least { value } else { least };
    if value < most { value } else { most }
}

fn total(lanes: [f32; LANES]) -> f32 {
    lanes.iter().sum()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 63 by then")]
fn byte(value: f32) -> u8 {
    value as u8
}

fn group<const N: usize>(values: &[f32], index: usize) -> &[f32; N] {
    let start = index * N;
    values[start..start + N].try_into().expect("a block is whole groups")
}

/// Steps of a tenth of a quant, the plain one first so that it wins a draw.
fn steps(below: i8) -> impl Iterator<Item = i8> {
    std::iter::once(0).chain((-below..=9).filter(|&step| step != 0))
}

/// A group's `scale × q − min` of least squared error, `q` in 0 to `levels`, `min` not negative.
fn fit_above_min(x: &[f32; 32], levels: f32) -> (f32, f32) {
    let (mut least, mut most) = (0.0_f32, x[0]);
    for &value in x {
        least = if value < least { value } else { least };
        most = if value > most { value } else { most };
    }
    let range = most - least;
    if range < RANGE_MIN {
        return (0.0, -least);
    }
    let sum_x: f32 = x.iter().sum();
    let sum_x2: f32 = x.iter().map(|value| value * value).sum();
    let mut best = (f32::INFINITY, range / levels, -least);
    for step in steps(12) {
        let inverse = (levels + 0.1 * f32::from(step)) / range;
        let [mut l, mut l2, mut xl] = [[0.0; LANES]; 3];
        for x in x.chunks_exact(LANES) {
            for lane in 0..LANES {
                let q = nearest(between((x[lane] - least) * inverse, 0.0, levels));
                l[lane] += q;
                l2[lane] += q * q;
                xl[lane] += q * x[lane];
            }
        }
        let (l, l2, xl) = (total(l), total(l2), total(xl));
        let determinant = 32.0 * l2 - l * l;
        if determinant <= 0.0 {
            continue;
        }
        let mut scale = (32.0 * xl - sum_x * l) / determinant;
        let mut min = (l * xl - l2 * sum_x) / determinant;
        if min < 0.0 {
            (scale, min) = (xl / l2, 0.0);
        }
        let error = sum_x2
            + scale * (scale * l2 - 2.0 * xl)
            + min * (32.0 * min + 2.0 * sum_x - 2.0 * scale * l);
        if error < best.0 && scale > 0.0 {
            best = (error, scale, min);
        }
    }
    (best.1, best.2)
}

/// The squared error of `scale × q − min` with the nearest `q` in 0 to `levels`.
fn error_above_min(x: &[f32; 32], scale: f32, min: f32, levels: f32) -> f32 {
    let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    let mut sum = [0.0; LANES];
    for x in x.chunks_exact(LANES) {
        for lane in 0..LANES {
            let q = nearest(between((x[lane] + min) * inverse, 0.0, levels));
            let error = scale * q - min - x[lane];
            sum[lane] += error * error;
        }
    }
    total(sum)
}

/// A block of eight groups above minimums: its two scales, the groups' integers, the quants.
struct AboveMin {
    d: Half,
    dmin: Half,
    scales: [u8; 8],
    mins: [u8; 8],
    quants: [u8; 256],
    error: f32,
}

fn largest_of(values: [f32; 8]) -> f32 {
    values.iter().fold(0.0, |most, &value| if value > most { value } else { most })
}

fn encode_above_min(x: &[f32], levels: f32) -> AboveMin {
    let fits: [(f32, f32); 8] = std::array::from_fn(|at| fit_above_min(group(x, at), levels));
    let d = Half::from_f32(largest_of(fits.map(|fit| fit.0)) / 63.0);
    let dmin = Half::from_f32(largest_of(fits.map(|fit| fit.1)) / 63.0);
    let (mut scales, mut mins) = ([0; 8], [0; 8]);
    for at in 0..8 {
        (scales[at], mins[at]) = share(group(x, at), fits[at], (d.to_f32(), dmin.to_f32()), levels);
    }
    let first = AboveMin::settle(x, d, dmin, (scales, mins), levels);
    let (d, dmin) = first.refit(x);
    let second = AboveMin::settle(x, d, dmin, (scales, mins), levels);
    if second.error < first.error { second } else { first }
}

/// The integers for a group's scale and minimum below the block's: the nearest, or a neighbour.
fn share(x: &[f32; 32], fit: (f32, f32), below: (f32, f32), levels: f32) -> (u8, u8) {
    let integer = |value: f32, unit: f32| {
        if unit > 0.0 { nearest(between(value / unit, 0.0, 63.0)) } else { 0.0 }
    };
    let (scale, min) = (integer(fit.0, below.0), integer(fit.1, below.1));
    let mut best = (f32::INFINITY, scale, min);
    for scale in [scale, scale - 1.0, scale + 1.0] {
        for min in [min, min - 1.0, min + 1.0] {
            if !(0.0..=63.0).contains(&scale) || !(0.0..=63.0).contains(&min) {
                continue;
            }
            let error = error_above_min(x, below.0 * scale, below.1 * min, levels);
            if error < best.0 {
                best = (error, scale, min);
            }
        }
    }
    (byte(best.1), byte(best.2))
}

impl AboveMin {
    /// Chooses the quants for scales that are settled, and sums up the error.
    fn settle(x: &[f32], d: Half, dmin: Half, of: ([u8; 8], [u8; 8]), levels: f32) -> Self {
        let (scales, mins) = of;
        let (mut quants, mut error) = ([0; 256], 0.0);
        for at in 0..8 {
            let (scale, min) =
                (d.to_f32() * f32::from(scales[at]), dmin.to_f32() * f32::from(mins[at]));
            let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
            let x: &[f32; 32] = group(x, at);
            for (quant, &value) in quants[at * 32..].iter_mut().zip(x) {
                *quant = byte(nearest(between((value + min) * inverse, 0.0, levels)));
            }
            error += error_above_min(x, scale, min, levels);
        }
        Self { d, dmin, scales, mins, quants, error }
    }

    /// The block's two scales of least squared error for the integers that were chosen.
    fn refit(&self, x: &[f32]) -> (Half, Half) {
        let [mut aa, mut ab, mut bb, mut ax, mut bx] = [0.0_f32; 5];
        for (at, x) in x.chunks_exact(32).enumerate() {
            let (scale, min) = (f32::from(self.scales[at]), f32::from(self.mins[at]));
            for (&quant, &x) in self.quants[at * 32..].iter().zip(x) {
                let a = scale * f32::from(quant);
                aa += a * a;
                ab += a * min;
                bb += min * min;
                ax += a * x;
                bx += min * x;
            }
        }
        let determinant = aa * bb - ab * ab;
        let (d, dmin) = if determinant > 0.0 {
            ((ax * bb - ab * bx) / determinant, (ab * ax - aa * bx) / determinant)
        } else if aa > 0.0 {
            (ax / aa, self.dmin.to_f32())
        } else {
            (self.d.to_f32(), self.dmin.to_f32())
        };
        if d < 0.0 || dmin < 0.0 {
            return (self.d, self.dmin);
        }
        (Half::from_f32(d), Half::from_f32(dmin))
    }

    /// The lower four bits of the quants, in quarters of 64 elements.
    fn nibbles(&self) -> [u8; 128] {
        std::array::from_fn(|at| {
            let low = at / 32 * 64 + at % 32;
            self.quants[low] & 0x0f | self.quants[low + 32] << 4
        })
    }
}

impl Encode for BlockQ4_K {
    fn encode(values: &[f32]) -> Self {
        let block = encode_above_min(values, 15.0);
        let scales = KScales::pack(block.scales, block.mins);
        Self { d: block.d, dmin: block.dmin, scales, qs: block.nibbles() }
    }
}

impl Encode for BlockQ5_K {
    fn encode(values: &[f32]) -> Self {
        let block = encode_above_min(values, 31.0);
        let scales = KScales::pack(block.scales, block.mins);
        let fifth = |at: usize| {
            (0..8).fold(0, |byte, group| byte | (block.quants[group * 32 + at] >> 4) << group)
        };
        let qh = std::array::from_fn(fifth);
        Self { d: block.d, dmin: block.dmin, scales, qh, qs: block.nibbles() }
    }
}

/// A group's signed scale of least squared error, quants in −32 to 31.
fn fit_signed(x: &[f32; 16]) -> f32 {
    let mut most = 0.0_f32;
    for &value in x {
        most = if value.abs() > most.abs() { value } else { most };
    }
    if most.abs() < RANGE_MIN {
        return 0.0;
    }
    let mut best = (0.0, -most / 32.0);
    for step in steps(9) {
        let inverse = -(32.0 + 0.1 * f32::from(step)) / most;
        let [mut l2, mut xl] = [[0.0; LANES]; 2];
        for x in x.chunks_exact(LANES) {
            for lane in 0..LANES {
                let q = nearest(between(x[lane] * inverse, -32.0, 31.0));
                l2[lane] += q * q;
                xl[lane] += q * x[lane];
            }
        }
        let (l2, xl) = (total(l2), total(xl));
        // What the fit takes off the sum of squares; what is more by its last place only is not.
        if l2 > 0.0 && xl * xl / l2 > best.0 * 1.000_001 {
            best = (xl * xl / l2, xl / l2);
        }
    }
    best.1
}

/// The squared error of `scale × q` with the nearest `q` in −32 to 31.
fn error_signed(x: &[f32; 16], scale: f32) -> f32 {
    let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
    let mut sum = [0.0; LANES];
    for x in x.chunks_exact(LANES) {
        for lane in 0..LANES {
            let error = scale * nearest(between(x[lane] * inverse, -32.0, 31.0)) - x[lane];
            sum[lane] += error * error;
        }
    }
    total(sum)
}

#[expect(clippy::cast_possible_truncation, reason = "−128 to 127 by then")]
fn signed_byte(value: f32) -> i8 {
    value as i8
}

/// The integer for a group's scale below the block's `d`: the nearest, or a neighbour.
fn share_signed(x: &[f32; 16], scale: f32, d: f32) -> i8 {
    if d == 0.0 {
        return 0;
    }
    let near = nearest(between(scale / d, -128.0, 127.0));
    let mut best = (f32::INFINITY, near);
    for scale in [near, near - 1.0, near + 1.0] {
        let error = error_signed(x, d * scale);
        if (-128.0..=127.0).contains(&scale) && error < best.0 {
            best = (error, scale);
        }
    }
    signed_byte(best.1)
}

/// The quants for scales that are settled, and the error.
fn settle_signed(x: &[f32], d: Half, scales: &[i8; 16]) -> ([i8; 256], f32) {
    let (mut quants, mut error) = ([0; 256], 0.0);
    for at in 0..16 {
        let scale = d.to_f32() * f32::from(scales[at]);
        let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
        let x: &[f32; 16] = group(x, at);
        for (quant, &value) in quants[at * 16..].iter_mut().zip(x) {
            *quant = signed_byte(nearest(between(value * inverse, -32.0, 31.0)));
        }
        error += error_signed(x, scale);
    }
    (quants, error)
}

impl Encode for BlockQ6_K {
    fn encode(values: &[f32]) -> Self {
        let fits: [f32; 16] = std::array::from_fn(|at| fit_signed(group(values, at)));
        let most =
            fits.iter().fold(0.0_f32, |most, &fit| if fit.abs() > most.abs() { fit } else { most });
        let mut d = Half::from_f32(most / -128.0);
        let scales =
            std::array::from_fn(|at| share_signed(group(values, at), fits[at], d.to_f32()));
        let (mut quants, error) = settle_signed(values, d, &scales);
        let [mut aa, mut ax] = [0.0_f32; 2];
        for (at, &value) in values.iter().enumerate() {
            let a = f32::from(scales[at / 16]) * f32::from(quants[at]);
            aa += a * a;
            ax += a * value;
        }
        if aa > 0.0 {
            let again = Half::from_f32(ax / aa);
            let (settled, less) = settle_signed(values, again, &scales);
            if less < error {
                (d, quants) = (again, settled);
            }
        }
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
