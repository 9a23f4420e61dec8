//! Percentiles by nearest rank, against values worked out by hand.

use super::*;

#[test]
fn percentiles_are_values_that_were_measured() {
    let check = |count: u32, want: [f64; 5], p99_is_thin: bool| {
        // Backwards, so that order does not matter.
        let spread = Spread::of((1..=count).rev().map(f64::from).collect());
        let [p50, p90, p95, p99, max] = want.map(Some);
        let mean = Some((f64::from(count) + 1.0) / 2.0);
        let count = usize::try_from(count).unwrap();
        assert_eq!(spread, Spread { count, mean, p50, p90, p95, p99, max, p99_is_thin });
    };
    check(1, [1.0; 5], true);
    check(2, [1.0, 2.0, 2.0, 2.0, 2.0], true);
    check(5, [3.0, 5.0, 5.0, 5.0, 5.0], true);
    check(99, [50.0, 90.0, 95.0, 99.0, 99.0], true);
    check(100, [50.0, 90.0, 95.0, 99.0, 100.0], false);
    check(101, [51.0, 91.0, 96.0, 100.0, 101.0], false);
    check(1_000, [500.0, 900.0, 950.0, 990.0, 1_000.0], false);
}

#[test]
fn nothing_has_no_percentiles() {
    assert_eq!(Spread::of(Vec::new()), Spread::default());
}
