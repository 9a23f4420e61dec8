//! Whole pages, as a reader sees them.

use causeway_request::{Canceller, StopReason};

use super::*;
use crate::tests::{golden, run, sample};
use crate::{Piece, compare};

const NAMES: Pair<&str> = Pair { a: "A", b: "B" };

macro_rules! page {
    ($name:literal) => {
        include_str!(concat!("../../../../testdata/records/pages/", $name, ".txt"))
    };
}

fn check(a: &Record, b: &Record, want: &str) {
    assert_eq!(report(&compare(a, b), a, b, NAMES), want);
}

#[test]
fn equal_records_are_one_sentence() {
    check(&sample(), &sample(), page!("equal"));
}

#[test]
fn a_step_that_differs_shows_both_tokens() {
    let mut other = sample();
    other.start.request.effective.seed = 7;
    other.start.conditions.isa = "scalar".to_owned();
    other.steps[3].token = 9;
    other.steps[3].piece = Piece(b"\xf0\x9f".to_vec());
    other.steps[3].reasons.logprob = None;
    check(&sample(), &other, page!("seed"));
}

#[test]
fn under_greedy_the_page_says_what_a_difference_means() {
    let (mut a, mut b) = (sample(), sample());
    a.start.policy.greedy = true;
    b.start.policy.greedy = true;
    b.start.request.effective.prompt_tokens[1] = 5;
    b.steps[0].digest.0 = 7;
    check(&a, &b, page!("greedy"));
}

#[test]
fn reasons_that_part_before_the_token_are_mentioned() {
    let mut other = sample();
    other.start.policy.canonical = "{}".to_owned();
    other.start.policy.sha256 = crate::Sha256::of(b"{}");
    other.steps[1].reasons.survivors = 7;
    other.steps[3].token = 9;
    check(&sample(), &other, page!("reasons"));
}

#[test]
fn runs_of_other_lengths_show_both_ends() {
    let eos = StopReason::Eos { token: causeway_request::TokenId(102) };
    check(&run(3, &eos, |_| {}), &sample(), page!("longer"));
    let cancelled = StopReason::Cancelled { by: Canceller::Client, after_step: 3 };
    check(&run(3, &cancelled, |_| {}), &sample(), page!("cancelled"));
}

#[test]
fn other_text_is_shown_in_quotes() {
    let mut other = golden();
    other.end.text = "\u{1b}[2J".to_owned();
    check(&golden(), &other, page!("text"));
}
