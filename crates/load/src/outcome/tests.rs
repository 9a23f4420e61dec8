//! Times of one request, from what was seen of it.

use super::*;

pub(crate) fn outcome(scheduled_us: u64, chunks_us: &[u64], ended_us: u64) -> Outcome {
    Outcome {
        planned: Planned {
            index: 0,
            at_us: Some(scheduled_us),
            prompt_words: 9,
            output_tokens: 4,
            hang_up: None,
            seed: 0,
        },
        scheduled_us,
        sent_us: scheduled_us + 100,
        chunks_us: chunks_us.to_vec(),
        ended_us,
        ending: Ending::Complete,
        answer: Answer::default(),
    }
}

fn usage(output_tokens: u64) -> Option<Usage> {
    Some(Usage { prompt_tokens: 12, cached_tokens: None, output_tokens })
}

#[test]
fn times_count_from_the_scheduled_arrival() {
    let mut one = outcome(1_000, &[5_000, 7_000, 13_000], 14_000);
    assert_eq!((one.lag_us(), one.ttft_us(), one.total_us()), (100, Some(4_000), 13_000));
    assert_eq!(one.gaps_us().collect::<Vec<_>>(), [2_000, 6_000]);
    assert_eq!((one.output_tokens(), one.tpot_us()), (3, Some(4_000.0)));
    // The server's count goes before that of the pieces.
    one.answer.usage = usage(5);
    assert_eq!((one.output_tokens(), one.tpot_us()), (5, Some(2_000.0)));
    let line = one.to_json();
    assert_eq!(line["ttft_ms"], 4.0);
    assert_eq!(line["itl_ms"], serde_json::json!([2.0, 6.0]));
    assert_eq!((&line["ending"], &line["output_tokens"]), (&"complete".into(), &5.into()));
}

#[test]
fn few_tokens_have_few_times() {
    let none = outcome(0, &[], 9);
    assert_eq!((none.ttft_us(), none.tpot_us(), none.gaps_us().count()), (None, None, 0));
    let one = outcome(0, &[4], 9);
    assert_eq!((one.ttft_us(), one.tpot_us(), one.gaps_us().count()), (Some(4), None, 0));
}

#[test]
fn every_failure_has_a_name() {
    let check = |ending: Ending, want: Option<&str>| {
        assert_eq!(ending.failure().as_deref(), want);
    };
    check(Ending::Complete, None);
    check(Ending::HungUp, None);
    check(Ending::NotConnected, Some("connect"));
    check(Ending::Broken, Some("reset"));
    check(Ending::Refused { status: 429 }, Some("http_429"));
    check(Ending::ErrorEvent, Some("error_event"));
    check(Ending::Unreadable, Some("bad_stream"));
    check(Ending::CutOff, Some("cut_off"));
    check(Ending::TimedOut, Some("timeout"));
}
