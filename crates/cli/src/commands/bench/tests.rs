//! The median is the middle figure, or the mean of the middle two.

use super::Spread;

#[test]
fn the_median_is_the_middle() {
    let check = |figures: &[f64], want: [f64; 3]| {
        let Spread { min, median, max } = Spread::of(figures.to_vec());
        assert_eq!([min, median, max].map(f64::to_bits), want.map(f64::to_bits));
    };
    check(&[3.0], [3.0, 3.0, 3.0]);
    check(&[3.0, 1.0], [1.0, 2.0, 3.0]);
    check(&[5.0, 1.0, 2.0], [1.0, 2.0, 5.0]);
    check(&[4.0, 1.0, 2.0, 9.0], [1.0, 3.0, 9.0]);
}
