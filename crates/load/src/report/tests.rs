//! Figures of a run, from outcomes made by hand.

use super::*;
use crate::outcome::{Answer, Usage};
use crate::plan::Planned;

const WINDOW: Window = Window { start_us: 1_000_000, end_us: 11_000_000 };

/// An answer scheduled at `at_ms` whose pieces of text come `chunks_ms` later.
fn outcome(at_ms: u64, chunks_ms: &[u64], ending: Ending) -> Outcome {
    let scheduled_us = at_ms * 1_000;
    let chunks_us: Vec<u64> = chunks_ms.iter().map(|ms| scheduled_us + ms * 1_000).collect();
    let ended_us = chunks_us.last().map_or(scheduled_us + 5_000, |us| us + 1_000);
    let (output_tokens, hang_up) = (u32::try_from(chunks_ms.len()).unwrap(), None);
    let planned =
        Planned { index: 0, at_us: None, prompt_words: 1, output_tokens, hang_up, seed: 0 };
    let (sent_us, answer) = (scheduled_us + 2_000, Answer::default());
    Outcome { planned, scheduled_us, sent_us, chunks_us, ended_us, ending, answer }
}

fn with_usage(mut outcome: Outcome, output_tokens: u64) -> Outcome {
    let usage = Usage { prompt_tokens: 10, cached_tokens: Some(4), output_tokens };
    outcome.answer.usage = Some(usage);
    outcome
}

#[test]
fn only_what_is_scheduled_in_the_window_is_measured() {
    let outcomes = [
        outcome(0, &[100], Ending::Complete),
        outcome(1_000, &[200, 300, 500], Ending::Complete),
        outcome(10_999, &[400, 410], Ending::Complete),
        outcome(11_000, &[1], Ending::Complete),
    ];
    let report = Report::of(&outcomes, WINDOW, Limits::default(), 0);
    assert_eq!((report.requests.sent, report.requests.measured), (4, 2));
    assert_eq!(
        (report.ttft_ms.count, report.ttft_ms.p50, report.ttft_ms.max),
        (2, Some(200.0), Some(400.0))
    );
    assert_eq!(
        (report.itl_ms.count, report.itl_ms.p50, report.itl_ms.max),
        (3, Some(100.0), Some(200.0))
    );
    assert_eq!((report.tpot_ms.p50, report.tpot_ms.max), (Some(10.0), Some(150.0)));
    assert_eq!(report.total_ms.max, Some(501.0));
    assert_eq!((report.lag_ms.count, report.lag_ms.max), (4, Some(2.0)));
}

#[test]
fn rates_count_what_comes_inside_the_window() {
    let outcomes = [
        // Before, inside, inside; ends inside.
        outcome(500, &[100, 600, 700], Ending::Complete),
        // Two pieces for eight tokens: each counts for four.
        with_usage(outcome(2_000, &[100, 200], Ending::Complete), 8),
        // Inside, then beyond the end.
        outcome(10_900, &[50, 200], Ending::Complete),
        // What came of a broken answer was produced all the same.
        outcome(3_000, &[10], Ending::Broken),
    ];
    let Throughput { window_s, requests_per_s, output_tokens_per_s, prompt_tokens_per_s } =
        Report::of(&outcomes, WINDOW, Limits::default(), 0).throughput;
    let close = |found: f64, want: f64| assert!((found - want).abs() < 1e-9, "{found} {want}");
    close(window_s, 10.0);
    close(requests_per_s, 0.2);
    close(output_tokens_per_s, 1.2);
    close(prompt_tokens_per_s, 1.0);
}

#[test]
fn goodput_is_over_all_that_arrived() {
    let check = |limits: Limits, want: u64| {
        let outcomes = [
            outcome(2_000, &[100, 150, 200], Ending::Complete),
            outcome(2_000, &[300, 310, 320], Ending::Complete),
            outcome(2_000, &[100, 400, 410], Ending::Complete),
            outcome(2_000, &[], Ending::Complete),
            outcome(2_000, &[10, 20, 30], Ending::HungUp),
            outcome(2_000, &[10, 20, 30], Ending::Broken),
            outcome(2_000, &[], Ending::Refused { status: 429 }),
            outcome(2_000, &[], Ending::TimedOut),
        ];
        let goodput = Report::of(&outcomes, WINDOW, limits, 0).goodput;
        #[expect(clippy::cast_precision_loss, reason = "small counts")]
        let share = want as f64 / 8.0;
        assert_eq!((goodput.count, goodput.share), (want, Some(share)), "{limits:?}");
    };
    let none = Limits::default();
    check(none, 4);
    check(Limits { ttft_ms: Some(100.0), ..none }, 2);
    check(Limits { ttft_ms: Some(300.0), ..none }, 3);
    check(Limits { itl_ms: Some(50.0), ..none }, 3);
    check(Limits { itl_ms: Some(49.9), ..none }, 2);
    check(Limits { tpot_ms: Some(10.0), ..none }, 2);
    check(Limits { total_ms: Some(201.0), ..none }, 2);
    check(Limits { ttft_ms: Some(100.0), itl_ms: Some(60.0), ..none }, 1);
}

#[test]
fn failures_are_counted_by_kind() {
    let mut shed = outcome(2_000, &[], Ending::Refused { status: 429 });
    shed.answer.retry_after_s = Some(2);
    shed.answer.message = Some("queue is full".to_owned());
    let outcomes = [
        shed.clone(),
        shed,
        outcome(2_000, &[1], Ending::CutOff),
        outcome(2_000, &[1], Ending::HungUp),
        outcome(2_000, &[1], Ending::Complete),
    ];
    let counts = Report::of(&outcomes, WINDOW, Limits::default(), 3).requests;
    let errors: Vec<_> =
        counts.errors.iter().map(|(kind, count)| (kind.as_str(), *count)).collect();
    assert_eq!(errors, [("cut_off", 1), ("http_429", 2)]);
    assert_eq!(counts.messages["http_429"], "queue is full");
    assert_eq!((counts.sent, counts.complete, counts.hung_up, counts.failed), (8, 1, 1, 3));
    assert_eq!((counts.with_retry_after, counts.given_up), (2, 3));
}

#[test]
fn both_counts_of_tokens_are_told() {
    let outcomes = [
        with_usage(outcome(2_000, &[1, 2, 3], Ending::Complete), 3),
        with_usage(outcome(2_000, &[1, 2], Ending::Complete), 3),
        outcome(2_000, &[1], Ending::Complete),
        with_usage(outcome(2_000, &[1], Ending::Broken), 9),
    ];
    let want = Tokens {
        prompt: 20,
        cached: Some(8),
        output: 6,
        chunks: 6,
        without_usage: 1,
        disagreements: 1,
        other_length: 1,
    };
    assert_eq!(Report::of(&outcomes, WINDOW, Limits::default(), 0).tokens, want);
}

#[test]
fn limits_out_of_range_are_refused() {
    for limit in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = Limits { itl_ms: Some(limit), ..Limits::default() }.check().unwrap_err();
        assert!(error.to_string().contains("a limit in milliseconds"), "{error}");
    }
    assert!(Limits { itl_ms: Some(50.0), ..Limits::default() }.check().is_ok());
}

#[test]
fn a_run_without_requests_has_figures_without_values() {
    let empty = Window { start_us: 5, end_us: 0 };
    let report = Report::of(&[], empty, Limits::default(), 0);
    assert_eq!((report.goodput.share, report.ttft_ms), (None, Spread::default()));
    assert!(report.throughput.output_tokens_per_s.abs() < 1e-12);
}
