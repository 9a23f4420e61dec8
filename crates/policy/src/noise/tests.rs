//! One token's noise is the same however it is asked for.

use super::{GROUP, Noise, UNIFORM_MIN, in_group, uniform_floor, uniform_floor_f32};

#[test]
fn a_group_of_tokens_has_the_words_of_its_tokens() {
    for (seed, choice, step) in [(0, 0, 0), (7, 3, 12), (u64::MAX, u32::MAX, u32::MAX)] {
        let noise = Noise::new(seed, choice, step);
        for group in [0, 1, 4_749, u32::MAX / 32] {
            let mut seen = [false; GROUP];
            for (word, lanes) in noise.high_words(group).iter().enumerate() {
                for (lane, &high) in lanes.iter().enumerate() {
                    let place = in_group(word, lane);
                    let token = group * 32 + u32::try_from(place).unwrap();
                    assert_eq!(high, noise.high_word(token), "token {token}");
                    seen[place] = true;
                }
            }
            assert_eq!(seen, [true; GROUP]);
        }
    }
}

#[test]
fn every_part_of_the_key_changes_the_noise() {
    let base = Noise::new(1, 2, 3).gumbel(4);
    let others = [(9, 2, 3, 4), (1 | 1 << 32, 2, 3, 4), (1, 9, 3, 4), (1, 2, 9, 4), (1, 2, 3, 9)];
    for (seed, choice, step, token) in others {
        assert!((Noise::new(seed, choice, step).gumbel(token) - base).abs() > 1e-9);
    }
}

#[test]
fn a_floor_is_never_above_the_uniform() {
    let noise = Noise::new(11, 0, 0);
    for token in 0..5000 {
        let (high, uniform) = (noise.high_word(token), noise.uniform(token));
        assert!(uniform_floor(high) <= uniform && uniform <= uniform_floor(high) + 3e-10);
        assert!(f64::from(uniform_floor_f32(high)) <= uniform * (1.0 + 1e-6));
        assert!((UNIFORM_MIN..1.0).contains(&uniform));
    }
}
