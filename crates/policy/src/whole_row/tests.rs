//! The fast path over whole rows against the definition on lists.

mod widths;

use causeway_request::TokenId;
use serde_json::{Value, json};

use crate::rows::Lcg;
use crate::{Literal, Policy, PolicyFile, Scratch, StepContext, TokenMask};

/// A random policy over a vocabulary: each stage is in it one time in three.
fn tree(lcg: &mut Lcg, vocab_size: u32) -> Value {
    let ids: Vec<u32> = (0..40).map(|_| lcg.below(vocab_size)).collect();
    let choices = [
        ("forbidden_tokens", json!(&ids[..5])),
        ("bad_words", json!([[ids[0]], [1, ids[1]], [2, 3, ids[2]]])),
        ("logit_bias", json!([[0, 1.5], [1, -2.0], [vocab_size - 1, 30.0]])),
        ("repetition_penalty", json!(1.3)),
        ("presence_penalty", json!(0.7)),
        ("frequency_penalty", json!(-0.4)),
        ("no_repeat_ngram", json!(2)),
        ("dry_multiplier", json!(0.8)),
        ("temperature", json!([0.0, 0.3, 0.8, 1.7][lcg.below(4) as usize])),
        ("top_k", json!([1, 7, 40, 900][lcg.below(4) as usize])),
        ("top_p", json!([0.1, 0.7, 0.95, 0.999][lcg.below(4) as usize])),
        ("min_p", json!([0.001, 0.05, 1.0][lcg.below(3) as usize])),
        ("typical_p", json!(0.9)),
        ("top_n_sigma", json!(2.0)),
        ("epsilon_cutoff", json!(0.0003)),
        ("eta_cutoff", json!(0.002)),
        ("method", json!("greedy")),
    ];
    let chosen = choices.into_iter().filter(|_| lcg.below(3) == 0);
    Value::Object(chosen.map(|(name, value)| (name.to_owned(), value)).collect())
}

#[test]
fn the_fast_path_chooses_what_the_definition_chooses() {
    for seed in 0..600 {
        let lcg = &mut Lcg(seed);
        let vocab_size = [5, 63, 64, 65, 700, 20_000][lcg.below(6) as usize];
        let row = lcg.row(vocab_size);
        let size = u32::try_from(vocab_size).unwrap();
        let tree = tree(lcg, size);
        let file = PolicyFile::from_json(&tree).unwrap();
        let Ok(policy) = Policy::from_file(&file, vocab_size, &[]) else { continue };
        let tokens: Vec<TokenId> =
            (0..lcg.below(30)).map(|_| TokenId(lcg.below(size.min(6)))).collect();
        let step = StepContext {
            tokens: &tokens,
            prompt_tokens: tokens.len() / 2,
            seed,
            choice: 0,
            step: lcg.below(1000),
        };
        let mut mask = TokenMask::all(vocab_size);
        for _ in 0..lcg.below(5) {
            mask.forbid(TokenId(lcg.below(size)));
        }
        let mask = (lcg.below(2) == 0).then_some(&mask);
        let wide: Vec<f64> = row.iter().map(|&value| f64::from(value)).collect();
        let scratch = &mut Scratch::default();
        let want = policy.choose_literal(Literal::Logits(&wide), mask, &step, scratch);
        let got = policy.choose_with_survivors(&row, mask, &step, scratch);
        let plain = policy.choose_masked(&row, mask, &step, scratch);
        let case = format!("seed {seed}, {vocab_size} tokens, {tree}");
        let (Ok((want, list)), Ok((got, survivors))) = (&want, &got) else {
            assert_eq!(want, got, "{case}");
            continue;
        };
        assert_eq!(plain.as_ref(), Ok(got), "{case}");
        let ids = |list: &[crate::Survivor]| list.iter().map(|s| s.token).collect::<Vec<_>>();
        assert_eq!(ids(survivors), ids(list), "{case}");
        for (a, b) in survivors.iter().zip(list) {
            assert!((a.probability - b.probability).abs() < 1e-7, "{case}");
        }
        assert_eq!(
            (got.token, got.rank, got.survivors, got.raw_best, got.removed_by, got.cause),
            (want.token, want.rank, want.survivors, want.raw_best, want.removed_by, want.cause),
            "{case}"
        );
        assert_eq!(got.runner_up.map(|r| r.0), want.runner_up.map(|r| r.0), "{case}");
        assert!((got.logprob - want.logprob).abs() < 1e-7, "{case}");
        assert!((got.entropy - want.entropy).abs() < 1e-6, "{case}");
    }
}

#[test]
fn the_best_token_weighs_one_at_any_temperature() {
    for (seed, temperature) in [1e-200, 3e-150, 3e-30, 1.7e-16, 1e-14, 1e-6, 100.0]
        .into_iter()
        .cycle()
        .take(700)
        .enumerate()
    {
        let lcg = &mut Lcg(seed as u64);
        let vocab_size = [1, 2, 70, 9000][seed % 4];
        let row = lcg.row(vocab_size);
        let tree = json!({"temperature": temperature});
        let file = PolicyFile::from_json(&tree).unwrap();
        let policy = Policy::from_file(&file, vocab_size, &[]).unwrap();
        let wide: Vec<f64> = row.iter().map(|&value| f64::from(value)).collect();
        let step =
            StepContext { tokens: &[], prompt_tokens: 0, seed: seed as u64, choice: 0, step: 0 };
        let scratch = &mut Scratch::default();
        let want = policy.choose_literal(Literal::Logits(&wide), None, &step, scratch);
        let got = policy.choose_with_survivors(&row, None, &step, scratch);
        let ((want, _), (got, survivors)) = (want.unwrap(), got.unwrap());
        let case = format!("seed {seed}, {vocab_size} tokens, {tree}");
        assert_eq!(got.token, want.token, "{case}");
        assert!((got.probability - want.probability).abs() < 1e-7, "{case}: {}", got.probability);
        let sum: f64 = survivors.iter().map(|survivor| survivor.probability).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{case}: {sum}");
    }
}
