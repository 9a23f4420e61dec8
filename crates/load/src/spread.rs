//! Percentiles by nearest rank: each is a value that was measured.

use serde::Serialize;

/// With fewer values than this the p99 is the greatest of them.
pub const P99_COUNT_MIN: usize = 100;

/// How values are spread, in milliseconds; all but the count are absent where there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Spread {
    pub count: usize,
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub max: Option<f64>,
    /// Whether there are values, but too few to tell the p99 from the greatest.
    pub p99_is_thin: bool,
}

impl Spread {
    /// The spread of some values.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let rank = |percent| nearest_rank(&values, percent);
        #[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 values")]
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Self {
            count: values.len(),
            mean: (!values.is_empty()).then_some(mean),
            p50: rank(50),
            p90: rank(90),
            p95: rank(95),
            p99: rank(99),
            max: rank(100),
            p99_is_thin: (1..P99_COUNT_MIN).contains(&values.len()),
        }
    }
}

/// The least of the sorted values that at least `percent` of 100 do not exceed.
fn nearest_rank(sorted: &[f64], percent: usize) -> Option<f64> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.max(1) - 1).copied()
}

#[cfg(test)]
mod tests;
