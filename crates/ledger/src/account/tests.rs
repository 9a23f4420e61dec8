//! The account: one by hand, and what holds for any.

use super::*;
use crate::tests::{MEASURED, output, random_numbers, sample, start};

#[test]
fn the_account_of_a_run_by_hand() {
    // Tokens at 1, 4, 9, 16 and 25 ms: gaps of 3, 5, 7 and 9 ms.
    let account = sample().end.account;
    assert_eq!(
        account.tokens,
        Tokens {
            prompt: 4,
            prefilled: 1,
            cached: 2,
            prefix: 5,
            forced: 0,
            reasoning: 0,
            visible: 5
        }
    );
    assert_eq!(account.passes, Passes { prefill: 1, decode: 3 });
    assert_eq!(
        account.times,
        Times {
            scheduled_unix_ms: 1_700_000_000_000,
            late_ns: 5,
            queued_ns: 100,
            ttft_ns: Some(1_000_005),
            itl: Some(Gaps {
                count: 4,
                min_ns: 3_000_000,
                p50_ns: 5_000_000,
                p99_ns: 9_000_000,
                max_ns: 9_000_000,
            }),
            tpot_ns: Some(6_000_000),
            total_ns: 90_000_005,
        }
    );
}

#[test]
fn percentiles_go_by_nearest_rank() {
    check_gaps(1..=1, "1 1 1 1");
    check_gaps(1..=2, "1 1 2 2");
    check_gaps(1..=3, "1 2 3 3");
    check_gaps(1..=100, "1 50 99 100");
    check_gaps(1..=101, "1 51 100 101");
    assert_eq!(Gaps::pool([]), None);
}

fn check_gaps(gaps_ns: impl DoubleEndedIterator<Item = u64>, want: &str) {
    let Gaps { min_ns, p50_ns, p99_ns, max_ns, .. } = Gaps::pool(gaps_ns.rev()).unwrap();
    assert_eq!(format!("{min_ns} {p50_ns} {p99_ns} {max_ns}"), want);
}

/// Runs of 0 to 40 tokens at arbitrary times.
#[test]
fn what_holds_for_every_account() {
    let mut numbers = random_numbers(7);
    let mut next = |below: u64| numbers.next().unwrap() % below;
    for _ in 0..500 {
        let mut since_arrival_ns = 0;
        let steps: Vec<Step> = (0..u32::try_from(next(41)).unwrap())
            .map(|index| {
                since_arrival_ns += next(1_000_000_000);
                let mut output = output(index);
                output.since_arrival_ns = since_arrival_ns;
                let shown = match next(3) {
                    0 => Shown::Visible,
                    1 => Shown::Reasoning,
                    _ => Shown::Hidden,
                };
                Step::from_output(&output, b"x", shown).unwrap()
            })
            .collect();
        let measured =
            Measured { late_ns: next(1000), ended_ns: since_arrival_ns + next(1000), ..MEASURED };
        check_account(&steps, &measured);
    }
}

fn check_account(steps: &[Step], measured: &Measured) {
    let Account { tokens, times, .. } = Account::new(&start().request.effective, steps, measured);
    let hidden = steps.iter().filter(|step| step.shown == Shown::Hidden).count() as u64;
    assert_eq!(tokens.prefix, steps.len() as u64);
    assert_eq!(tokens.prefix, tokens.visible + tokens.reasoning + hidden);
    assert_eq!(times.total_ns, measured.ended_ns + measured.late_ns);
    let Some(first) = steps.first() else {
        assert_eq!((times.ttft_ns, times.itl, times.tpot_ns), (None, None, None));
        return;
    };
    assert_eq!(times.ttft_ns, Some(first.since_arrival_ns + measured.late_ns));
    assert!(times.ttft_ns.unwrap() <= times.total_ns);
    let last = steps.last().unwrap();
    let span_ns = last.since_arrival_ns - first.since_arrival_ns;
    let all: Vec<u64> = gaps(steps).collect();
    assert_eq!(all.len(), steps.len() - 1);
    assert_eq!(all.iter().sum::<u64>(), span_ns);
    let Some(pooled) = times.itl else {
        assert_eq!((steps.len(), times.tpot_ns), (1, None));
        return;
    };
    assert_eq!(times.tpot_ns, Some(span_ns / all.len() as u64));
    assert_eq!(pooled.count, all.len() as u64);
    let order = [pooled.min_ns, pooled.p50_ns, pooled.p99_ns, pooled.max_ns];
    assert!(order.is_sorted(), "{pooled:?}");
    // The mean gap is the time per output token, so it lies among the gaps.
    assert!(times.tpot_ns.unwrap() >= pooled.min_ns && times.tpot_ns.unwrap() <= pooled.max_ns);
}

#[test]
fn an_end_before_the_last_token_counts_as_its_time() {
    let steps = sample().steps;
    let measured = Measured { ended_ns: 0, late_ns: u64::MAX, ..MEASURED };
    let times = Account::new(&start().request.effective, &steps, &measured).times;
    assert_eq!(times.total_ns, u64::MAX);
    let measured = Measured { ended_ns: 0, late_ns: 0, ..MEASURED };
    let times = Account::new(&start().request.effective, &steps, &measured).times;
    assert_eq!(times.total_ns, 25_000_000);
}

#[test]
fn forced_tokens_are_counted() {
    let max = causeway_request::StopReason::MaxTokens { tokens_max: 5 };
    let record = crate::tests::run(5, &max, |output| {
        if output.step % 2 == 1 {
            output.choice.cause = causeway_request::Cause::Forced;
        }
    });
    assert_eq!(record.end.account.tokens.forced, 2);
}
