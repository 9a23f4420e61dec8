//! The search for blocks of eight groups above minimums: their scales, minimums and integers.
//!
//! A group is fitted by itself first (`fit.rs`). With its integers held, its error is a quadratic
//! form of scale and minimum, so that many pairs of block scales can be judged without another
//! look at the values: the pair is taken for which the groups lose least. Below it, each group
//! tries the nearest scales and minimums on its values. Last, the block's scales are fitted once
//! more to all that was chosen, and kept where it helps. Where one group leaves the others few
//! multiples, the block's scales are sought far and wide.

use super::fit::{Fit, Group, inverse_of};
use super::k::{between, byte, group, nearest};
use crate::quant::Half;

/// How many of a block's scale the largest one of its groups is tried to be.
const LARGEST: [f32; 6] = [63.0, 62.5, 62.0, 61.5, 61.0, 60.0];
/// The same where the block is strained: each whole number from here to 63.
const LARGEST_STRAINED: u8 = 24;
/// What a group may lose against its own fit, as a share of the error that evenly spread values
/// would have, before the block counts as strained.
const STRAIN: f32 = 0.5;

/// What the eight groups lose, against their own fits, while their integers stay: the quadratic
/// form of each around its fit, side by side.
#[derive(Default)]
struct Held {
    scale: [f32; 8],
    min: [f32; 8],
    w: [f32; 8],
    wq: [f32; 8],
    wqq: [f32; 8],
    /// The slope of the error over the minimum where that is held at zero, else none.
    slope: [f32; 8],
    w_inverse: [f32; 8],
}

impl Held {
    fn new(fits: &[Fit; 8]) -> Self {
        let slope = |Fit { scale, min, sums, .. }: Fit| {
            if min > 0.0 { 0.0 } else { 2.0 * (sums.wx - scale * sums.wq) }
        };
        Self {
            scale: fits.map(|fit| fit.scale),
            min: fits.map(|fit| fit.min),
            w: fits.map(|fit| fit.sums.w),
            wq: fits.map(|fit| fit.sums.wq),
            wqq: fits.map(|fit| fit.sums.wqq),
            slope: fits.map(slope),
            w_inverse: fits.map(|fit| 1.0 / fit.sums.w),
        }
    }

    /// The minimum of least error for a scale that is off the fit's by so much.
    fn min_for(&self, at: usize, off: f32) -> f32 {
        self.min[at] + (self.wq[at] * off - 0.5 * self.slope[at]) * self.w_inverse[at]
    }

    /// What one group loses with its best multiples of the block's scales, and these.
    fn multiples(&self, at: usize, units: Units) -> (f32, f32, f32) {
        let of = |multiple: f32| {
            let multiple = between(multiple, 0.0, 63.0);
            let off = multiple * units.d - self.scale[at];
            let min = self.min_for(at, off) * units.dmin_inverse;
            let min = nearest(between(min, 0.0, 63.0));
            let min_off = min * units.dmin - self.min[at];
            let lost = off * (off * self.wqq[at] - 2.0 * self.wq[at] * min_off)
                + min_off * (min_off * self.w[at] + self.slope[at]);
            (lost, multiple, min)
        };
        let below = nearest(self.scale[at] * units.d_inverse - 0.5);
        let (lower, upper) = (of(below), of(below + 1.0));
        if upper.0 < lower.0 { upper } else { lower }
    }

    fn lost(&self, units: Units) -> f32 {
        let mut lost = [0.0; 8];
        for (at, lost) in lost.iter_mut().enumerate() {
            *lost = self.multiples(at, units).0;
        }
        lost.iter().sum()
    }

    /// The pair of block scales that loses least.
    fn units(&self, fits: &[Fit; 8]) -> Units {
        let scale = largest_of(fits.map(|fit| fit.scale));
        let min = largest_of(fits.map(|fit| fit.min));
        let mut best = (f32::INFINITY, Units::new(scale / 63.0, min / 63.0));
        for most in LARGEST {
            for min_most in LARGEST {
                let units = Units::new(scale / most, min / min_most);
                let lost = self.lost(units);
                if lost < best.0 {
                    best = (lost, units);
                }
            }
        }
        best.1
    }
}

fn largest_of(values: [f32; 8]) -> f32 {
    values.iter().fold(0.0, |most, &value| if value > most { value } else { most })
}

/// A block's own two scales as halves hold them.
#[derive(Debug, Clone, Copy)]
struct Units {
    d: f32,
    dmin: f32,
    d_inverse: f32,
    dmin_inverse: f32,
}

impl Units {
    fn new(d: f32, dmin: f32) -> Self {
        let (d, dmin) = (Half::from_f32(d).to_f32(), Half::from_f32(dmin).to_f32());
        Self { d, dmin, d_inverse: inverse_of(d), dmin_inverse: inverse_of(dmin) }
    }
}

/// A block of eight groups above minimums: its two scales, the groups' integers, the quants.
pub(super) struct AboveMin {
    pub(super) d: Half,
    pub(super) dmin: Half,
    pub(super) scales: [u8; 8],
    pub(super) mins: [u8; 8],
    pub(super) quants: [u8; 256],
}

/// What one group takes of the block's scales, and how it fares.
#[derive(Debug, Clone, Copy)]
struct Share {
    error: f32,
    scale: f32,
    min: f32,
}

impl Share {
    const NONE: Self = Self { error: f32::INFINITY, scale: 0.0, min: 0.0 };

    /// Takes the multiples where they err less on the group's values.
    fn improve(&mut self, group: &Group<'_>, units: Units, scale: f32, min: f32) {
        let error = group.error(scale * units.d, min * units.dmin);
        if error < self.error {
            *self = Self { error, scale, min };
        }
    }

    /// The best multiples of the units near those that held integers ask for.
    fn near(group: &Group<'_>, held: &Held, at: usize, units: Units) -> Self {
        let near = held.multiples(at, units).1;
        let mut best = Self::NONE;
        for scale in [near, near - 1.0, near + 1.0] {
            if !(0.0..=63.0).contains(&scale) {
                continue;
            }
            let min = held.min_for(at, scale * units.d - held.scale[at]);
            let below = between(nearest(min * units.dmin_inverse - 0.5), 0.0, 62.0);
            best.improve(group, units, scale, below);
            best.improve(group, units, scale, below + 1.0);
        }
        best
    }

    /// The same of any minimum, with the scale that was found and its neighbours.
    fn of_any_min(self, group: &Group<'_>, units: Units) -> Self {
        let mut best = Self::NONE;
        for scale in [self.scale, self.scale - 1.0, self.scale + 1.0] {
            if (0.0..=63.0).contains(&scale) {
                for min in 0..64_u8 {
                    best.improve(group, units, scale, f32::from(min));
                }
            }
        }
        best
    }
}

/// The block's two scales of least error for the integers that were chosen.
fn refitted(groups: &[Group<'_>; 8], units: Units, shares: &[Share; 8]) -> Option<Units> {
    let [mut aa, mut ab, mut bb, mut ax, mut bx] = [0.0_f32; 5];
    for (group, &Share { scale, min, .. }) in groups.iter().zip(shares) {
        let sums = group.sums(inverse_of(scale * units.d), min * units.dmin);
        aa += scale * scale * sums.wqq;
        ab += scale * min * sums.wq;
        bb += min * min * sums.w;
        ax += scale * sums.wqx;
        bx += min * sums.wx;
    }
    let determinant = aa * bb - ab * ab;
    let (d, dmin) = if determinant > 0.0 {
        ((ax * bb - ab * bx) / determinant, (ab * ax - aa * bx) / determinant)
    } else if aa > 0.0 {
        (ax / aa, 0.0)
    } else {
        return None;
    };
    (d > 0.0 && dmin >= 0.0).then(|| Units::new(d, dmin))
}

/// What a round of the search came to.
struct Round {
    error: f32,
    units: Units,
    shares: [Share; 8],
}

impl Round {
    /// The block's scales fitted once more, where that helps.
    fn of(groups: &[Group<'_>; 8], units: Units, shares: [Share; 8]) -> Self {
        let error = shares.iter().map(|share| share.error).sum();
        let first = Self { error, units, shares };
        let Some(units) = refitted(groups, units, &shares) else {
            return first;
        };
        let tried = |(group, share): (&Group<'_>, &Share)| {
            group.error(share.scale * units.d, share.min * units.dmin)
        };
        let error = groups.iter().zip(&shares).map(tried).sum();
        if error < first.error { Self { error, units, shares } } else { first }
    }

    fn new(groups: &[Group<'_>; 8], held: &Held, units: Units) -> Self {
        let near = |at: usize| Share::near(&groups[at], held, at, units);
        Self::of(groups, units, std::array::from_fn(near))
    }

    /// The best of many rounds, for a block where the multiples are few.
    fn far_and_wide(self, groups: &[Group<'_>; 8], held: &Held) -> Self {
        let (largest, dmin) = (largest_of(held.scale), self.units.dmin);
        let mut best = self;
        for most in (LARGEST_STRAINED..64).rev() {
            let next = Self::new(groups, held, Units::new(largest / f32::from(most), dmin));
            if next.error < best.error {
                best = next;
            }
        }
        let any = |at: usize| best.shares[at].of_any_min(&groups[at], best.units);
        let last = Self::of(groups, best.units, std::array::from_fn(any));
        if last.error < best.error { last } else { best }
    }
}

impl AboveMin {
    /// Searches the block for 256 values, its quants in 0 to `levels`.
    pub(super) fn new(x: &[f32], levels: f32) -> Self {
        let groups: [Group<'_>; 8] = std::array::from_fn(|at| Group::new(group(x, at), levels));
        let fits: [Fit; 8] = std::array::from_fn(|at| groups[at].fit());
        let held = Held::new(&fits);
        let mut best = Round::new(&groups, &held, held.units(&fits));
        // A twelfth of a quant's square is the error of values that are spread evenly.
        let is_strained = |(fit, share): (&Fit, &Share)| {
            let spread = fit.scale * fit.scale / 12.0 * fit.sums.w;
            share.error > fit.error + STRAIN * spread
        };
        if fits.iter().zip(&best.shares).any(is_strained) {
            best = best.far_and_wide(&groups, &held);
        }
        Self::settled(&groups, &best.shares, best.units)
    }

    fn settled(groups: &[Group<'_>; 8], shares: &[Share; 8], units: Units) -> Self {
        let mut quants = [0; 256];
        for ((quants, group), share) in quants.chunks_exact_mut(32).zip(groups).zip(shares) {
            let (scale, min) = (share.scale * units.d, share.min * units.dmin);
            let inverse = inverse_of(scale);
            for (quant, &value) in quants.iter_mut().zip(group.x) {
                *quant = byte(nearest(between((value + min) * inverse, 0.0, group.levels)));
            }
        }
        Self {
            d: Half::from_f32(units.d),
            dmin: Half::from_f32(units.dmin),
            scales: shares.map(|share| byte(share.scale)),
            mins: shares.map(|share| byte(share.min)),
            quants,
        }
    }

    /// The lower four bits of the quants, in quarters of 64 elements.
    pub(super) fn nibbles(&self) -> [u8; 128] {
        std::array::from_fn(|at| {
            let low = at / 32 * 64 + at % 32;
            self.quants[low] & 0x0f | self.quants[low + 32] << 4
        })
    }
}
