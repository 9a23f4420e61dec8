//! The softmax of a whole row against plain sums in `f64`.

use super::Mass;
use crate::dense::{Row, RowBuffers};
use crate::rows::Lcg;

/// Largest relative error of the total and largest error of the entropy over some rows.
fn errors(vocab_size: usize, shape: impl Fn(&mut Lcg) -> Vec<f32>) -> (f64, f64) {
    let (mut of_total, mut of_entropy) = (0.0_f64, 0.0_f64);
    for seed in 0..6 {
        let row = shape(&mut Lcg(seed));
        assert_eq!(row.len(), vocab_size);
        let mut buffers = RowBuffers::default();
        let scanned = Row::scan(&row, 0, &mut buffers).unwrap();
        let best = scanned.best().unwrap();
        let mass = Mass::of(&scanned, best, None);
        let differences = row.iter().map(|&v| f64::from(v) - best.score);
        let finite: Vec<f64> = differences.filter(|d| d.is_finite()).collect();
        let total: f64 = finite.iter().map(|&d| libm::exp(d)).sum();
        let moment: f64 = finite.iter().map(|&d| libm::exp(d) * d).sum();
        of_total = of_total.max((mass.total / total - 1.0).abs());
        of_entropy = of_entropy.max((mass.entropy() - (total.ln() - moment / total)).abs());
    }
    (of_total, of_entropy)
}

fn bulk(lcg: &mut Lcg, vocab_size: usize, peak: f32, slope: f32) -> Vec<f32> {
    let mut row: Vec<f32> = (0..vocab_size).map(|_| 2.2 * lcg.normal()).collect();
    for rank in 0..200_u16 {
        let place = lcg.below(u32::try_from(vocab_size).unwrap()) as usize;
        row[place] = peak - slope * f32::from(rank);
    }
    row
}

#[test]
fn short_rows_are_summed_in_full_precision() {
    let (total, entropy) = errors(1000, |lcg| lcg.row(1000));
    assert!(total < 1e-13 && entropy < 1e-12, "{total:e} {entropy:e}");
}

#[test]
fn long_rows_stay_within_the_stated_error() {
    for (peak, slope) in [(20.0, 0.25), (20.0, 0.05), (14.0, 0.1), (12.0, 0.25), (9.0, 0.01)] {
        let (total, entropy) = errors(152_000, |lcg| bulk(lcg, 152_000, peak, slope));
        assert!(total < 5e-8 && entropy < 1e-6, "{peak} {slope}: {total:e} {entropy:e}");
    }
}
