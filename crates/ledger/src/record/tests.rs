//! The start of a record: to and from a request, and what its JSON may not hold.

use causeway_request::RequestId;

use super::*;
use crate::tests::start;

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
