//! One group above a minimum: its integers, and the scale and minimum of least error for them.
//!
//! The group's range is drawn in or out at both ends; each range gives integers, and for these the
//! scale and minimum are known in closed form (normal equations of two unknowns).

use super::k::{LANES, RANGE_MIN, between, nearest, total, weights};

/// How far inside its least and most value a group's range is tried to end, in quants.
const ENDS: [f32; 4] = [-0.3, 0.0, 0.3, 0.6];

/// Sums over a group's values `x` with their weights `w` and integers `q`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) w: f32,
    pub(super) wx: f32,
    pub(super) wxx: f32,
    pub(super) wq: f32,
    pub(super) wqq: f32,
    pub(super) wqx: f32,
}

impl Sums {
    /// The scale and minimum of least error for the integers, if they have one.
    fn solved(&self) -> Option<(f32, f32)> {
        let determinant = self.w * self.wqq - self.wq * self.wq;
        if determinant <= 0.0 {
            return None;
        }
        let scale = (self.w * self.wqx - self.wx * self.wq) / determinant;
        let min = (self.wq * self.wqx - self.wqq * self.wx) / determinant;
        Some(if min < 0.0 { (self.wqx / self.wqq, 0.0) } else { (scale, min) })
    }

    fn error(&self, scale: f32, min: f32) -> f32 {
        self.wxx
            + scale * (scale * self.wqq - 2.0 * self.wqx)
            + min * (min * self.w + 2.0 * self.wx - 2.0 * scale * self.wq)
    }
}

/// A group's real scale and minimum of least error, and the sums for its integers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fit {
    pub(super) error: f32,
    pub(super) scale: f32,
    pub(super) min: f32,
    pub(super) sums: Sums,
}

impl Fit {
    /// Takes what `sums` give where it errs less.
    fn improves(&mut self, sums: Sums) -> bool {
        let Some((scale, min)) = sums.solved() else {
            return false;
        };
        let error = sums.error(scale, min);
        let is_better = error < self.error && scale > 0.0;
        if is_better {
            *self = Self { error, scale, min, sums };
        }
        is_better
    }
}

pub(super) fn inverse_of(value: f32) -> f32 {
    if value > 0.0 { 1.0 / value } else { 0.0 }
}

/// A group's values and weights, with integers of 0 to `levels` to stand for them.
pub(super) struct Group<'a> {
    pub(super) x: &'a [f32; 32],
    pub(super) w: [f32; 32],
    pub(super) levels: f32,
    /// The sums that hang on no integer.
    pub(super) fixed: Sums,
}

impl<'a> Group<'a> {
    pub(super) fn new(x: &'a [f32; 32], levels: f32) -> Self {
        let w = weights(x);
        let [mut sum_w, mut wx, mut wxx] = [[0.0; LANES]; 3];
        for (x, w) in x.chunks_exact(LANES).zip(w.chunks_exact(LANES)) {
            for lane in 0..LANES {
                sum_w[lane] += w[lane];
                wx[lane] += w[lane] * x[lane];
                wxx[lane] += w[lane] * x[lane] * x[lane];
            }
        }
        let fixed = Sums { w: total(sum_w), wx: total(wx), wxx: total(wxx), ..Sums::default() };
        Self { x, w, levels, fixed }
    }

    /// The sums for the integers nearest to `(x + min) × inverse`.
    pub(super) fn sums(&self, inverse: f32, min: f32) -> Sums {
        let [mut wq, mut wqq, mut wqx] = [[0.0; LANES]; 3];
        for (x, w) in self.x.chunks_exact(LANES).zip(self.w.chunks_exact(LANES)) {
            for lane in 0..LANES {
                let q = nearest(between((x[lane] + min) * inverse, 0.0, self.levels));
                let weighted = w[lane] * q;
                wq[lane] += weighted;
                wqq[lane] += weighted * q;
                wqx[lane] += weighted * x[lane];
            }
        }
        Sums { wq: total(wq), wqq: total(wqq), wqx: total(wqx), ..self.fixed }
    }

    /// The error of `scale × q − min` with the nearest integers.
    pub(super) fn error(&self, scale: f32, min: f32) -> f32 {
        let inverse = inverse_of(scale);
        let mut sum = [0.0; LANES];
        for (x, w) in self.x.chunks_exact(LANES).zip(self.w.chunks_exact(LANES)) {
            for lane in 0..LANES {
                let above = x[lane] + min;
                let off = scale * nearest(between(above * inverse, 0.0, self.levels)) - above;
                sum[lane] += w[lane] * off * off;
            }
        }
        total(sum)
    }

    pub(super) fn fit(&self) -> Fit {
        let (mut least, mut most) = (0.0_f32, self.x[0]);
        for &value in self.x {
            least = if value < least { value } else { least };
            most = if value > most { value } else { most };
        }
        let range = most - least;
        if range < RANGE_MIN {
            return Fit { error: 0.0, scale: 0.0, min: -least, sums: self.fixed };
        }
        let (levels, quant) = (self.levels, range / self.levels);
        let mut best = Fit { error: f32::INFINITY, scale: quant, min: -least, sums: self.fixed };
        // Values that were quantised before may leave the first or last integer out.
        best.improves(self.sums((levels - 1.0) / range, -least));
        for low in ENDS {
            for high in ENDS {
                let inverse = levels / (quant * (levels - low - high));
                best.improves(self.sums(inverse, -least - low * quant));
            }
        }
        while best.improves(self.sums(1.0 / best.scale, best.min)) {}
        best
    }
}
