//! The start of a record: to and from a request, and what its JSON may not hold.

use causeway_request::{Canceller, RequestId, StopReason};

use super::*;
use crate::tests::{run, start};

#[test]
fn a_request_goes_into_a_record_and_comes_out_as_it_was() {
    for prefilled in 0..=3 {
        let request = request::Request {
            id: RequestId(9),
            tokens: [1, 2, 3].map(TokenId).to_vec(),
            prefilled,
            tokens_max: usize::MAX,
            stop_tokens: vec![TokenId(4)],
            eos_tokens: vec![TokenId(5), TokenId(6)],
            seed: u64::MAX,
            choice: 7,
        };
        let effective = Effective::from_request(&request, None, Vec::new(), 2048);
        assert_eq!(effective.prefilled_tokens.len(), prefilled);
        assert_eq!(effective.to_request(RequestId(9)), request);
    }
}

#[test]
fn a_run_that_was_cut_short_is_played_as_far_as_it_ran() {
    let budget = |step_count, stop: &StopReason| {
        let request = run(step_count, stop, |_| {}).to_request();
        assert_eq!((request.id, request.seed), (RequestId(3), u64::MAX));
        request.tokens_max
    };
    let cancelled = StopReason::Cancelled { by: Canceller::Operator, after_step: 3 };
    assert_eq!(budget(3, &cancelled), 3);
    assert_eq!(budget(0, &cancelled), 1);
    assert_eq!(budget(3, &StopReason::Eos { token: TokenId(2) }), 64);
}

#[test]
fn json_comes_back_as_it_was() {
    let start = start();
    let json = serde_json::to_string(&start).unwrap();
    assert_eq!(serde_json::from_str::<Start>(&json).unwrap(), start);
}

#[test]
fn an_unknown_field_is_refused_wherever_it_stands() {
    let tree = serde_json::to_value(start()).unwrap();
    let places =
        ["", "/request", "/request/effective", "/model", "/numerics", "/template", "/policy"];
    for place in places.into_iter().chain(["/conditions"]) {
        let mut changed = tree.clone();
        changed.pointer_mut(place).unwrap()["surplus"] = 1.into();
        let error = serde_json::from_str::<Start>(&changed.to_string()).unwrap_err();
        assert!(error.to_string().contains("unknown field `surplus`"), "{place}: {error}");
    }
}

#[test]
fn a_missing_field_is_refused_wherever_it_stands() {
    let tree = serde_json::to_value(start()).unwrap();
    for place in ["/request", "/model", "/numerics", "/policy", "/conditions"] {
        let mut changed = tree.clone();
        let fields = changed.pointer_mut(place).unwrap().as_object_mut().unwrap();
        let required = ["id", "sha256", "version", "isa"];
        let removed = required.iter().filter(|field| fields.remove(**field).is_some()).count();
        assert_eq!(removed, 1, "{place}");
        let error = serde_json::from_str::<Start>(&changed.to_string()).unwrap_err();
        assert!(error.to_string().contains("missing field"), "{place}: {error}");
    }
}

#[test]
fn a_large_request_is_refused_before_it_is_parsed() {
    let mut start = start();
    start.request.received = "x".repeat(RECEIVED_BYTES_MAX - 2).into();
    let json = serde_json::to_string(&start).unwrap();
    assert_eq!(serde_json::from_str::<Start>(&json).unwrap(), start);
    let json = json.replacen("xxx", "xxxx", 1);
    let error = serde_json::from_str::<Start>(&json).unwrap_err().to_string();
    let want = "`received` takes 8388609 bytes of JSON, where 8388608 are the limit";
    assert!(error.contains(want), "{error}");
}
