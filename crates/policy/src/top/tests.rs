//! Cases of the best tokens: order, ties, masks, and the numbers of a choice.

use super::*;
use crate::{Method, Policy, PolicyFile, StepContext};

fn check(logits: &[f32], count: usize, want: &[u32]) {
    let mut scratch = Scratch::default();
    let top = top_logprobs(logits, 0, count, &mut scratch).unwrap();
    let tokens: Vec<u32> = top.iter().map(|(token, _)| token.0).collect();
    assert_eq!(tokens, want, "{logits:?}");
    assert!(top.iter().map(|(_, logprob)| logprob.exp()).sum::<f64>() < 1.0 + 1e-12);
}

#[test]
fn the_best_come_first_and_ties_by_id() {
    let inf = f32::NEG_INFINITY;
    check(&[0.0, 5.0, 1.0], 2, &[1, 2]);
    check(&[0.0, 5.0, 1.0], 0, &[]);
    check(&[0.0, 5.0, 1.0], 9, &[1, 2, 0]);
    check(&[1.0, 2.0, 2.0, 1.0], 3, &[1, 2, 0]);
    check(&[inf, 2.0, inf], 3, &[1]);
}

#[test]
fn the_numbers_are_those_of_a_choice() {
    let logits: Vec<f32> = (0..999u16).map(|i| f32::from(i * 37 % 101) / 7.0).collect();
    let mut file = PolicyFile::default();
    file.choose.method = Method::Greedy;
    let policy = Policy::from_file(&file, logits.len(), &[]).unwrap();
    let mut scratch = Scratch::default();
    let context = StepContext { tokens: &[], prompt_tokens: 0, seed: 1, choice: 0, step: 0 };
    let choice = policy.choose(&logits, &context, &mut scratch).unwrap();
    let top = top_logprobs(&logits, 0, 3, &mut scratch).unwrap();
    assert_eq!(top[0], (choice.token, choice.logprob));
}

#[test]
fn a_row_that_is_no_distribution_is_refused() {
    let mut scratch = Scratch::default();
    assert!(top_logprobs(&[f32::NAN, 1.0], 7, 1, &mut scratch).is_err());
}
