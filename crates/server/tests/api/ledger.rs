//! Records in the ledger: there before the answer's last word, and found by its ids.

use std::sync::Arc;

use causeway_ledger::{Filter, Store, Writer, WriterLimits};
use causeway_policy::PolicyFile;
use causeway_server::{Stop, serve};
use serde_json::json;

use crate::support::{Server, options, script};

#[test]
fn an_answer_ends_when_its_record_is_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let writer = Arc::new(Writer::start(Store::open(&path).unwrap(), WriterLimits::default()));
    let mut options = options(vec![script(&json!({ "answers": [{ "text": "ok" }] }))]);
    options.ledger = Some(writer);
    let mut server = Server::start(options);
    let mut ids = Vec::new();
    for stream in [false, true] {
        let body = json!({ "prompt": "a", "n": 2, "stream": stream, "session": "s1" });
        let reply = server.post("/v1/completions", &body);
        let extensions = match stream {
            true => reply.events().iter().map(|event| event["causeway"].clone()).collect(),
            false => vec![reply.json()["causeway"].clone()],
        };
        for extension in extensions.iter().filter(|extension| extension.is_object()) {
            for choice in extension["choices"].as_array().unwrap() {
                assert_eq!(choice["stored"], true, "{extension}");
                let id = choice["record"].as_str().unwrap().to_owned();
                // Another reader finds it at once, while the server goes on.
                let stored = Store::open_to_read(&path).unwrap().find(&id).unwrap();
                assert_eq!(stored.record.end.text, "ok");
                assert_eq!(stored.record.start.request.received["prompt"], "a");
                ids.push(id);
            }
        }
    }
    assert_eq!(ids.len(), 4);
    server.shut_down();
    server.wait();
    let filter = Filter { session: Some("s1".to_owned()), ..Filter::default() };
    assert_eq!(Store::open_to_read(&path).unwrap().list(&filter).unwrap().len(), 4);
}

#[test]
fn an_answer_is_given_again_without_a_step() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let limits = WriterLimits { result_cache_bytes_max: Some(1 << 20), ..WriterLimits::default() };
    let writer = Arc::new(Writer::start(Store::open(&path).unwrap(), limits));
    let pieces = json!(["<think>", "so", "</think>", "Yé", "s.", "STOP", "x"]);
    let mut options = options(vec![script(&json!({ "answers": [{ "pieces": pieces }] }))]);
    options.ledger = Some(writer);
    options.results = Some(Store::open_to_read(&path).unwrap());
    options.operation.results_by_default = true;
    let server = Server::start(options);
    let ask = |fields: serde_json::Value| {
        let mut body = json!({
            "messages": [{ "role": "user", "content": "go" }], "seed": 7, "n": 2, "logprobs": true,
            "stop": ["STOP"], "reasoning_markers": ["<think>", "</think>"],
        });
        for (name, value) in fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        server.post("/v1/chat/completions", &body)
    };
    let passes =
        || server.get("/v1/models").json()["data"][0]["causeway"]["load"]["passes"].clone();
    let mut first = ask(json!({})).json();
    let before = passes();
    let mut again = ask(json!({})).json();
    assert_eq!(passes(), before, "no step was run");
    assert_eq!(again["causeway"]["choices"][0]["result_cache"], true, "{again}");
    assert_eq!(again["causeway"]["choices"][0]["passes"]["decode"], 0, "{again}");
    for answer in [&mut first, &mut again] {
        for key in ["id", "created", "causeway"] {
            answer.as_object_mut().unwrap().remove(key);
        }
    }
    assert_eq!(first, again);
    let stream = ask(json!({ "stream": true }));
    assert_eq!(stream.streamed(), "Yés.");
    assert_eq!(stream.streamed_reasoning(), "so");
    assert_eq!(passes(), before, "no step was run");
    for other in [
        json!({ "seed": 8 }),
        json!({ "cache_salt": "x" }),
        json!({ "stop": ["TOP"] }),
        json!({ "result_cache": false }),
        json!({ "top_logprobs": 1 }),
    ] {
        let answer = ask(other.clone()).json();
        assert_eq!(answer["causeway"]["choices"][0]["result_cache"], false, "{other} {answer}");
    }
}

/// Whether the second of two equal requests is given the first one's answer.
fn check_given(by_default: bool, policy: Option<bool>, request: Option<bool>, want: bool) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let limits = WriterLimits { result_cache_bytes_max: Some(1 << 20), ..WriterLimits::default() };
    let writer = Writer::start(Store::open(&path).unwrap(), limits);
    let mut options = options(vec![script(&json!({ "answers": [{ "text": "ok" }] }))]);
    options.ledger = Some(Arc::new(writer));
    options.results = Some(Store::open_to_read(&path).unwrap());
    options.operation.results_by_default = by_default;
    options.policy = policy.map(|policy| {
        let text = format!("schema = 1\n[delivery]\nresult_cache = {policy}\n");
        PolicyFile::from_toml(&text).unwrap()
    });
    let server = Server::start(options);
    let body = json!({ "prompt": "a", "seed": 1, "result_cache": request });
    let ask = || server.post("/v1/completions", &body).json();
    ask();
    let answer = ask();
    let shown = format!("{by_default} {policy:?} {request:?} {answer}");
    assert_eq!(answer["causeway"]["choices"][0]["result_cache"], want, "{shown}");
}

#[test]
fn the_request_goes_before_the_policy_and_the_policy_before_the_server() {
    check_given(false, None, None, false);
    check_given(true, None, None, true);
    check_given(false, Some(true), None, true);
    check_given(true, Some(false), None, false);
    check_given(false, None, Some(true), true);
    check_given(true, Some(false), Some(true), true);
    check_given(true, Some(true), Some(false), false);
    check_given(true, None, Some(false), false);
}

#[test]
fn a_policy_that_gives_answers_again_needs_records() {
    let mut options = options(vec![script(&json!({ "answers": [{ "text": "ok" }] }))]);
    let text = "schema = 1\n[delivery]\nresult_cache = true\n";
    options.policy = Some(PolicyFile::from_toml(text).unwrap());
    let (_stop, stopped) = tokio::sync::oneshot::channel();
    let error = serve(options, Stop::Channel(stopped), |_| {}).unwrap_err();
    assert!(error.is_callers_mistake() && error.to_string().contains("no records"), "{error}");
}

#[test]
fn a_cancelled_request_leaves_a_record_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let writer = Arc::new(Writer::start(Store::open(&path).unwrap(), WriterLimits::default()));
    let endless = json!({ "pieces": ["x"], "repeats": true, "delay_ms": 2 });
    let mut options = options(vec![script(&json!({ "answers": [endless] }))]);
    options.ledger = Some(writer);
    let mut server = Server::start(options);
    let body = json!({ "prompt": "a", "max_tokens": 1000, "timeout_ms": 60 });
    let answer = server.post("/v1/completions", &body).json();
    assert_eq!(answer["choices"][0]["finish_reason"], "deadline");
    drop(server.begin("/v1/completions", &json!({ "prompt": "b", "max_tokens": 1000 })));
    server.shut_down();
    server.wait();
    let list = Store::open_to_read(&path).unwrap().list(&Filter::default()).unwrap();
    let reasons: Vec<&str> = list.iter().map(|listed| listed.stop.as_str()).collect();
    assert!(reasons.contains(&"deadline"), "{reasons:?}");
}
