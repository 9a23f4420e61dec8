//! Each engine's order, windows, cuts and limits, worked out by hand from its formulas.

use causeway_request::TokenId;
use serde_json::{Value, json};

use crate::{Literal, Policy, PolicyFile, Scratch, StepContext};

const ENGINES: [&str; 5] = ["vllm", "sglang", "llama.cpp", "transformers", "mistral.rs"];

fn run(tree: &Value, row: Literal<'_>, tokens: &[u32], prompt: usize) -> Vec<(u32, f64)> {
    let file = PolicyFile::from_json(tree).unwrap();
    let (Literal::Logits(values) | Literal::Probabilities(values)) = row;
    let policy = Policy::from_file(&file, values.len(), &[]).unwrap();
    let tokens: Vec<TokenId> = tokens.iter().copied().map(TokenId).collect();
    let step = StepContext { tokens: &tokens, prompt_tokens: prompt, seed: 1, choice: 0, step: 0 };
    let list = policy.choose_literal(row, None, &step, &mut Scratch::default()).unwrap().1;
    list.iter().map(|s| (s.token.0, s.probability)).collect()
}

/// The policy must leave these tokens in this order, as the softmax of these scores.
fn check_scores(tree: &Value, logits: &[f64], context: (&[u32], usize), want: &[(u32, f64)]) {
    let got = run(tree, Literal::Logits(logits), context.0, context.1);
    let total: f64 = want.iter().map(|(_, score)| score.exp()).sum();
    assert_eq!(got.len(), want.len(), "{tree}: {got:?}");
    for (&(token, p), &(wanted, score)) in got.iter().zip(want) {
        assert_eq!(token, wanted, "{tree}: {got:?}");
        assert!((p - score.exp() / total).abs() < 1e-12, "{tree}: {got:?}");
    }
}

/// The policy must leave these tokens in this order.
fn check_kept(tree: &Value, probabilities: &[f64], want: &[u32]) {
    let got = run(tree, Literal::Probabilities(probabilities), &[], 0);
    assert_eq!(got.iter().map(|&(token, _)| token).collect::<Vec<_>>(), want, "{tree}");
}

/// Logits 2, -1, 1, 0.5; prompt 0, output 1 1; r = 2, f = 0.5, p = 0.25.
#[test]
fn penalties_have_each_engines_order_and_windows() {
    let check = |like: Option<&str>, want: &[(u32, f64)]| {
        let tree = json!({"like": like, "repetition_penalty": 2, "frequency_penalty": 0.5,
            "presence_penalty": 0.25});
        check_scores(&tree, &[2.0, -1.0, 1.0, 0.5], (&[0, 1, 1], 1), want);
    };
    // Repetition sees 0 and 1: 2 / 2 = 1 and -1 * 2 = -2. The counts see the output: token 1
    // twice, so -2 - 0.5 * 2 - 0.25 = -3.25. Tokens 0 and 2 tie at 1: the lower id first.
    let scaled_first = [(0, 1.0), (2, 1.0), (3, 0.5), (1, -3.25)];
    check(None, &scaled_first);
    check(Some("vllm"), &scaled_first);
    // Counts first: -1 - 1 - 0.25 = -2.25. Repetition sees the output only: -2.25 * 2 = -4.5.
    check(Some("sglang"), &[(0, 2.0), (2, 1.0), (3, 0.5), (1, -4.5)]);
    // All windows see the last 64 of prompt and output: token 0 is 2 / 2 - 0.5 - 0.25 = 0.25.
    check(Some("llama.cpp"), &[(2, 1.0), (3, 0.5), (0, 0.25), (1, -3.25)]);
    // Counts of the output first, then repetition on prompt and output: 2 / 2 = 1, -2.25 * 2.
    check(Some("mistral.rs"), &[(0, 1.0), (2, 1.0), (3, 0.5), (1, -4.5)]);
    // No counts at all: 2 / 2 = 1 and -1 * 2 = -2.
    let tree = json!({"like": "transformers", "repetition_penalty": 2});
    let want = [(0, 1.0), (2, 1.0), (3, 0.5), (1, -2.0)];
    check_scores(&tree, &[2.0, -1.0, 1.0, 0.5], (&[0, 1, 1], 1), &want);
}

/// A bias of +2 on a penalised token with l = -1 and r = 2.
#[test]
fn bias_and_repetition_do_not_commute() {
    let check = |like: &str, want: f64| {
        let tree = json!({"like": like, "repetition_penalty": 2, "logit_bias": [[0, 2.0]]});
        let mut scores = [(0, want), (1, 0.0)];
        scores.sort_by(|a, b| b.1.total_cmp(&a.1));
        check_scores(&tree, &[-1.0, 0.0], (&[0], 0), &scores);
    };
    // Bias first: (-1 + 2) / 2 = 0.5.
    check("vllm", 0.5);
    check("llama.cpp", 0.5);
    check("transformers", 0.5);
    // Repetition first: -1 * 2 + 2 = 0.
    check("sglang", 0.0);
    check("mistral.rs", 0.0);
}

/// Logits 3, 2, 2, 2, 1 with k = 2: three tokens tie at the second place.
#[test]
fn ties_at_the_top_k_cut() {
    for like in ENGINES {
        let tree = json!({"like": like, "top_k": 2});
        let keeps_ties = matches!(like, "vllm" | "transformers");
        let tied = [(0, 3.0), (1, 2.0), (2, 2.0), (3, 2.0)];
        let want = if keeps_ties { &tied[..] } else { &tied[..2] };
        check_scores(&tree, &[3.0, 2.0, 2.0, 2.0, 1.0], (&[], 0), want);
    }
}

#[test]
fn top_p_after_top_k() {
    let row = [0.5, 0.25, 0.125, 0.125];
    for like in ENGINES {
        // Renormalised after top_k: 2/3 and 1/3, and 2/3 reaches 0.6 alone. SGLang goes on with
        // 0.5 and 0.25, and 0.5 is not above 0.6.
        let want = if like == "sglang" { &[0, 1][..] } else { &[0][..] };
        check_kept(&json!({"like": like, "top_k": 2, "top_p": 0.6}), &row, want);
        // 0.5 reaches 0.5; SGLang drops what comes after a mass above 0.5: the third token.
        check_kept(&json!({"like": like, "top_p": 0.5}), &row, want);
    }
}

/// Threshold 0.5 * 0.5 = 0.25, which two tokens meet exactly.
#[test]
fn min_p_at_its_threshold() {
    for like in ENGINES {
        let want = if like == "mistral.rs" { &[0][..] } else { &[0, 1, 2][..] };
        check_kept(&json!({"like": like, "min_p": 0.5}), &[0.5, 0.25, 0.25], want);
    }
}

/// Logits 2, 1, 0 with p = 0.7 and T = 0.5.
#[test]
fn llama_cpp_divides_by_the_temperature_last() {
    for like in ENGINES {
        let tree = json!({"like": like, "top_p": 0.7, "temperature": 0.5});
        // exp(2), exp(1), 1 = 7.389, 2.718, 1: 0.665, and 0.910 with the second; then 4, 2.
        // Divided first, 4, 2, 0: 54.6, 7.39, 1, and 0.867 reaches 0.7 alone.
        let both = [(0, 4.0), (1, 2.0)];
        let want = if like == "llama.cpp" { &both[..] } else { &both[..1] };
        check_scores(&tree, &[2.0, 1.0, 0.0], (&[], 0), want);
    }
}

/// Four equal tokens, all as far from the entropy as each other; mass 0.5.
#[test]
fn typical_p_on_equal_tokens() {
    let row = [0.25; 4];
    // transformers keeps what ties with the last one taken; llama.cpp stops above 0.5, at three.
    check_kept(&json!({"like": "transformers", "typical_p": 0.5}), &row, &[0, 1, 2, 3]);
    check_kept(&json!({"like": "llama.cpp", "typical_p": 0.5}), &row, &[0, 1, 2]);
    check_kept(&json!({"typical_p": 0.5}), &row, &[0, 1, 2, 3]);
}

/// Logits 4, 2, 0: mean 2, deviation sqrt(8/3) = 1.633; n = 1.5 keeps from 4 - 2.449 = 1.551.
#[test]
fn top_n_sigma_takes_the_population_deviation() {
    for tree in [json!({"top_n_sigma": 1.5}), json!({"top_n_sigma": 1.5, "like": "llama.cpp"})] {
        check_scores(&tree, &[4.0, 2.0, 0.0], (&[], 0), &[(0, 4.0), (1, 2.0)]);
    }
}

/// Tokens 5 6 7 5 6: the newest two stood before, followed by 7, a repeat of two.
#[test]
fn dry_counts_the_repeat() {
    let check = |tree: Value, tokens: &[u32], penalty: f64| {
        let mut want: Vec<(u32, f64)> = (0..7).map(|token| (token, 0.0)).collect();
        want.push((7, -penalty));
        check_scores(&tree, &[0.0; 8], (tokens, 0), &want);
    };
    for like in [None, Some("llama.cpp"), Some("mistral.rs")] {
        let with = |allowed: u64| {
            json!({"like": like, "dry_multiplier": 0.5, "dry_base": 2,
                "dry_allowed_length": allowed})
        };
        // 0.5 * 2^(2 - 2) and 0.5 * 2^(2 - 1); three are allowed: nothing.
        check(with(2), &[5, 6, 7, 5, 6], 0.5);
        check(with(1), &[5, 6, 7, 5, 6], 1.0);
        check(with(3), &[5, 6, 7, 5, 6], 0.0);
        // A breaker 6 ends the sequence: no repeat reaches across it.
        let mut broken = with(1);
        broken["dry_breakers"] = json!([[6]]);
        check(broken, &[5, 6, 7, 5, 6], 0.0);
    }
    // A repeat of 60: measured to 50 by mistral.rs, and cut by llama.cpp's window of 64.
    let long: Vec<u32> = [vec![5; 1], vec![1; 60], vec![7; 1], vec![1; 60]].concat();
    let penalty = |like: Value| {
        let tree = json!({"like": like, "dry_multiplier": 1e-15, "dry_base": 2});
        let got = run(&tree, Literal::Logits(&[0.0; 8]), &long, 0);
        let of = |token| got.iter().find(|&&(t, _)| t == token).unwrap().1;
        (of(0) / of(7)).ln()
    };
    // 1e-15 * 2^(60 - 2) = 288.2; 1e-15 * 2^(50 - 2) = 0.2815; the window shows 7 after three 1s.
    assert!((penalty(Value::Null) - 288.230_376).abs() < 1e-3);
    assert!((penalty(json!("mistral.rs")) - 0.281_475).abs() < 1e-6);
    assert!(penalty(json!("llama.cpp")).abs() < 1e-6);
}

#[test]
fn what_an_engine_lacks_or_would_change_is_refused_by_name() {
    let check = |tree: Value, want: &str| {
        assert_eq!(PolicyFile::from_json(&tree).unwrap_err().to_string(), want);
    };
    check(
        json!({"like": "vllm", "typical_p": 0.9}),
        "`typical_p` is set, but vllm has no such rule (give an `order` to use it anyway)",
    );
    check(
        json!({"like": "transformers", "presence_penalty": 0.9}),
        "`presence_penalty` is set, but transformers has no such rule (give an `order` to use it \
         anyway)",
    );
    check(
        json!({"like": "vllm", "temperature": 0.005}),
        "`temperature` is 0.005, but vllm takes 0 or 0.01 to 2",
    );
    check(
        json!({"like": "vllm", "temperature": 2.5}),
        "`temperature` is 2.5, but vllm takes 0 or 0.01 to 2",
    );
    check(
        json!({"like": "vllm", "logit_bias": {"1": 101}}),
        "`logit_bias` is 101, but vllm takes -100 to 100",
    );
    check(
        json!({"like": "sglang", "repetition_penalty": 3}),
        "`repetition_penalty` is 3, but sglang takes above 0 and at most 2",
    );
    check(
        json!({"like": "sglang", "presence_penalty": -3}),
        "`presence_penalty` is -3, but sglang takes -2 to 2",
    );
    check(
        json!({"like": "mistral.rs", "min_p": 1}),
        "`min_p` is 1, but mistral.rs takes 0 or a number below 1",
    );
    check(
        json!({"like": "ollama"}),
        "`like` is `ollama`, but must be one of `vllm`, `sglang`, `llama.cpp`, `transformers`, \
         `mistral.rs`",
    );
    check(
        json!({"order": ["top_k"], "top_p": 0.5}),
        "`top_p` is set, but `order` has no place for it",
    );
}
