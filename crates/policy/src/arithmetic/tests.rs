//! The exponentials against `libm`, and the order of a folded sum.

use super::{LANES, exp, exp2, exp2_f32, fold, fold_f32};

#[test]
fn the_exponential_keeps_its_stated_error() {
    let (mut near, mut far) = (0.0_f64, 0.0_f64);
    for index in 0..140_000 {
        let x = -f64::from(index) / 200.0;
        if x < -693.0 {
            break;
        }
        let error = (exp(x) / libm::exp(x) - 1.0).abs();
        if x >= -15.0 {
            near = near.max(error);
        }
        far = far.max(error);
    }
    assert!(near < 4e-15 && far < 2e-13, "{near:e} {far:e}");
    assert_eq!((exp(0.0).to_bits(), exp2(-1.0).to_bits()), (1.0_f64.to_bits(), 0.5_f64.to_bits()));
    assert!(exp(f64::NEG_INFINITY) < 1e-300 && exp(-1e300) >= 0.0);
}

#[test]
fn the_single_precision_power_keeps_its_stated_error() {
    let mut worst = 0.0_f64;
    for index in 0..12_000_u16 {
        let t = -f32::from(index) / 100.0;
        let want = libm::exp2(f64::from(t));
        worst = worst.max((f64::from(exp2_f32(t)) / want - 1.0).abs());
    }
    assert!(worst < 3e-7, "{worst:e}");
    assert!(exp2_f32(f32::NEG_INFINITY) > 0.0 && exp2_f32(-1e30) < 1e-36);
}

#[test]
fn lanes_fold_by_halves() {
    let mut lanes = [0.0; LANES];
    // 1 + 2^-53 is 1: only an order that adds the small ones first shows them.
    (lanes[0], lanes[4], lanes[12]) = (1.0, 2.0_f64.powi(-53), 2.0_f64.powi(-53));
    assert!(fold(lanes) > 1.0);
    (lanes[4], lanes[12], lanes[8]) = (0.0, 2.0_f64.powi(-53), 2.0_f64.powi(-53));
    assert!(fold(lanes) <= 1.0);
    assert!((fold_f32([0.5; LANES]) - 8.0).abs() < 1e-6);
}
