//! All 65,536 halves against the definition of the format.

use super::Half;

/// The value by the format's definition, in `f64`, where every half is exact.
fn by_definition(bits: u16) -> f64 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023) / 1024.0);
    match exponent {
        31 if fraction > 0.0 => f64::NAN,
        31 => sign * f64::INFINITY,
        0 => sign * fraction * 2.0_f64.powi(-14),
        _ => sign * (1.0 + fraction) * 2.0_f64.powi(exponent - 15),
    }
}

#[test]
fn every_half_has_its_value() {
    for bits in 0..=u16::MAX {
        let (got, want) = (f64::from(Half::from_bits(bits).to_f32()), by_definition(bits));
        let same = if want.is_nan() { got.is_nan() } else { got.to_bits() == want.to_bits() };
        assert!(same, "{bits:#06x}: {got} is not {want}");
        assert_eq!(Half::from_bits(bits).to_bits(), bits);
    }
}

#[test]
fn every_half_comes_back_from_its_single() {
    for bits in 0..=u16::MAX {
        let half = Half::from_bits(bits);
        if half.to_f32().is_nan() {
            assert!(Half::from_f32(half.to_f32()).to_f32().is_nan());
        } else {
            assert_eq!(Half::from_f32(half.to_f32()), half);
        }
    }
}

#[test]
fn a_single_becomes_the_nearest_half_and_a_tie_the_even_one() {
    let cases = [
        (1.0 + 1.0 / 2048.0, 0x3c00),
        (1.0 + 3.0 / 2048.0, 0x3c02),
        (65_519.0, 0x7bff),
        (65_520.0, 0x7c00),
        (2.0_f32.powi(-25), 0),
        (3.0 * 2.0_f32.powi(-25), 2),
        (-1e-30, 0x8000),
    ];
    for (value, want) in cases {
        assert_eq!(Half::from_f32(value).to_bits(), want, "{value}");
    }
}
