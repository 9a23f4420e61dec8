//! Frequencies of every kind of scaling, by their formulas.

use super::{RopeConfig, RopeScaling, long_magnitude, yarn_magnitude};

fn check(scaling: RopeScaling, context_len: usize, want: &[f64]) {
    let config = RopeConfig { scaling, ..RopeConfig::plain(10_000.0, 8) };
    config.check(16).expect("the cases are valid");
    let got = config.frequencies(context_len);
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        assert!((got - want).abs() < 1e-9 * want, "{config:?}: {got} is not {want}");
    }
}

/// `10000^(-2i/8)`.
const PLAIN: [f64; 4] = [1.0, 0.1, 0.01, 0.001];

#[test]
fn frequencies_follow_the_kind_of_scaling() {
    check(RopeScaling::None, 64, &PLAIN);
    check(RopeScaling::Linear { factor: 4.0 }, 64, &PLAIN.map(|f| f / 4.0));
    check(RopeScaling::Factors(vec![1.0, 2.0, 4.0, 8.0]), 64, &[1.0, 0.05, 0.002_5, 0.000_125]);
    let long = || RopeScaling::LongRope { short: vec![1.0; 4], long: vec![2.0; 4], original: 64 };
    check(long(), 64, &PLAIN);
    check(long(), 65, &PLAIN.map(|f| f / 2.0));
    // Of 128 positions the pairs turn 20.4, 2.04, 0.204 and 0.0204 times.
    let llama3 = RopeScaling::Llama3 { factor: 8.0, low: 1.0, high: 4.0, original: 128 };
    let kept = (128.0 * 0.1 / std::f64::consts::TAU - 1.0) / 3.0;
    // 1 for what is kept, 8 for what is divided, and between them rounded to f32.
    #[expect(clippy::cast_possible_truncation, reason = "rounding is what is meant")]
    let divisor = (1.0 / (kept + (1.0 - kept) / 8.0)) as f32;
    let second = 0.1 / f64::from(divisor);
    check(llama3, 64, &[1.0, second, 0.01 / 8.0, 0.001 / 8.0]);
}

#[test]
fn yarn_keeps_what_turns_often_and_divides_what_does_not() {
    // Pairs that turn 32 times and once in 4,096 positions: 1.31 and 2.81, by the formula.
    let yarn = |truncate| RopeScaling::Yarn {
        factor: 4.0,
        original: 4_096,
        fast: 32.0,
        slow: 1.0,
        truncate,
    };
    // Rounded outwards, they are 1 and 3: the third pair is half kept.
    check(yarn(true), 64, &[1.0, 0.1, 0.01 * 0.5 + 0.01 / 4.0 * 0.5, 0.001 / 4.0]);
    let pair_of = |turns: f64| {
        8.0 * (4_096.0 / (turns * std::f64::consts::TAU)).ln() / (2.0 * 10_000.0_f64.ln())
    };
    let kept = 1.0 - (2.0 - pair_of(32.0)) / (pair_of(1.0) - pair_of(32.0));
    let third = 0.01 * kept + 0.01 / 4.0 * (1.0 - kept);
    check(yarn(false), 64, &[1.0, 0.1, third, 0.001 / 4.0]);
}

#[test]
fn attention_factors_are_those_of_the_papers() {
    assert_eq!(yarn_magnitude(1.0, 1.0).to_bits(), 1.0_f32.to_bits());
    assert!((yarn_magnitude(4.0, 1.0) - 1.138_629_4).abs() < 1e-6);
    assert_eq!(long_magnitude(1.0, 64).to_bits(), 1.0_f32.to_bits());
    assert!((long_magnitude(4.0, 64) - (4.0_f32 / 3.0).sqrt()).abs() < 1e-6);
}

#[test]
fn what_cannot_turn_a_head_is_refused_by_value() {
    let plain = RopeConfig::plain(10_000.0, 8);
    let refused = |config: RopeConfig, want: &str| {
        let error = config.check(8).expect_err("the case is wrong").to_string();
        assert!(error.contains(want), "{error:?} does not name {want:?}");
    };
    refused(RopeConfig { dims: 10, ..plain.clone() }, "10");
    refused(RopeConfig { dims: 7, ..plain.clone() }, "7");
    refused(RopeConfig { magnitude: f32::NAN, ..plain.clone() }, "NaN");
    let scaling = RopeScaling::Factors(vec![1.0; 3]);
    refused(RopeConfig { scaling, ..plain.clone() }, "3 RoPE factors");
    let scaling = RopeScaling::Llama3 { factor: 8.0, low: 4.0, high: 1.0, original: 128 };
    refused(RopeConfig { scaling, ..plain.clone() }, "-3");
    let scaling = RopeScaling::Factors(vec![1.0, 1.0, -2.0, 1.0]);
    refused(RopeConfig { scaling, ..plain.clone() }, "RoPE factor of a pair is -2");
    let (factor, original, fast, slow, truncate) = (4.0, 0, 32.0, 1.0, true);
    let scaling = RopeScaling::Yarn { factor, original, fast, slow, truncate };
    refused(RopeConfig { scaling, ..plain }, "original context length is 0");
}
