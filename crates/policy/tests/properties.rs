//! What holds for every row and policy: draws, noise, order of calls, and that nothing panics.
#![expect(clippy::unwrap_used, reason = "a test that cannot build its case has failed")]

use causeway_policy::{Literal, Policy, PolicyFile, Scratch, StepContext};
use causeway_request::{Choice, TokenId};
use serde_json::{Map, Value, json};

struct Lcg(u64);

impl Lcg {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(self.0 >> 32).unwrap() % limit
    }

    fn row(&mut self, length: usize) -> Vec<f32> {
        (0..length)
            .map(|_| f32::from(u16::try_from(self.below(12_000)).unwrap()) / 1000.0)
            .collect()
    }
}

fn policy(tree: &Value, vocab_size: usize) -> Policy {
    Policy::from_file(&PolicyFile::from_json(tree).unwrap(), vocab_size, &[]).unwrap()
}

fn step(seed: u64, choice: u32, step: u32) -> StepContext<'static> {
    StepContext { tokens: &[], prompt_tokens: 0, seed, choice, step }
}

/// Pearson's chi-square of the counts against the probabilities.
fn chi_square(counts: &[u32], probabilities: &[f64], draws: u32) -> f64 {
    let term = |(&count, p): (&u32, &f64)| {
        let expected = p * f64::from(draws);
        (f64::from(count) - expected).powi(2) / expected
    };
    counts.iter().zip(probabilities).map(term).sum()
}

#[test]
fn draws_follow_the_distribution_over_seeds_steps_and_choices() {
    const DRAWS: u32 = 20_000;
    let probabilities = [0.4, 0.25, 0.15, 0.1, 0.05, 0.03, 0.015, 0.005];
    // One more than their natural logarithms: temperature 1 gives the probabilities back.
    let logits: [f32; 8] = [
        0.083_709, -0.386_294, -0.897_12, -1.302_585, -1.995_732, -2.506_558, -3.199_705,
        -4.298_317,
    ];
    let policy = policy(&json!({}), 8);
    let scratch = &mut Scratch::default();
    for place in 0..3 {
        let mut counts = [[0; 8]; 2];
        for index in 0..DRAWS {
            let at = match place {
                0 => step(u64::from(index), 0, 0),
                1 => step(9, index, 5),
                _ => step(9, 0, index),
            };
            let fast = policy.choose(&logits, &at, scratch).unwrap().token;
            let exact = Literal::Probabilities(&probabilities);
            let exact = policy.choose_literal(exact, None, &at, scratch).unwrap().0.token;
            counts[0][fast.index()] += 1;
            counts[1][exact.index()] += 1;
        }
        for counts in counts {
            // Seven degrees of freedom: 29.9 is passed once in 10,000 by chance.
            let statistic = chi_square(&counts, &probabilities, DRAWS);
            assert!(statistic < 29.9, "{place}: {statistic} {counts:?}");
        }
    }
    // The canary: a wrong distribution must fail the same test.
    let wrong = [0.41, 0.24, 0.15, 0.1, 0.05, 0.03, 0.012, 0.008];
    let mut counts = [0; 8];
    for index in 0..DRAWS {
        counts[policy.choose(&logits, &step(1, 0, index), scratch).unwrap().token.index()] += 1;
    }
    assert!(chi_square(&counts, &wrong, DRAWS) > 29.9);
}

#[test]
fn a_filter_that_spares_the_drawn_token_does_not_change_the_draw() {
    let scratch = &mut Scratch::default();
    for seed in 0..300 {
        let row = Lcg(seed).row(500);
        let at = step(seed, 0, 3);
        let free = policy(&json!({}), 500).choose(&row, &at, scratch).unwrap();
        for tree in [json!({"top_k": 50}), json!({"top_p": 0.9}), json!({"min_p": 0.01})] {
            let (choice, list) =
                policy(&tree, 500).choose_with_survivors(&row, None, &at, scratch).unwrap();
            if list.iter().any(|survivor| survivor.token == free.token) {
                assert_eq!(choice.token, free.token, "seed {seed}, {tree}");
            }
        }
    }
}

#[test]
fn rows_may_be_chosen_in_any_order_with_any_scratch() {
    let policy = policy(&json!({"temperature": 0.9, "top_p": 0.95, "presence_penalty": 0.5}), 300);
    let rows: Vec<Vec<f32>> = (0..40).map(|seed| Lcg(seed).row(300)).collect();
    let tokens: Vec<TokenId> = (0..20).map(TokenId).collect();
    let choose = |index: usize, scratch: &mut Scratch| -> Choice {
        let at = StepContext { tokens: &tokens[..index % 20], ..step(5, 0, 7) };
        policy.choose(&rows[index], &at, scratch).unwrap()
    };
    let alone: Vec<Choice> = (0..40).map(|index| choose(index, &mut Scratch::default())).collect();
    let scratch = &mut Scratch::default();
    for turn in 0..40 {
        let index = (turn * 17 + 3) % 40;
        assert_eq!(choose(index, scratch), alone[index]);
    }
}

/// A value of any kind, often one that no field takes.
fn any(lcg: &mut Lcg) -> Value {
    match lcg.below(12) {
        0 => json!(null),
        1 => json!(lcg.below(2) == 0),
        2 => json!(-1),
        3 => json!(lcg.below(100)),
        4 => json!(f64::from(lcg.below(1000)) / 1000.0),
        5 => json!(1e300),
        6 => json!("vllm"),
        7 => json!([lcg.below(20), lcg.below(20)]),
        8 => json!([[lcg.below(20), 1], [2]]),
        9 => json!({"1": 2.5}),
        10 => json!(u64::MAX),
        _ => json!(["top_k", "temperature"]),
    }
}

#[test]
fn random_trees_are_refused_or_run_and_never_panic() {
    let full = PolicyFile::default().to_json();
    let sections: Vec<&String> = full.as_object().unwrap().keys().collect();
    let mut ran = 0;
    for seed in 0..20_000 {
        let lcg = &mut Lcg(seed);
        let mut tree = Map::new();
        for _ in 0..=lcg.below(3) {
            let name = sections[lcg.below(u32::try_from(sections.len()).unwrap()) as usize];
            let value = match full[name].as_object() {
                Some(fields) if lcg.below(8) > 0 => {
                    let names: Vec<&String> = fields.keys().collect();
                    let name = names[lcg.below(u32::try_from(names.len()).unwrap()) as usize];
                    json!({name: any(lcg)})
                }
                _ => any(lcg),
            };
            tree.insert(name.clone(), value);
        }
        let Ok(file) = PolicyFile::from_json(&Value::Object(tree)) else { continue };
        let Ok(policy) = Policy::from_file(&file, 20, &[TokenId(0)]) else { continue };
        let row = lcg.row(20);
        let tokens: Vec<TokenId> = (0..lcg.below(9)).map(|_| TokenId(lcg.below(3))).collect();
        let at = StepContext { tokens: &tokens, ..step(seed, 0, 0) };
        let answer = policy.choose_with_survivors(&row, None, &at, &mut Scratch::default());
        if let Ok((choice, list)) = answer {
            ran += 1;
            let sum: f64 = list.iter().map(|survivor| survivor.probability).sum();
            assert!((sum - 1.0).abs() < 1e-9 && !list.is_empty());
            assert!(choice.logprob.is_finite() && choice.probability > 0.0);
        }
    }
    assert!(ran > 1000, "{ran}");
}
