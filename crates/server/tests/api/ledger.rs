//! Records in the ledger: there before the answer's last word, and found by its ids.

use std::sync::Arc;

use causeway_ledger::{Filter, Store, Writer, WriterLimits};
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
