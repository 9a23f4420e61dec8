//! Every documented field of every API is taken, or refused by its name; so is every other one.

use std::collections::BTreeSet;

use causeway_server::fields::{
    Table, chat::CHAT, completions::COMPLETIONS, embeddings::EMBEDDINGS, messages, responses,
};
use serde_json::{Value, json};

use crate::field_rows::{APIS, Api, Row};
use crate::support::{Reply, Server};

/// What is in no list of documented fields, and still has a sentence of its own.
const ELSEWHERE: &[&str] = &["add_generation_prompt", "prompt_logprobs"];

fn server() -> Server {
    Server::saying(json!({ "text": "ok" }))
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

fn send(server: &Server, api: &Api, row: &Row, value: &Value) -> Reply {
    let mut body = parsed(api.least);
    for (name, value) in parsed(row.beside).as_object().unwrap() {
        body[name] = value.clone();
    }
    body[row.field] = value.clone();
    server.post(api.path, &body)
}

/// Refused in one sentence with the field's name, which is the error's `param` or begins it.
fn check_refused(api: &Api, row: &Row, value: &Value, reply: &Reply) {
    let shown = format!("{} {} {value} {reply:?}", api.path, row.field);
    let is_unknown_model = row.field == "model" && value.is_string();
    assert_eq!(reply.status, if is_unknown_model { 404 } else { 400 }, "{shown}");
    let message = reply.message();
    if is_unknown_model {
        assert!(message.contains("nobody"), "{shown}");
        return;
    }
    let param = reply.json()["error"]["param"].as_str().unwrap_or_default().to_owned();
    assert!(param.starts_with(row.field), "{shown}");
    assert!(message.contains(&param), "{shown}");
    assert!(!message.contains('\n'), "{shown}");
    // A number out of range is shown, and what it must be; of what nothing here takes, the name
    // is enough.
    let is_unsupported = reply.json()["error"]["code"] == "unsupported_parameter";
    if value.is_number() && !is_unsupported {
        assert!(message.contains(&value.to_string()) || !message.contains(" is "), "{shown}");
    }
}

#[test]
fn every_documented_field_is_taken_or_refused_by_its_name() {
    let server = server();
    for api in APIS {
        for row in api.rows.iter().copied().flatten() {
            let value = parsed(row.value);
            let reply = send(&server, api, row, &value);
            if row.is_taken {
                assert_eq!(reply.status, 200, "{} {} {reply:?}", api.path, row.field);
            } else {
                check_refused(api, row, &value, &reply);
            }
            for wrong in row.wrong {
                let wrong = parsed(wrong);
                check_refused(api, row, &wrong, &send(&server, api, row, &wrong));
            }
            // Absent and null are one.
            let is_needed = parsed(api.least).get(row.field).is_some();
            let reply = send(&server, api, row, &Value::Null);
            assert_eq!(reply.status, if is_needed { 400 } else { 200 }, "{} {reply:?}", row.field);
        }
    }
}

#[test]
fn an_unknown_field_is_refused_by_its_name() {
    let server = server();
    for api in APIS {
        for (name, hint) in [("nonsense", ""), ("temperatura", "`temperature`"), ("streem", "")] {
            let mut body = parsed(api.least);
            body[name] = json!(1);
            let reply = server.post(api.path, &body);
            assert_eq!(reply.status, 400, "{reply:?}");
            assert_eq!(reply.json()["error"]["param"], name, "{reply:?}");
            assert!(reply.message().contains(&format!("`{name}`")), "{reply:?}");
            if api.path != "/v1/messages/count_tokens" {
                assert!(reply.message().contains(hint), "{reply:?}");
            }
        }
    }
}

#[test]
fn the_rows_are_the_servers_own_tables() {
    let tables: [(&str, Table); 5] = [
        ("/v1/chat/completions", CHAT),
        ("/v1/completions", COMPLETIONS),
        ("/v1/responses", responses::RESPONSES),
        ("/v1/messages", messages::MESSAGES),
        ("/v1/messages/count_tokens", messages::COUNT_TOKENS),
    ];
    for (path, table) in tables {
        let api = APIS.iter().find(|api| api.path == path).unwrap();
        let rows: BTreeSet<&str> =
            api.rows.iter().copied().flatten().map(|row| row.field).collect();
        let known: BTreeSet<&str> = table
            .iter()
            .copied()
            .flatten()
            .map(|field| field.name)
            .filter(|name| !ELSEWHERE.contains(name))
            .collect();
        assert_eq!(rows, known, "{path}");
    }
}

#[test]
fn embeddings_are_read_and_refused() {
    let server = server();
    for (body, status, word) in [
        (json!({ "input": "a" }), 501, "has no embeddings"),
        (
            json!({ "input": ["a"], "model": "scripted", "encoding_format": "float" }),
            501,
            "scripted",
        ),
        (json!({ "input": "a", "dimensions": 8, "user": "u" }), 501, "has no embeddings"),
        (json!({ "input": "a", "model": "nobody" }), 404, "nobody"),
        (json!({ "input": "a", "dimensions": 0 }), 400, "dimensions"),
        (json!({ "input": "a", "encoding_format": "hex" }), 400, "encoding_format"),
        (json!({ "input": "a", "nonsense": 1 }), 400, "nonsense"),
        (json!({}), 400, "input"),
    ] {
        let reply = server.post("/v1/embeddings", &body);
        assert_eq!(reply.status, status, "{body} {reply:?}");
        assert!(reply.message().contains(word), "{body} {reply:?}");
    }
    assert_eq!(EMBEDDINGS.iter().copied().flatten().count(), 5);
}
