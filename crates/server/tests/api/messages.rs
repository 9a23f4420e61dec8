//! `/v1/messages`: the object, its events, stop reasons, usage, errors in Anthropic's form.

use serde_json::{Value, json};

use crate::support::{Reply, Server, options, script};

fn ask(fields: Value) -> Value {
    let mut body = json!({ "max_tokens": 64, "messages": [{ "role": "user", "content": "go" }] });
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

fn thinker() -> Server {
    Server::saying(json!({ "pieces": ["<think>", "so", " it", "</think>", "Yes", "."] }))
}

/// The events' types and indices, deltas in a row told once.
fn shape(reply: &Reply) -> Vec<String> {
    let mut shape: Vec<String> = Vec::new();
    for event in reply.events() {
        let name = event["delta"]["type"].as_str().or(event["type"].as_str()).unwrap();
        let line = match event["index"].as_u64() {
            Some(index) => format!("{index} {name}"),
            None => name.to_owned(),
        };
        if shape.last() != Some(&line) {
            shape.push(line);
        }
    }
    shape
}

#[test]
fn a_message_is_an_object_with_blocks() {
    let server = Server::saying(json!({ "pieces": ["Hel", "lo"] }));
    let answer = server.post("/v1/messages", &ask(json!({ "system": "be kind" }))).json();
    assert_eq!((&answer["type"], &answer["role"]), (&json!("message"), &json!("assistant")));
    assert_eq!(answer["content"], json!([{ "type": "text", "text": "Hello", "citations": null }]));
    assert_eq!(
        (&answer["stop_reason"], &answer["stop_sequence"]),
        (&json!("end_turn"), &Value::Null)
    );
    assert_eq!(answer["model"], "scripted");
    assert_eq!(answer["usage"]["output_tokens"], 3);
    assert_eq!(answer["causeway"]["choices"][0]["stop"]["reason"], "eos");
    let answer = server.post("/v1/messages", &ask(json!({ "causeway": false }))).json();
    assert_eq!(answer.get("causeway"), None);
}

#[test]
fn stop_reasons_are_anthropics() {
    let server = Server::saying(json!({ "pieces": ["a", "b", "c"] }));
    for (fields, reason, sequence, text) in [
        (json!({}), "end_turn", Value::Null, "abc"),
        (json!({ "max_tokens": 2 }), "max_tokens", Value::Null, "ab"),
        (json!({ "stop_sequences": ["x", "c"] }), "stop_sequence", json!("c"), "ab"),
    ] {
        let answer = server.post("/v1/messages", &ask(fields.clone())).json();
        assert_eq!(answer["stop_reason"], reason, "{answer}");
        assert_eq!(answer["stop_sequence"], sequence, "{answer}");
        assert_eq!(answer["content"][0]["text"], text, "{answer}");
        let mut fields = fields;
        fields["stream"] = json!(true);
        let events = server.post("/v1/messages", &ask(fields)).events();
        let delta = events.iter().find(|event| event["type"] == "message_delta").unwrap();
        assert_eq!(delta["delta"], json!({ "stop_reason": reason, "stop_sequence": sequence }));
    }
}

#[test]
fn events_come_in_order_under_their_names() {
    let server = thinker();
    let body = ask(json!({ "stream": true, "reasoning_markers": ["<think>", "</think>"] }));
    let reply = server.post("/v1/messages", &body);
    let names: Vec<&str> =
        reply.body.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    let events = reply.events();
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(names, types);
    assert_eq!(
        shape(&reply),
        [
            "message_start",
            "0 content_block_start",
            "0 thinking_delta",
            "0 signature_delta",
            "0 content_block_stop",
            "1 content_block_start",
            "1 text_delta",
            "1 content_block_stop",
            "message_delta",
            "message_stop",
        ]
    );
    assert_eq!(events[0]["message"]["content"], json!([]));
    assert_eq!(events[0]["message"]["usage"]["output_tokens"], 0);
    let delta = &events[events.len() - 2];
    assert_eq!(delta["usage"]["output_tokens"], 7, "{delta}");
    assert_eq!(delta["usage"]["output_tokens_details"]["thinking_tokens"], 4, "{delta}");
    assert_eq!(delta["causeway"]["choices"][0]["tokens"]["visible"], 2, "{delta}");
    let whole = ask(json!({ "reasoning_markers": ["<think>", "</think>"] }));
    let whole = server.post("/v1/messages", &whole).json();
    assert_eq!(whole["content"][0]["thinking"], "so it", "{whole}");
    assert_eq!(whole["content"][1]["text"], "Yes.", "{whole}");
    let hidden = ask(json!({
        "reasoning_markers": ["<think>", "</think>"], "include_reasoning": false,
    }));
    let hidden = server.post("/v1/messages", &hidden).json();
    assert_eq!(hidden["content"].as_array().unwrap().len(), 1, "{hidden}");
    assert_eq!(hidden["usage"]["output_tokens_details"]["thinking_tokens"], 4, "{hidden}");
}

#[test]
fn an_answer_without_text_has_an_empty_block() {
    let server = Server::saying(json!({ "text": "" }));
    let answer = server.post("/v1/messages", &ask(json!({}))).json();
    assert_eq!(answer["content"][0]["text"], "", "{answer}");
    let reply = server.post("/v1/messages", &ask(json!({ "stream": true })));
    let want = [
        "message_start",
        "0 content_block_start",
        "0 content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(shape(&reply), want);
}

#[test]
fn cached_tokens_are_apart_from_the_inputs() {
    let server = Server::saying(json!({ "text": "ok" }));
    let long = json!([{ "role": "user", "content": "p".repeat(100) }]);
    let usage = || {
        let answer = server.post("/v1/messages", &ask(json!({ "messages": long }))).json();
        let count = |name: &str| answer["usage"][name].as_u64().unwrap();
        (count("input_tokens"), count("cache_read_input_tokens"))
    };
    let (prompt, cached) = usage();
    assert_eq!(cached, 0);
    let (rest, cached) = usage();
    assert!(cached > 0, "{rest}");
    assert_eq!(rest + cached, prompt);
}

#[test]
fn counted_tokens_are_those_of_the_message() {
    let server = Server::saying(json!({ "text": "ok" }));
    for fields in [
        json!({}),
        json!({ "system": "be kind" }),
        json!({ "messages": [
        { "role": "user", "content": "a" },
        { "role": "assistant", "content": "b" },
    ] }),
    ] {
        let message = server.post("/v1/messages", &ask(fields.clone())).json();
        let mut body = ask(fields);
        body.as_object_mut().unwrap().remove("max_tokens");
        let counted = server.post("/v1/messages/count_tokens", &body).json();
        let usage = &message["usage"];
        let sum = usage["input_tokens"].as_u64().unwrap()
            + usage["cache_read_input_tokens"].as_u64().unwrap();
        assert_eq!(counted, json!({ "input_tokens": sum }), "{message}");
    }
}

#[test]
fn turns_of_one_role_are_one_and_a_last_one_goes_on() {
    let when = "<|system|>a\nb<|turn|><|user|>c\nd<|turn|><|assistant|>Th";
    let plain = json!({ "answers": [{ "text": "us" }] });
    let server = Server::of(&plain);
    let body = ask(json!({
        "system": [
            { "type": "text", "text": "a", "cache_control": { "type": "ephemeral" } },
            { "type": "text", "text": "b" },
        ],
        "messages": [
            { "role": "user", "content": "c" },
            { "role": "user", "content": [{ "type": "text", "text": "d" }] },
            { "role": "assistant", "content": "Th" },
        ],
    }));
    let reply = server.post("/v1/messages", &body);
    assert_eq!(reply.json()["content"][0]["text"], "us", "{reply:?}");
    let counted = json!({ "messages": body["messages"], "system": body["system"] });
    let counted = server.post("/v1/messages/count_tokens", &counted).json();
    let tokenized = json!({ "content": when, "parse_special": true });
    let tokenized = server.post("/tokenize", &tokenized).json();
    assert_eq!(counted["input_tokens"], tokenized["count"], "{tokenized}");
}

#[test]
fn errors_have_anthropics_form() {
    let server = Server::saying(json!({ "pieces": ["a"], "repeats": true, "fails_at": 3 }));
    for (method, path, body, status, kind) in [
        ("POST", "/v1/messages", json!({ "messages": [] }), 400, "invalid_request_error"),
        ("POST", "/v1/messages", ask(json!({ "max_tokens": null })), 400, "invalid_request_error"),
        ("POST", "/v1/messages", ask(json!({ "model": "nobody" })), 404, "not_found_error"),
        ("POST", "/v1/messages", ask(json!({})), 500, "api_error"),
        ("POST", "/v1/messages/nothing", json!({}), 404, "not_found_error"),
        ("GET", "/v1/messages", json!({}), 405, "invalid_request_error"),
    ] {
        let reply = server.send(method, path, body.to_string().as_bytes());
        assert_eq!(reply.status, status, "{reply:?}");
        let error = reply.json();
        assert_eq!((&error["type"], &error["error"]["type"]), (&json!("error"), &json!(kind)));
        assert!(!reply.message().is_empty(), "{reply:?}");
    }
    let reply = server.post("/v1/messages", &ask(json!({ "stream": true })));
    let events = reply.events();
    assert_eq!(events.last().unwrap()["error"]["type"], "api_error", "{reply:?}");
    assert!(reply.body.contains("event: error\n"), "{reply:?}");
    // Other paths keep OpenAI's form.
    let reply = server.post("/v1/messages_", &json!({}));
    assert_eq!(reply.json().get("type"), None, "{reply:?}");
    let mut options = options(vec![script(&json!({ "answers": [{ "text": "ok" }] }))]);
    options.limits.body_bytes_max = 100;
    let small = Server::start(options);
    let reply = small.post("/v1/messages", &ask(json!({ "system": "x".repeat(200) })));
    assert_eq!(reply.json()["error"]["type"], "request_too_large", "{reply:?}");
}

#[test]
fn messages_of_every_wrong_form_are_refused() {
    let server = Server::saying(json!({ "text": "ok" }));
    let image = json!({ "type": "image", "source": {} });
    let thought = json!({ "type": "thinking", "thinking": "x", "signature": "" });
    for (fields, param) in [
        (json!({ "messages": [{ "role": "tool", "content": "x" }] }), "messages[0].role"),
        (json!({ "messages": [{ "role": "user" }] }), "messages[0].content"),
        (json!({ "messages": [{ "role": "user", "content": 5 }] }), "messages[0].content"),
        (
            json!({ "messages": [{ "role": "user", "content": "x", "name": "n" }] }),
            "messages[0].name",
        ),
        (json!({ "messages": [{ "role": "user", "content": [image] }] }), "messages[0].content[0]"),
        (
            json!({ "messages": [{ "role": "user", "content": [thought] }] }),
            "messages[0].content[0]",
        ),
        (json!({ "messages": [{ "role": "user", "content": ["x"] }] }), "messages[0].content[0]"),
        (
            json!({ "messages": [{ "role": "user", "content": [
                { "type": "text", "text": "x", "citations": [{}] },
            ] }] }),
            "messages[0].content[0].citations",
        ),
        (json!({ "system": [image] }), "system[0]"),
        (json!({ "system": 5 }), "system"),
    ] {
        let reply = server.post("/v1/messages", &ask(fields.clone()));
        assert_eq!(reply.status, 400, "{fields} {reply:?}");
        assert_eq!(reply.json()["error"]["param"], param, "{fields} {reply:?}");
    }
    assert!(server.is_alive());
}
