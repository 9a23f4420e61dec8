//! The search for blocks of sixteen groups with signed scales and integers.
//!
//! A group is fitted by itself first: a few step sizes are tried, each gives its integers, and for
//! these the scale of least error is known in closed form. The block's own scale is the one of a
//! few for which whole multiples lose least; below it, each group tries the neighbours on its
//! values. Last, the block's scale is fitted once more to all that was chosen, and kept where it
//! helps.

use super::k::{LANES, RANGE_MIN, between, group, nearest, total, weights};
use crate::quant::Half;

/// How many of a block's scale the largest one of its groups is tried to be, with the sign that
/// gives it one multiple more.
const LARGEST: [f32; 8] = [-128.0, -127.0, -126.0, -125.0, -124.0, -123.0, -122.0, -121.0];

/// The integers' sums over a group that a scale's error hangs on, and the scale of least error.
#[derive(Debug, Clone, Copy, Default)]
struct Fit {
    scale: f32,
    wqq: f32,
}

fn inverse_of(value: f32) -> f32 {
    if value == 0.0 { 0.0 } else { 1.0 / value }
}

#[expect(clippy::cast_possible_truncation, reason = "−128 to 127 by then")]
fn signed_byte(value: f32) -> i8 {
    value as i8
}

/// A group's values and weights.
struct Group<'a> {
    x: &'a [f32; 16],
    w: [f32; 16],
}

impl<'a> Group<'a> {
    fn new(x: &'a [f32; 16]) -> Self {
        Self { x, w: weights(x) }
    }

    /// The sums of `w × q × q` and `w × q × x` for the integers nearest to `x × inverse`.
    fn sums(&self, inverse: f32) -> (f32, f32) {
        let [mut wqq, mut wqx] = [[0.0; LANES]; 2];
        for (x, w) in self.x.chunks_exact(LANES).zip(self.w.chunks_exact(LANES)) {
            for lane in 0..LANES {
                let q = nearest(between(x[lane] * inverse, -32.0, 31.0));
                let weighted = w[lane] * q;
                wqq[lane] += weighted * q;
                wqx[lane] += weighted * x[lane];
            }
        }
        (total(wqq), total(wqx))
    }

    fn fit(&self) -> Fit {
        let mut most = 0.0_f32;
        for &value in self.x {
            most = if value.abs() > most.abs() { value } else { most };
        }
        if most.abs() < RANGE_MIN {
            return Fit::default();
        }
        let mut best = (0.0, Fit { scale: -most / 32.0, wqq: 0.0 });
        // Steps of a tenth of a quant, the plain one first so that it wins a draw.
        for step in std::iter::once(0_i8).chain((-9..=9).filter(|&step| step != 0)) {
            let (wqq, wqx) = self.sums(-(32.0 + 0.1 * f32::from(step)) / most);
            // What the fit takes off the sum of squares; more by its last place only is not more.
            if wqq > 0.0 && wqx * wqx / wqq > best.0 * 1.000_001 {
                best = (wqx * wqx / wqq, Fit { scale: wqx / wqq, wqq });
            }
        }
        best.1
    }

    /// The error of `scale × q` with the nearest integers.
    fn error(&self, scale: f32) -> f32 {
        let inverse = inverse_of(scale);
        let mut sum = [0.0; LANES];
        for (x, w) in self.x.chunks_exact(LANES).zip(self.w.chunks_exact(LANES)) {
            for lane in 0..LANES {
                let off = scale * nearest(between(x[lane] * inverse, -32.0, 31.0)) - x[lane];
                sum[lane] += w[lane] * off * off;
            }
        }
        total(sum)
    }

    /// The multiple of the block's `d` for this group, the nearest or a neighbour, and its error.
    fn share(&self, fit: Fit, d: f32) -> (f32, f32) {
        if d == 0.0 {
            return (0.0, self.error(0.0));
        }
        let near = nearest(between(fit.scale / d, -128.0, 127.0));
        let mut best = (near, f32::INFINITY);
        for multiple in [near, near - 1.0, near + 1.0] {
            let error = self.error(d * multiple);
            if (-128.0..=127.0).contains(&multiple) && error < best.1 {
                best = (multiple, error);
            }
        }
        best
    }
}

/// The block's scale whose whole multiples lose least while the groups' integers stay.
fn block_scale(fits: &[Fit; 16]) -> f32 {
    let mut most = 0.0_f32;
    for fit in fits {
        most = if fit.scale.abs() > most.abs() { fit.scale } else { most };
    }
    let mut best = (f32::INFINITY, 0.0);
    for largest in LARGEST {
        let d = Half::from_f32(most / largest).to_f32();
        let inverse = inverse_of(d);
        let mut errors = [0.0; LANES];
        for (at, fit) in fits.iter().enumerate() {
            let off = d * nearest(between(fit.scale * inverse, -128.0, 127.0)) - fit.scale;
            errors[at % LANES] += fit.wqq * off * off;
        }
        if total(errors) < best.0 {
            best = (total(errors), d);
        }
    }
    best.1
}

/// A block of sixteen groups: its scale, the groups' integers, the quants.
pub(super) struct Signed {
    pub(super) d: Half,
    pub(super) scales: [i8; 16],
    pub(super) quants: [i8; 256],
}

impl Signed {
    /// Searches the block for 256 values.
    pub(super) fn new(x: &[f32]) -> Self {
        let groups: [Group<'_>; 16] = std::array::from_fn(|at| Group::new(group(x, at)));
        let fits: [Fit; 16] = std::array::from_fn(|at| groups[at].fit());
        let mut d = block_scale(&fits);
        let shares: [(f32, f32); 16] = std::array::from_fn(|at| groups[at].share(fits[at], d));
        let [mut aa, mut ax] = [0.0_f32; 2];
        for (group, (multiple, _)) in groups.iter().zip(&shares) {
            let (wqq, wqx) = group.sums(inverse_of(d * multiple));
            aa += multiple * multiple * wqq;
            ax += multiple * wqx;
        }
        if aa > 0.0 {
            let again = Half::from_f32(ax / aa).to_f32();
            let first: f32 = shares.iter().map(|share| share.1).sum();
            let second: f32 =
                groups.iter().zip(&shares).map(|(group, share)| group.error(again * share.0)).sum();
            if second < first {
                d = again;
            }
        }
        let mut quants = [0; 256];
        for ((quants, group), (multiple, _)) in
            quants.chunks_exact_mut(16).zip(&groups).zip(&shares)
        {
            let inverse = inverse_of(d * multiple);
            for (quant, &value) in quants.iter_mut().zip(group.x) {
                *quant = signed_byte(nearest(between(value * inverse, -32.0, 31.0)));
            }
        }
        let scales = shares.map(|share| signed_byte(share.0));
        Self { d: Half::from_f32(d), scales, quants }
    }
}
