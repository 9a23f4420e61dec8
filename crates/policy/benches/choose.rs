//! Measures one step of several policies over 152,000 logits: the best of many repeats.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::hint::black_box;
use std::time::Instant;

use causeway_policy::{Policy, PolicyFile, Scratch, StepContext, TokenMask};
use causeway_request::TokenId;
use serde_json::json;

const VOCAB_SIZE: usize = 152_000;
const REPEATS: u32 = 200;

/// A row shaped as a real model's: a bulk of deviation 2.2 and forty tokens up to `peak` above it.
fn row(peak: f32) -> Vec<f32> {
    let mut state = 1_u64;
    let mut uniform = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f32::from(u16::try_from(state >> 48).expect("16 bits")) / 65_536.0
    };
    // Twelve uniforms sum to a deviation of 1.
    let mut row: Vec<f32> =
        (0..VOCAB_SIZE).map(|_| 2.2 * ((0..12).map(|_| uniform()).sum::<f32>() - 6.0)).collect();
    for rank in 0..40_u16 {
        row[usize::from(rank) * 3_777] = peak - 0.25 * f32::from(rank);
    }
    row
}

/// A mask of every token whose number scatters to below `share` of 64.
fn mask(share: u32) -> TokenMask {
    let mut mask = TokenMask::none(VOCAB_SIZE);
    let size = u32::try_from(VOCAB_SIZE).expect("token ids are u32");
    let allowed = (0..size).filter(|token| token.wrapping_mul(2_654_435_769) >> 26 < share);
    allowed.for_each(|token| assert!(mask.allow(TokenId(token)), "{token}"));
    mask
}

/// A mask of every thousandth token.
fn sparse() -> TokenMask {
    let mut mask = TokenMask::none(VOCAB_SIZE);
    (0..152).for_each(|token| assert!(mask.allow(TokenId(token * 1_000)), "{token}"));
    mask
}

fn main() {
    let cases = [
        ("unfiltered", json!({})),
        ("temperature", json!({"temperature": 0.8})),
        ("top_p", json!({"top_p": 0.95})),
        ("temperature, top_p", json!({"temperature": 0.8, "top_p": 0.95})),
        ("temperature, top_k 40", json!({"temperature": 0.8, "top_k": 40})),
        ("temperature, top_k 999", json!({"temperature": 0.8, "top_k": 999})),
        ("temperature, min_p", json!({"temperature": 0.8, "min_p": 0.05})),
        ("greedy", json!({"temperature": 0})),
        ("penalties, top_k 40", json!({"repetition_penalty": 1.1, "top_k": 40})),
    ];
    println!("{:<26} {:>12} {:>12} {:>10}", "policy", "peak 20, ms", "peak 12, ms", "survivors");
    let plain = cases.map(|(name, tree)| (name, tree, None));
    let masked = [
        ("greedy, 152 allowed", json!({"temperature": 0}), Some(sparse())),
        ("greedy, most allowed", json!({"temperature": 0}), Some(mask(56))),
        ("unfiltered, most allowed", json!({}), Some(mask(56))),
    ];
    for (name, tree, mask) in plain.into_iter().chain(masked) {
        let file = PolicyFile::from_json(&tree).expect("the cases are valid");
        let policy = Policy::from_file(&file, VOCAB_SIZE, &[]).expect("the cases are valid");
        let mut times = Vec::new();
        let mut survivors = 0;
        for peak in [20.0, 12.0] {
            let row = row(peak);
            let mut scratch = Scratch::default();
            let mut best = f64::INFINITY;
            for step in 0..REPEATS {
                let context =
                    StepContext { tokens: &[], prompt_tokens: 0, seed: 7, choice: 0, step };
                let start = Instant::now();
                let row = black_box(&row);
                let choice = policy.choose_masked(row, mask.as_ref(), &context, &mut scratch);
                best = best.min(start.elapsed().as_secs_f64() * 1e3);
                survivors = choice.expect("the row is finite").survivors;
            }
            times.push(best);
        }
        println!("{name:<26} {:>12.3} {:>12.3} {survivors:>10}", times[0], times[1]);
    }
}
