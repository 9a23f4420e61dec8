//! Faults that users of other engines met, as inputs with their right value.
#![expect(clippy::unwrap_used, reason = "a test that cannot build its case has failed")]

use causeway_policy::{
    ChooseError, Literal, Policy, PolicyFile, Scratch, StepContext, Survivor, TokenMask,
};
use causeway_request::{Cause, Choice, TokenId};
use serde_json::{Value, json};

type Answer = Result<(Choice, Vec<Survivor>), ChooseError>;

fn context(tokens: &[TokenId], prompt_tokens: usize, seed: u64) -> StepContext<'_> {
    StepContext { tokens, prompt_tokens, seed, choice: 0, step: 0 }
}

fn policy(tree: &Value, vocab_size: usize) -> Policy {
    Policy::from_file(&PolicyFile::from_json(tree).unwrap(), vocab_size, &[]).unwrap()
}

fn run(tree: &Value, row: Literal<'_>, seed: u64) -> Answer {
    let (Literal::Logits(values) | Literal::Probabilities(values)) = row;
    let step = context(&[], 0, seed);
    policy(tree, values.len()).choose_literal(row, None, &step, &mut Scratch::default())
}

fn kept(answer: &Answer) -> Vec<u32> {
    answer.as_ref().unwrap().1.iter().map(|s| s.token.0).collect()
}

fn check_probabilities(tree: &Value, row: &[f64], want: &[(u32, f64)]) {
    let answer = run(tree, Literal::Probabilities(row), 1);
    assert_eq!(kept(&answer), want.iter().map(|w| w.0).collect::<Vec<_>>(), "{tree} {row:?}");
    for (survivor, (_, p)) in answer.unwrap().1.iter().zip(want) {
        assert!((survivor.probability - p).abs() < 1e-12, "{tree} {row:?}");
    }
}

#[test]
fn top_p_takes_the_smallest_set_that_reaches_it() {
    let top_p = |p: f64| json!({"top_p": p});
    check_probabilities(&top_p(0.8), &[0.3, 0.1, 0.1, 0.5], &[(3, 0.625), (0, 0.375)]);
    // Sums of decimals land where the decimals say, whatever their binary rounding.
    let third = [(0, 4.0 / 9.0), (1, 3.0 / 9.0), (2, 2.0 / 9.0)];
    check_probabilities(&top_p(0.9), &[0.4, 0.3, 0.2, 0.1], &third);
    let eighth: Vec<(u32, f64)> = (0..8).map(|id| (id, 0.125)).collect();
    check_probabilities(&top_p(0.8), &[0.1; 10], &eighth);
    check_probabilities(&top_p(0.3), &[0.1; 10], &[0, 1, 2].map(|id| (id, 1.0 / 3.0)));
    check_probabilities(&top_p(1e-9), &[0.25; 4], &[(0, 1.0)]);
}

#[test]
fn each_filter_sees_renormalised_survivors_and_keeps_the_best() {
    let mut row = vec![0.71 / 71.0; 73];
    (row[0], row[1]) = (0.15, 0.14);
    check_probabilities(&json!({"top_k": 1, "top_p": 0.8}), &row, &[(0, 1.0)]);
    check_probabilities(&json!({"min_p": 1.0, "epsilon_cutoff": 1.0}), &row, &[(0, 1.0)]);
}

#[test]
fn top_k_0_is_off_and_larger_than_the_vocabulary_is_all() {
    for tree in [json!({"top_k": 0}), json!({"top_k": 9})] {
        let best = |seed: u64| run(&tree, Literal::Logits(&[0.0, 5.0, 1.0]), seed).unwrap();
        let hits = (0..100).filter(|&seed| best(seed).0.token == TokenId(1)).count();
        assert!((90..100).contains(&hits), "{hits}");
        assert_eq!(best(0).1.len(), 3);
    }
}

#[test]
fn min_p_compares_probabilities() {
    let answer = run(&json!({"min_p": 0.1}), Literal::Logits(&[1.0, 3.0, 0.5]), 1);
    assert_eq!(kept(&answer), [1, 0]);
}

#[test]
fn tiny_temperatures_take_the_best_with_finite_numbers() {
    for temperature in [1e-3, 1e-4, 1e-5, 1e-6, 1e-30, 1e-200, 0.0] {
        let tree = json!({"temperature": temperature});
        let row = [2.875_f32, 11.0625];
        let scratch = &mut Scratch::default();
        let fast = policy(&tree, 2).choose(&row, &context(&[], 0, 3), scratch).unwrap();
        let exact = run(&tree, Literal::Logits(&[2.875, 11.0625]), 3).unwrap().0;
        for choice in [fast, exact] {
            assert_eq!(choice.token, TokenId(1), "{temperature}");
            assert!(choice.logprob.is_finite() && choice.probability > 0.999);
            assert!(choice.entropy.is_finite());
        }
    }
}

#[test]
fn nan_and_plus_infinity_are_errors_that_name_step_and_token() {
    for temperature in [0.0, 0.8] {
        let policy = policy(&json!({"temperature": temperature, "top_p": 0.9}), 3);
        let step = StepContext { step: 17, ..context(&[], 0, 1) };
        let check = |row: [f32; 3], want: &str| {
            let got = policy.choose(&row, &step, &mut Scratch::default()).unwrap_err();
            assert_eq!(got.to_string(), want);
            assert!(!got.is_callers_mistake());
            let wide = row.map(f64::from);
            let scratch = &mut Scratch::default();
            let exact = policy.choose_literal(Literal::Logits(&wide), None, &step, scratch);
            assert_eq!(exact.unwrap_err().to_string(), want);
        };
        check([f32::NAN, 1.0, 5.0], "the logit of token 0 at step 17 is not a number");
        check(
            [1.0, f32::INFINITY, 5.0],
            "the logit of token 1 at step 17 is inf, but must be within ±3.4e38 (or -inf)",
        );
        check(
            [f32::NEG_INFINITY; 3],
            "every one of the 3 logits at step 17 is -inf: there is no token left",
        );
        let row = [f32::NEG_INFINITY, 1.0, f32::NEG_INFINITY];
        let choice = policy.choose(&row, &step, &mut Scratch::default()).unwrap();
        assert_eq!((choice.token, choice.cause), (TokenId(1), Cause::Forced));
    }
}

#[test]
fn presence_and_frequency_count_the_output_only() {
    let tree = json!({"presence_penalty": 2, "frequency_penalty": 2, "temperature": 0});
    let mut row = [f32::NEG_INFINITY; 9];
    (row[7], row[8]) = (3.0, 2.9);
    let tokens = [TokenId(7); 3];
    let choose = |prompt_tokens: usize| {
        let step = context(&tokens, prompt_tokens, 1);
        policy(&tree, 9).choose(&row, &step, &mut Scratch::default()).unwrap().token
    };
    assert_eq!((choose(3), choose(2)), (TokenId(7), TokenId(8)));
}

#[test]
fn top_p_just_below_1_stays_inside_the_row() {
    let mut state = 3_u32;
    let row: Vec<f32> = (0..32_000)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from(u16::try_from(state >> 16).unwrap()) / 8192.0
        })
        .collect();
    let policy = policy(&json!({"top_p": 0.999_999_9}), row.len());
    for seed in 0..20 {
        let step = context(&[], 0, seed);
        let choice = policy.choose(&row, &step, &mut Scratch::default()).unwrap();
        assert!(choice.token.index() < row.len() && choice.survivors > 31_000);
    }
}

#[test]
fn log_probabilities_do_not_follow_the_shape() {
    let row: Vec<f32> = (0..9000_u16).map(|id| f32::from(id % 97) / 9.0).collect();
    let trees = [
        json!({"temperature": 0}),
        json!({"top_k": 1}),
        json!({"temperature": 2, "top_p": 1e-6}),
        json!({"method": "greedy"}),
        json!({"min_p": 1.0, "top_k": 1, "temperature": 0.3}),
    ];
    let account = |tree: &Value| {
        let step = context(&[], 0, 1);
        let choice = policy(tree, row.len()).choose(&row, &step, &mut Scratch::default()).unwrap();
        (choice.token, choice.logprob.to_bits(), choice.entropy.to_bits(), choice.rank)
    };
    for tree in &trees {
        assert_eq!(account(tree), account(&trees[0]), "{tree}");
    }
}

#[test]
fn a_negative_temperature_is_refused() {
    assert!(PolicyFile::from_json(&json!({"temperature": -1})).is_err());
}

#[test]
fn ties_go_to_the_lower_token_id() {
    let row = [1.0_f32, 2.0, -0.0, 2.0, 0.0, 2.0];
    for tree in [json!({"temperature": 0}), json!({"method": "greedy"}), json!({"top_k": 1})] {
        let step = context(&[], 0, 1);
        let choice = policy(&tree, 6).choose(&row, &step, &mut Scratch::default()).unwrap();
        assert_eq!((choice.token, choice.rank), (TokenId(1), 1), "{tree}");
    }
    let step = context(&[], 0, 1);
    let scratch = &mut Scratch::default();
    let (_, list) =
        policy(&json!({"top_k": 5}), 6).choose_with_survivors(&row, None, &step, scratch).unwrap();
    let ids: Vec<u32> = list.iter().map(|s| s.token.0).collect();
    assert_eq!(ids, [1, 3, 5, 0, 2]);
}

#[test]
fn minimum_length_masks_every_end_until_then() {
    let file = PolicyFile::from_json(&json!({
        "min_tokens": 2, "temperature": 0, "stop": {"tokens": [1]}
    }))
    .unwrap();
    let policy = Policy::from_file(&file, 4, &[TokenId(0)]).unwrap();
    let tokens = [TokenId(3), TokenId(2), TokenId(2)];
    let choose = |count: usize| {
        let step = context(&tokens[..count], 1, 1);
        policy.choose(&[9.0, 8.0, 7.0, 1.0], &step, &mut Scratch::default()).unwrap()
    };
    let first = choose(1);
    assert_eq!((first.token, first.removed_by), (TokenId(2), Some("min_tokens")));
    assert_eq!(choose(2).token, TokenId(2));
    assert_eq!(choose(3).token, TokenId(0));
}

#[test]
fn a_mask_comes_first_and_may_force() {
    let policy = policy(&json!({"temperature": 0.7, "logit_bias": {"2": 50}}), 70);
    let mut mask = TokenMask::none(70);
    mask.allow(TokenId(69));
    let row = [0.0_f32; 70];
    let step = context(&[], 0, 1);
    let scratch = &mut Scratch::default();
    let choice = policy.choose_masked(&row, Some(&mask), &step, scratch).unwrap();
    assert_eq!((choice.token, choice.cause), (TokenId(69), Cause::Forced));
    assert_eq!((choice.removed_by, choice.raw_best), (Some("mask"), TokenId(0)));
    assert_eq!((choice.rank, choice.survivors, choice.runner_up), (70, 1, None));
    let none = policy.choose_masked(&row, Some(&TokenMask::none(70)), &step, scratch);
    let error = none.unwrap_err();
    assert_eq!(error.to_string(), "`mask` leaves no token at step 0");
    assert!(error.is_callers_mistake());
    let short = policy.choose_masked(&row, Some(&TokenMask::all(64)), &step, scratch);
    assert_eq!(
        short.unwrap_err().to_string(),
        "the token mask is for 64 tokens, but the vocabulary has 70"
    );
    assert_eq!((TokenMask::all(70).count(), mask.count()), (70, 1));
    assert!(!mask.allow(TokenId(70)) && !mask.forbid(TokenId(70)) && !mask.allows(TokenId(127)));
}

#[test]
fn what_does_not_fit_is_refused_in_one_sentence() {
    let policy = policy(&json!({"forbidden_tokens": [0, 1]}), 2);
    let check = |row: &[f32], step: &StepContext<'_>, want: &str| {
        let got = policy.choose(row, step, &mut Scratch::default()).unwrap_err();
        assert_eq!(got.to_string(), want);
        assert!(got.is_callers_mistake());
    };
    let row = [1.0, 2.0];
    check(&row, &context(&[], 0, 1), "`forbidden_tokens` leaves no token at step 0");
    check(&row[..1], &context(&[], 0, 1), "the row has 1 logits, but the vocabulary has 2 tokens");
    let far = [TokenId(2)];
    check(
        &row,
        &context(&far, 0, 1),
        "token 2 of the context is outside the vocabulary of 2 tokens",
    );
    let outside = "`prompt_tokens` is 1, but the context has 0 tokens";
    check(&row, &context(&[], 1, 1), outside);
    let refuse = |row: &[f64], want: &str| {
        let got = run(&json!({}), Literal::Probabilities(row), 1).unwrap_err();
        assert_eq!(got.to_string(), want);
    };
    refuse(&[0.5, 1.5], "the probability of token 1 is 1.5, but must be 0 to 1");
    refuse(&[0.5, f64::NAN], "the probability of token 1 is NaN, but must be 0 to 1");
    refuse(&[0.5, 0.25], "the probabilities sum to 0.75, but must sum to 1 within 0.0001");
}
