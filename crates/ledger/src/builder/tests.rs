//! The way of a record while it is made: what is refused, and what counts as hidden.

use causeway_request::{Canceller, RequestId, TokenId};

use super::*;
use crate::tests::{MEASURED, output, start};

#[test]
fn a_step_that_does_not_fit_is_refused_and_changes_nothing() {
    let last = "step 1 at 4000000 ns";
    check_refusal(
        |output| output.request = RequestId(4),
        "a step of request 4 in the record of request 3",
    );
    check_refusal(|output| output.step = 1, "step 1 where step 2 is due");
    check_refusal(|output| output.step = 3, "step 3 where step 2 is due");
    check_refusal(
        |output| output.since_arrival_ns = 3_999_999,
        &format!("{last}, before the step before it at 4000000 ns")
            .replace("step 1 at 4000000", "step 2 at 3999999"),
    );
    check_refusal(
        |output| output.choice.entropy = f64::NAN,
        "step 2 has NaN as its `entropy`, which a record cannot hold",
    );
}

fn check_refusal(change: impl Fn(&mut StepOutput), want: &str) {
    let mut builder = RecordBuilder::new(start());
    builder.push(&output(0), "a").unwrap();
    builder.push(&output(1), "b").unwrap();
    let mut refused = output(2);
    change(&mut refused);
    let error = builder.push(&refused, "c").unwrap_err();
    assert_eq!(error.to_string(), want);
    assert!(!error.is_callers_mistake());
    assert_eq!(builder.step_count(), 2);
    builder.push(&output(2), "c").unwrap();
}

#[test]
fn the_first_step_may_come_after_a_response_prefill() {
    let mut builder = RecordBuilder::new(start());
    builder.push(&output(3), "a").unwrap();
    builder.push(&output(4), "b").unwrap();
    assert_eq!(builder.step_count(), 2);
}

/// Pieces between bars, the stop reason, and `v` or `h` for each piece.
#[test]
fn what_is_no_part_of_the_answer_is_hidden() {
    let eos = StopReason::Eos { token: TokenId(2) };
    let token = StopReason::StopToken { token: TokenId(7) };
    let string = |string: &str| StopReason::StopString { string: string.to_owned() };
    check_hidden("", &eos, "");
    check_hidden("a|b|<end>", &eos, "vvh");
    check_hidden("<end>", &token, "h");
    check_hidden("a|b", &StopReason::MaxTokens { tokens_max: 2 }, "vv");
    check_hidden("a|b", &StopReason::ContextFull { context_len: 2 }, "vv");
    check_hidden("a|b", &StopReason::SchemaComplete, "vv");
    check_hidden("ABC|DEF|G|HI|J", &string("DEFGHIJ"), "vhhhh");
    check_hidden("The quick br|own| fox", &string("own fox"), "vhh");
    check_hidden("before<EARLY>mid", &string("<EARLY>"), "v");
    check_hidden("a|STOP", &string("STOP"), "vh");
    // A match that began inside a visible piece leaves that piece visible.
    check_hidden("abST|OP", &string("STOP"), "vh");
    // An earlier match did not stop the run, so it is part of the answer.
    check_hidden(r"\n|b|\n", &string(r"\n"), "vvh");
    // A string that is not in the pieces hides nothing, nor does an empty one.
    check_hidden("a|b", &string("zzz"), "vv");
    check_hidden("a|b", &string("longer than all the text"), "vv");
    check_hidden("", &string("x"), "");
    check_hidden("a|b", &string(""), "vv");
    check_hidden("a||b", &string("b"), "vhh");
    check_hidden("a|b", &StopReason::Cancelled { by: Canceller::Client, after_step: 2 }, "vv");
}

fn check_hidden(pieces: &str, stop: &StopReason, want: &str) {
    let mut builder = RecordBuilder::new(start());
    let pieces: Vec<&str> =
        if pieces.is_empty() { Vec::new() } else { pieces.split('|').collect() };
    for (step, piece) in (0..).zip(&pieces) {
        builder.push(&output(step), piece).unwrap();
    }
    let record = builder.finish(stop, &MEASURED, String::new());
    let shown: String = record
        .steps
        .iter()
        .map(|step| match step.shown {
            Shown::Visible => 'v',
            Shown::Hidden => 'h',
            Shown::Reasoning => 'r',
        })
        .collect();
    assert_eq!(shown, want, "{pieces:?} {stop:?}");
    assert_eq!(record.end.account.tokens.visible, shown.matches('v').count() as u64);
}

#[test]
fn reasoning_stays_reasoning_whatever_ends_the_run() {
    let mut builder = RecordBuilder::new(start());
    builder.push_shown(&output(0), "thought", Shown::Reasoning).unwrap();
    builder.push_shown(&output(1), "<end>", Shown::Reasoning).unwrap();
    let eos = StopReason::Eos { token: TokenId(2) };
    let record = builder.finish(&eos, &MEASURED, String::new());
    assert_eq!(record.end.account.tokens.reasoning, 2);
    assert_eq!(record.end.account.tokens.visible, 0);
}

#[test]
fn a_run_without_a_step_is_a_record_too() {
    let error =
        StopReason::Error { message: "out of memory".to_owned(), is_callers_mistake: false };
    let record = RecordBuilder::new(start()).finish(&error, &MEASURED, String::new());
    assert_eq!(record.steps, []);
    assert_eq!(record.end.account.times.ttft_ns, None);
    assert_eq!(
        crate::from_slice(crate::to_json(&record).unwrap().as_bytes()).unwrap().record,
        record
    );
}
