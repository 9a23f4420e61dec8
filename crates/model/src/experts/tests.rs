//! Which experts a row goes through, and their shares.

use super::{Share, shares};
use crate::config::Experts;

fn check(logits: &[f32], used: usize, renormalised: bool, want: &[(usize, f32)]) {
    let experts = Experts { count: logits.len(), used, ffn_dim: 32, renormalised };
    let got = shares(logits, &experts);
    assert_eq!(got.len(), want.len(), "{got:?}");
    for (Share { expert, share }, (wanted, of)) in got.into_iter().zip(want) {
        assert_eq!(expert, *wanted);
        assert!((share - of).abs() < 1e-6, "expert {expert}: {share} is not {of}");
    }
}

#[test]
fn the_largest_logits_choose_and_equals_go_to_the_first() {
    // e^1 / (e^1 + e^0) and e^0 / (e^1 + e^0).
    check(&[0.0, 1.0, -5.0], 2, true, &[(0, 0.268_941_4), (1, 0.731_058_6)]);
    check(&[2.0, 2.0, 2.0, 2.0], 3, true, &[(0, 1.0 / 3.0), (1, 1.0 / 3.0), (2, 1.0 / 3.0)]);
    check(&[2.0, 2.0, 2.0, 2.0], 2, false, &[(0, 0.25), (1, 0.25)]);
    check(&[3.0], 1, true, &[(0, 1.0)]);
    check(&[-90.0, 0.0], 2, false, &[(0, 0.0), (1, 1.0)]);
}
