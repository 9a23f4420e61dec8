//! The first filter over a whole row: finds the few tokens it can keep, then runs its definition.

use crate::dense::Row;
use crate::mass::Mass;
use crate::rule::Filter;
use crate::survivors::Survivors;

/// Absolute margin of a threshold in nats: far above rounding, far below any difference that counts.
const MARGIN: f64 = 1e-9;

impl Filter {
    /// Turns a row into the list of what the filter keeps.
    ///
    /// `mass` is computed at most once, and only for filters that look at probabilities.
    pub(crate) fn narrow(
        self,
        row: &Row<'_>,
        mass: &mut dyn FnMut() -> Mass,
        list: &mut Survivors,
    ) {
        match self {
            Self::TopK { count, .. } => {
                row.collect(nth_maximum(row, count), list);
                self.run(list);
                list.total_unfiltered = list.total;
            }
            Self::TopP { mass: share, .. } => self.reach(row, &mass(), share, list),
            Self::MinP { share, .. } => {
                let best = row.best().map_or(0.0, |best| best.score);
                row.collect(best + libm::log(share) - MARGIN, list);
                self.run(list);
            }
            Self::Epsilon(epsilon) => {
                let mass = mass();
                row.collect(floor(&mass, epsilon), list);
                list.keep_weights_from_share(epsilon, mass.total);
            }
            Self::Eta(epsilon) => {
                let mass = mass();
                let bound = Survivors::eta_bound(epsilon, mass.entropy());
                row.collect(floor(&mass, bound), list);
                list.keep_weights_from_share(bound, mass.total);
            }
            Self::TopNSigma(_) | Self::Typical { .. } => {
                row.collect(f64::NEG_INFINITY, list);
                self.run(list);
            }
        }
        list.sum();
    }

    /// `top_p`: takes ever more of the best tokens until their mass suffices.
    fn reach(self, row: &Row<'_>, mass: &Mass, share: f64, list: &mut Survivors) {
        let mut distance = 4.0;
        loop {
            // 64 nats below the best there is no mass left to find.
            let floor =
                if distance > 64.0 { f64::NEG_INFINITY } else { mass.best.score - distance };
            row.collect(floor, list);
            let is_enough = list.total > share * mass.total * (1.0 + MARGIN);
            if is_enough || floor == f64::NEG_INFINITY {
                break;
            }
            distance *= 2.0;
        }
        (list.total, list.total_unfiltered) = (mass.total, mass.total);
        self.run(list);
    }
}

/// The least score of a token with at least `share` of the mass; never above the best, which stays.
fn floor(mass: &Mass, share: f64) -> f64 {
    mass.best.score + libm::log(share * mass.total).min(0.0) - MARGIN
}

/// A score that at least `count` tokens reach: the `count`-th largest of the blocks' maxima.
fn nth_maximum(row: &Row<'_>, count: usize) -> f64 {
    let mut maxima: Vec<f32> = row.maxima().to_vec();
    if count > maxima.len() {
        return f64::NEG_INFINITY;
    }
    let (_, nth, _) = maxima.select_nth_unstable_by(count - 1, |a, b| b.total_cmp(a));
    row.score(*nth)
}
