//! The softmax of a whole row: its normaliser and its entropy in one pass.

use causeway_kernels::{Work, widest};

use std::f64::consts::{LN_2, LOG2_E};

use crate::arithmetic::{
    EXPONENT_MIN, EXPONENT_MIN_F32, LANES, exp, exp2, exp2_f32, fold, fold_f32,
};
use crate::dense::{BLOCK, Row};
use crate::survivors::Candidate;

/// Blocks summed in `f64`: those with the largest maxima. The far others are summed in `f32`.
///
/// A row of up to 8,192 tokens is thus summed in `f64` throughout. In a longer one the error of
/// the sum stays below 5e-8 of it, that of the entropy below 1e-6 (measured: 2e-8 and 4e-7 on flat rows, 1e-10 and 2e-9 on peaked ones),
/// since what is far is either light or thousands of tokens whose roundings even out.
const NEAR_BLOCKS: usize = 128;

/// Normaliser and entropy of a row in its present scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mass {
    pub best: Candidate,
    /// Sum of `exp(score - best)`.
    pub total: f64,
    /// Sum of `exp(score - best) * (score - best)`.
    moment: f64,
}

/// How values turn into powers of two relative to the best.
struct Relative {
    /// The best score times the temperature: the value that weighs 1.
    best: f64,
    /// From a difference of values to a power of two.
    scale: f64,
    /// The least maximum of a near block.
    near_from: f32,
    /// How much rounding `scale` to `f32` lowers a far power, relative to the power, per unit.
    drift: f64,
    /// What rounding `best` to `f32` multiplies every far weight by.
    shift: f64,
}

impl Relative {
    fn of(row: &Row<'_>, best: &Candidate) -> Self {
        let mut maxima: Vec<f32> = row.maxima().to_vec();
        let near_from = if maxima.len() > NEAR_BLOCKS {
            *maxima.select_nth_unstable_by(NEAR_BLOCKS - 1, |a, b| b.total_cmp(a)).1
        } else {
            f32::NEG_INFINITY
        };
        let score = best.score;
        let (best, scale) = (score * row.temperature, LOG2_E / row.temperature);
        #[expect(clippy::cast_possible_truncation, reason = "as the far blocks do")]
        let (best_f32, scale_f32) = (best as f32, f64::from(scale as f32));
        // Dividing and multiplying again may miss the row's own value by a rounding, which a tiny
        // temperature makes large.
        let is_of_row = row.score(best_f32).to_bits() == score.to_bits();
        let best_f32 = f64::from(best_f32);
        let best = if is_of_row { best_f32 } else { best };
        // Out of f32's range every far weight is 0 anyway.
        let is_exact = scale_f32.is_normal() && best_f32.is_finite();
        let drift = if is_exact { (scale / scale_f32 - 1.0) * LN_2 } else { 0.0 };
        let shift = if is_exact { libm::exp2((best_f32 - best) * scale) } else { 1.0 };
        Self { best, scale, near_from, drift, shift }
    }

    #[inline(always)]
    fn near(&self, value: f32) -> f64 {
        (f64::from(value) - self.best) * self.scale
    }

    /// The same in `f32`, for far blocks only: no difference is zero there.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the far tail is summed in f32")]
    fn far(&self, value: f32) -> f32 {
        (value - self.best as f32) * self.scale as f32
    }
}

impl Mass {
    /// The sums over every token in play; the row must hold one.
    ///
    /// `weights`, where given, receives `exp(score - best)` of every token of the row itself to
    /// within 1e-4, for the bounds of a draw; edited and masked tokens weigh about 0.
    pub(crate) fn of(row: &Row<'_>, best: Candidate, weights: Option<&mut Vec<f32>>) -> Self {
        widest(RowSum { row, best, weights })
    }

    /// Natural logarithm of the probability of a score.
    pub(crate) fn logprob(&self, score: f64) -> f64 {
        score - self.best.score - libm::log(self.total)
    }

    /// The probability of a score.
    pub(crate) fn probability(&self, score: f64) -> f64 {
        exp(score - self.best.score) / self.total
    }

    /// Entropy in nats.
    pub(crate) fn entropy(&self) -> f64 {
        (libm::log(self.total) - self.moment / self.total).max(0.0)
    }
}

/// The sums of a row.
pub(crate) struct RowSum<'a> {
    pub row: &'a Row<'a>,
    pub best: Candidate,
    pub weights: Option<&'a mut Vec<f32>>,
}

impl Work for RowSum<'_> {
    type Out = Mass;

    #[inline(always)]
    fn run(self) -> Mass {
        let Self { row, best, weights } = self;
        let relative = Relative::of(row, &best);
        let (mut total, mut moment) = (0.0, 0.0);
        let (blocks, rest) = row.values().as_chunks::<BLOCK>();
        let mut last = [f32::NEG_INFINITY; BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        let mut room = [0.0; BLOCK];
        let mut kept = weights.map(|weights| {
            weights.clear();
            weights.resize(row.maxima().len() * BLOCK, 0.0);
            weights.as_chunks_mut::<BLOCK>().0.iter_mut()
        });
        for (block, &max) in blocks.iter().chain([&last]).zip(row.maxima()) {
            let weights = kept.as_mut().and_then(Iterator::next).unwrap_or(&mut room);
            if max == f32::NEG_INFINITY {
                continue;
            }
            let (sum, turn) = if max >= relative.near_from {
                sum_near(block, &relative, weights)
            } else {
                sum_far(block, &relative, weights)
            };
            total += sum;
            moment += turn * LN_2;
        }
        for candidate in row.edited() {
            let difference = candidate.score - best.score;
            let weight = exp(difference);
            total += weight;
            moment += weight * difference;
        }
        Mass { best, total, moment }
    }
}

#[inline(always)]
fn sum_near(block: &[f32; BLOCK], relative: &Relative, weights: &mut [f32; BLOCK]) -> (f64, f64) {
    let mut sums = [0.0; LANES];
    let mut moments = [0.0; LANES];
    let chunks = weights.as_chunks_mut::<LANES>().0.iter_mut();
    for (values, weights) in block.as_chunks::<LANES>().0.iter().zip(chunks) {
        for lane in 0..LANES {
            let t = relative.near(values[lane]);
            let t = if t > EXPONENT_MIN { t } else { EXPONENT_MIN };
            let weight = exp2(t);
            sums[lane] += weight;
            moments[lane] += weight * t;
            #[expect(clippy::cast_possible_truncation, reason = "a weight for a bound")]
            {
                weights[lane] = weight as f32;
            }
        }
    }
    (fold(sums), fold(moments))
}

#[inline(always)]
fn sum_far(block: &[f32; BLOCK], relative: &Relative, weights: &mut [f32; BLOCK]) -> (f64, f64) {
    let mut sums = [0.0; LANES];
    let mut moments = [0.0; LANES];
    let chunks = weights.as_chunks_mut::<LANES>().0.iter_mut();
    for (values, weights) in block.as_chunks::<LANES>().0.iter().zip(chunks) {
        for lane in 0..LANES {
            let t = relative.far(values[lane]);
            let t = if t > EXPONENT_MIN_F32 { t } else { EXPONENT_MIN_F32 };
            let weight = exp2_f32(t);
            sums[lane] += weight;
            moments[lane] += weight * t;
            weights[lane] = weight;
        }
    }
    let (sum, moment) = (f64::from(fold_f32(sums)), f64::from(fold_f32(moments)));
    // To first order, a power t lowered by t * drift weighs less by that share.
    ((sum + moment * relative.drift) * relative.shift, moment * relative.shift)
}

#[cfg(test)]
mod tests;
