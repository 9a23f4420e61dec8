//! How answers come: streams, parallel choices, usage, logprobs, the extension, signs of life.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Reply, Server};

fn chat(fields: Value) -> Value {
    let mut body = fields;
    body["messages"] = json!([{ "role": "user", "content": "go" }]);
    body
}

#[test]
fn a_stream_begins_with_its_role_and_ends_with_done() {
    let server = Server::saying(json!({ "pieces": ["Hel", "lo"] }));
    let reply = server.post("/v1/chat/completions", &chat(json!({ "stream": true })));
    assert!(reply.head.contains("content-type: text/event-stream"), "{reply:?}");
    let events = reply.events();
    assert_eq!(events[0]["choices"][0]["delta"], json!({ "role": "assistant", "content": "" }));
    assert!(events.iter().all(|event| event["choices"].as_array().unwrap().len() == 1));
    assert!(events.iter().all(|event| event.get("usage").is_none()), "{reply:?}");
    assert!(events.iter().all(|event| event["id"] == events[0]["id"]));
    assert_eq!(reply.finish_reasons(), ["stop"]);
    assert!(reply.body.ends_with("data: [DONE]\n\n"), "{reply:?}");
    // Every line of the stream stands alone.
    for line in reply.body.lines().filter(|line| !line.is_empty()) {
        assert!(line.starts_with("data: ") || line.starts_with(':'), "{line}");
    }
}

#[test]
fn usage_comes_last_to_those_who_ask() {
    let server = Server::saying(json!({ "pieces": ["a", "b"] }));
    let body = json!({ "stream": true, "stream_options": { "include_usage": true } });
    let events = server.post("/v1/chat/completions", &chat(body)).events();
    let (last, before) = events.split_last().unwrap();
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"]["completion_tokens"], 3);
    assert!(before.iter().all(|event| event["usage"].is_null()), "{before:?}");
    for options in [json!({ "include_usage": 1 }), json!({ "nonsense": true })] {
        let body = chat(json!({ "stream": true, "stream_options": options }));
        assert_eq!(server.post("/v1/chat/completions", &body).status, 400, "{options}");
    }
    let body = chat(json!({ "stream_options": { "include_usage": true } }));
    assert_eq!(server.post("/v1/chat/completions", &body).status, 400);
}

#[test]
fn choices_share_a_prompt_and_are_counted_together() {
    let server = Server::saying(json!({ "pieces": ["a", "b", "c"] }));
    let answer = server.post("/v1/chat/completions", &chat(json!({ "n": 3 }))).json();
    let choices = answer["choices"].as_array().unwrap();
    assert_eq!(choices.len(), 3);
    for (index, choice) in choices.iter().enumerate() {
        assert_eq!(choice["index"], index);
        assert_eq!(choice["message"]["content"], "abc");
    }
    let usage = &answer["usage"];
    assert_eq!(usage["completion_tokens"], 12, "{answer}");
    let (prompt, total) = (usage["prompt_tokens"].as_u64(), usage["total_tokens"].as_u64());
    assert_eq!(total.unwrap(), prompt.unwrap() + 12, "{answer}");
    let records = answer["causeway"]["choices"].as_array().unwrap();
    let ids: std::collections::BTreeSet<String> =
        records.iter().map(|choice| choice["record"].to_string()).collect();
    assert_eq!(ids.len(), 3, "{answer}");
    let stream = server.post("/v1/chat/completions", &chat(json!({ "n": 3, "stream": true })));
    assert_eq!(stream.finish_reasons(), ["stop", "stop", "stop"]);
    assert_eq!(stream.streamed(), "abc");
}

#[test]
fn the_extension_says_what_was_effective_and_can_be_left_out() {
    let server = Server::saying(json!({ "pieces": ["a", "b"] }));
    let answer = server.post("/v1/chat/completions", &chat(json!({ "seed": 7 }))).json();
    let extension = &answer["causeway"];
    assert_eq!(extension["seed"], 7);
    assert_eq!(extension["policy"].as_str().unwrap().len(), 64);
    let choice = &extension["choices"][0];
    assert_eq!(choice["record"].as_str().unwrap().len(), 64);
    assert_eq!(choice["stop"]["reason"], "eos");
    assert_eq!(choice["tokens"]["visible"], 2);
    assert_eq!(choice["tokens"]["completion"], 3);
    assert_eq!(
        choice["passes"],
        json!({ "prefill": 1, "decode": 2, "preemptions": 0, "overrun": 0, "drafted": 0, "accepted": 0 })
    );
    // A drawn seed is told, and is another one each time.
    let drawn = || {
        let answer = server.post("/v1/chat/completions", &chat(json!({}))).json();
        answer["causeway"]["seed"].as_u64().unwrap()
    };
    assert_ne!(drawn(), drawn());
    // Sampling fields are the policy's.
    let policy = |fields: Value| {
        let answer = server.post("/v1/chat/completions", &chat(fields)).json();
        answer["causeway"]["policy"].clone()
    };
    assert_eq!(
        policy(json!({ "temperature": 0.5 })),
        policy(json!({ "temperature": 0.5, "seed": 3 }))
    );
    assert_ne!(policy(json!({ "temperature": 0.5 })), policy(json!({ "temperature": 0.6 })));
    for stream in [false, true] {
        let reply = server
            .post("/v1/chat/completions", &chat(json!({ "causeway": false, "stream": stream })));
        assert!(!reply.body.contains("\"causeway\":"), "{reply:?}");
    }
    let reply = server.post("/v1/chat/completions", &chat(json!({ "stream": true })));
    let with: Vec<Value> =
        reply.events().into_iter().filter(|event| event.get("causeway").is_some()).collect();
    assert_eq!(with.len(), 1, "{reply:?}");
    assert_eq!(with[0]["choices"][0]["finish_reason"], "stop");
}

#[test]
fn logprobs_belong_to_the_tokens_that_are_shown() {
    let server = Server::saying(json!({ "pieces": ["AB", "é", "CD", "EF"] }));
    let fields = json!({ "logprobs": true, "top_logprobs": 2, "stop": ["DE"], "temperature": 0 });
    let whole = server.post("/v1/chat/completions", &chat(fields.clone())).json();
    let content = whole["choices"][0]["logprobs"]["content"].as_array().unwrap().clone();
    let tokens: Vec<&str> = content.iter().map(|entry| entry["token"].as_str().unwrap()).collect();
    assert_eq!(tokens, ["AB", "é", "CD"], "{whole}");
    assert_eq!(whole["choices"][0]["message"]["content"], "ABéC");
    for entry in &content {
        let top = entry["top_logprobs"].as_array().unwrap();
        assert_eq!(top.len(), 2, "{entry}");
        assert_eq!(top[0]["logprob"], entry["logprob"], "{entry}");
        assert!(top[1]["logprob"].as_f64() < top[0]["logprob"].as_f64(), "{entry}");
        assert_eq!(entry["policy_probability"], 1.0, "{entry}");
        assert_eq!(entry["rank"], 1, "{entry}");
    }
    let mut fields = fields;
    fields["stream"] = json!(true);
    let stream = server.post("/v1/chat/completions", &chat(fields));
    let streamed: Vec<Value> = stream
        .events()
        .iter()
        .filter_map(|event| event["choices"][0]["logprobs"]["content"].as_array().cloned())
        .flatten()
        .collect();
    assert_eq!(streamed, content);
    let body = chat(json!({ "top_logprobs": 2 }));
    assert_eq!(server.post("/v1/chat/completions", &body).status, 400);
    let body = json!({ "prompt": "go", "logprobs": 1, "echo": true });
    let older = server.post("/v1/completions", &body).json();
    let lists = &older["choices"][0]["logprobs"];
    assert_eq!(older["choices"][0]["text"], "goABéCDEF");
    assert_eq!(lists["tokens"], json!(["AB", "é", "CD", "EF"]));
    assert_eq!(lists["text_offset"], json!([2, 4, 5, 7]));
    assert_eq!(lists["top_logprobs"][0].as_object().unwrap().len(), 1);
}

#[test]
fn what_raw_logits_rule_out_is_a_number_all_the_same() {
    // The script's pieces are the whole vocabulary but for bytes and marks, so that a forced
    // token outside the script is as unlikely as a token can be.
    let server = Server::saying(json!({ "pieces": ["a"] }));
    let body =
        json!({ "prompt": "go", "max_tokens": 2, "temperature": 1, "top_k": 1, "logprobs": 5 });
    let reply = server.post("/v1/completions", &body);
    assert_eq!(reply.status, 200, "{reply:?}");
    let lists = &reply.json()["choices"][0]["logprobs"];
    assert!(lists["token_logprobs"].as_array().unwrap().iter().all(Value::is_number));
}

#[test]
fn a_long_prompt_shows_signs_of_life() {
    let server = Server::of(&json!({
        "context_len": 4096,
        "answers": [{ "text": "ok", "prefill_delay_ms": 20 }],
    }));
    let body = json!({ "prompt": "w".repeat(640), "stream": true, "return_progress": true });
    let reply = server.post("/v1/completions", &body);
    let progress: Vec<u64> = reply
        .events()
        .iter()
        .filter_map(|event| event["causeway"]["prefill"]["computed"].as_u64())
        .collect();
    assert!(progress.len() > 2 && progress.is_sorted(), "{progress:?}");
    assert_eq!(progress.last(), Some(&640), "{progress:?}");
    assert_eq!(reply.streamed(), "ok");
    let slow = Server::saying(json!({ "text": "ok", "prefill_delay_ms": 200 }));
    let reply = slow.post("/v1/completions", &json!({ "prompt": "w", "stream": true }));
    assert!(reply.body.contains(": keep-alive\n\n"), "{reply:?}");
    assert_eq!(reply.streamed(), "ok");
}

#[test]
fn a_slow_reader_slows_nobody_and_loses_nothing() {
    let server = Server::of(&json!({
        "context_len": 8192,
        "answers": [
            { "when": "slow", "pieces": ["0123456789".repeat(100)], "repeats": true },
            { "text": "ok" },
        ],
    }));
    // About 8 MB of text: far more than sockets hold.
    let body = json!({ "prompt": "slow", "stream": true, "max_tokens": 8000 });
    let mut slow = server.begin("/v1/completions", &body);
    std::thread::sleep(Duration::from_millis(300));
    let is_done = |server: &Server| {
        server.get("/v1/models").json()["data"][0]["causeway"]["load"]["running"] == 0
    };
    assert!(server.becomes(is_done), "the run waits for its reader");
    assert!(server.is_alive());
    let mut bytes = Vec::new();
    slow.read_to_end(&mut bytes).unwrap();
    let reply = Reply::parse(&bytes);
    assert_eq!(reply.streamed().len(), 8_000_000);
    assert_eq!(reply.finish_reasons(), ["length"]);
    // What waited was joined, so that there are far fewer events than tokens.
    assert!(reply.events().len() < 4000, "{}", reply.events().len());
}

#[test]
fn one_connection_serves_many_requests() {
    let server = Server::saying(json!({ "text": "ok" }));
    let mut socket = server.connect();
    for _ in 0..3 {
        let body = json!({ "prompt": "a" }).to_string();
        write!(
            socket,
            "POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut seen = String::new();
        while !seen.contains("\"usage\"") || !seen.ends_with('}') {
            let mut bytes = [0; 4096];
            let count = socket.read(&mut bytes).unwrap();
            assert!(count > 0, "{seen}");
            seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        assert!(seen.starts_with("HTTP/1.1 200"), "{seen}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Text cut into tokens anywhere, with stops and reasoning: streamed is whole, byte for byte.
    #[test]
    fn streamed_text_is_whole_text(
        bricks in prop::collection::vec(
            prop::sample::select(vec!["<think>", "</think>", "stop", "st", "é", "😀", "中文", "a b"]),
            1..12,
        ),
        cuts in prop::collection::vec(1usize..9, 1..24),
        min_tokens in 0u64..4,
        n in 1u64..3,
    ) {
        let text = bricks.concat();
        let (mut pieces, mut rest, mut cuts) = (Vec::new(), text.as_bytes(), cuts.iter().cycle());
        while !rest.is_empty() {
            let (piece, left) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
            match std::str::from_utf8(piece) {
                Ok(piece) => pieces.push(json!(piece)),
                Err(_) => pieces.extend(piece.iter().map(|byte| json!({ "byte": byte }))),
            }
            rest = left;
        }
        let server = Server::saying(json!({ "pieces": pieces }));
        let mut body = chat(json!({
            "n": n,
            "stop": ["stop", "文a"],
            "min_tokens": min_tokens,
            // Where the script ends before it may, the rest is drawn.
            "seed": 5,
            "reasoning_markers": ["<think>", "</think>"],
            "logprobs": true,
        }));
        let whole = server.post("/v1/chat/completions", &body).json();
        body["stream"] = json!(true);
        let stream = server.post("/v1/chat/completions", &body);
        let message = &whole["choices"][0]["message"];
        prop_assert_eq!(stream.streamed(), message["content"].as_str().unwrap());
        let reasoning = message["reasoning_content"].as_str().unwrap_or("");
        prop_assert_eq!(stream.streamed_reasoning(), reasoning);
        let finish = whole["choices"][0]["finish_reason"].as_str().unwrap().to_owned();
        prop_assert!(stream.finish_reasons().contains(&finish));
    }
}
