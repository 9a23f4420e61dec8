//! Draws: known values, independence of purposes, and even spread.

use super::*;

#[test]
fn splitmix_gives_its_known_values() {
    // The first two outputs for seed 0, as the generator's authors publish them.
    assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
    assert_eq!(mix(GOLDEN), 0x6e78_9e6a_a1b9_65f4);
}

#[test]
fn a_draw_depends_on_each_part_of_its_name() {
    let base = Draws::of(1).bits(Purpose::Gap, 2, 3);
    assert_eq!(base, Draws::of(1).bits(Purpose::Gap, 2, 3));
    for other in [
        Draws::of(2).bits(Purpose::Gap, 2, 3),
        Draws::of(1).bits(Purpose::Words, 2, 3),
        Draws::of(1).bits(Purpose::Gap, 3, 2),
        Draws::of(1).bits(Purpose::Gap, 2, 4),
    ] {
        assert_ne!(base, other);
    }
}

#[test]
fn uniforms_are_even_and_inside_their_interval() {
    let draws = Draws::of(7);
    let values: Vec<f64> =
        (0..10_000).map(|item| draws.uniform(Purpose::HangUp, item, 0)).collect();
    assert!(values.iter().all(|u| 0.0 < *u && *u < 1.0));
    let mean = values.iter().sum::<f64>() / 10_000.0;
    // The mean of 10,000 has a standard deviation of 0.0029.
    assert!((mean - 0.5).abs() < 0.015, "{mean}");
    let mut counts = [0; 10];
    for item in 0..10_000 {
        counts[draws.below(Purpose::Words, item, 1, 10)] += 1;
    }
    // Each has a mean of 1,000 and a standard deviation of 30.
    assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
}
