//! Streamed text is whole text, byte for byte, at every endpoint.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Reply, Server};

/// Texts of one answer: reasoning and visible.
type Texts = (String, String);

/// One endpoint: its path, its body, and how its answers are read.
struct Endpoint {
    path: &'static str,
    body: fn(Value) -> Value,
    whole: fn(&Value) -> Texts,
    streamed: fn(&Reply) -> Texts,
}

const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        path: "/v1/chat/completions",
        body: messages,
        whole: |answer| {
            let message = &answer["choices"][0]["message"];
            (text(&message["reasoning_content"]), text(&message["content"]))
        },
        streamed: |reply| (reply.streamed_reasoning(), reply.streamed()),
    },
    Endpoint {
        path: "/v1/completions",
        body: |fields| with(fields, json!({ "prompt": "go", "max_tokens": 200 })),
        whole: |answer| (String::new(), text(&answer["choices"][0]["text"])),
        streamed: |reply| (String::new(), reply.streamed()),
    },
    Endpoint {
        path: "/v1/responses",
        body: |fields| with(fields, json!({ "input": "go" })),
        whole: |answer| {
            let items = |kind| joined(&answer["output"], kind, |item| &item["content"][0]["text"]);
            (items("reasoning"), items("message"))
        },
        streamed: |reply| {
            let deltas = |kind| joined(&json!(reply.events()), kind, |event| &event["delta"]);
            (deltas("response.reasoning_text.delta"), deltas("response.output_text.delta"))
        },
    },
    Endpoint {
        path: "/v1/messages",
        body: |fields| {
            let mut fields = messages(with(fields, json!({ "max_tokens": 200 })));
            let stop = fields["stop"].take();
            fields.as_object_mut().unwrap().remove("stop");
            with(fields, json!({ "stop_sequences": stop }))
        },
        whole: |answer| {
            let content = &answer["content"];
            let thoughts = joined(content, "thinking", |block| &block["thinking"]);
            (thoughts, joined(content, "text", |block| &block["text"]))
        },
        streamed: |reply| {
            let events = reply.events();
            let deltas: Vec<Value> = events.iter().map(|event| event["delta"].clone()).collect();
            let deltas = json!(deltas);
            let thoughts = joined(&deltas, "thinking_delta", |delta| &delta["thinking"]);
            (thoughts, joined(&deltas, "text_delta", |delta| &delta["text"]))
        },
    },
];

fn with(fields: Value, more: Value) -> Value {
    let mut fields = fields;
    for (name, value) in more.as_object().unwrap() {
        fields[name] = value.clone();
    }
    fields
}

fn messages(fields: Value) -> Value {
    with(fields, json!({ "messages": [{ "role": "user", "content": "go" }] }))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The texts of all values of a type, joined.
fn joined(list: &Value, kind: &str, of: impl Fn(&Value) -> &Value) -> String {
    let all = list.as_array().unwrap().iter();
    all.filter(|one| one["type"] == kind).map(|one| text(of(one))).collect()
}

/// A text cut into tokens at these widths, over and over; half characters are bytes.
fn pieces(text: &str, widths: &[usize]) -> Vec<Value> {
    let (mut pieces, mut rest) = (Vec::new(), text.as_bytes());
    let mut widths = widths.iter().cycle();
    while !rest.is_empty() {
        let width = widths.next().copied().unwrap_or(1).min(rest.len());
        let (piece, left) = rest.split_at(width);
        match std::str::from_utf8(piece) {
            Ok(piece) => pieces.push(json!(piece)),
            Err(_) => pieces.extend(piece.iter().map(|byte| json!({ "byte": byte }))),
        }
        rest = left;
    }
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn streamed_text_is_whole_text_everywhere(
        bricks in prop::collection::vec(
            prop::sample::select(vec!["<think>", "</think>", "stop", "st", "é", "😀", "中文", "a b"]),
            0..12,
        ),
        widths in prop::collection::vec(1usize..9, 1..24),
        tokens_max in 1u64..40,
    ) {
        let server = Server::saying(json!({ "pieces": pieces(&bricks.concat(), &widths) }));
        let mut all: Vec<Texts> = Vec::new();
        for endpoint in ENDPOINTS {
            let fields = (endpoint.body)(json!({
                "stop": ["stop", "文a"],
                "reasoning_markers": ["<think>", "</think>"],
                "seed": 5,
            }));
            let budget = if endpoint.path == "/v1/responses" { "max_output_tokens" } else { "max_tokens" };
            let fields = with(fields, json!({ budget: tokens_max }));
            let whole = server.post(endpoint.path, &fields);
            prop_assert_eq!(whole.status, 200, "{:?}", whole);
            let (whole, streamed) = (
                (endpoint.whole)(&whole.json()),
                (endpoint.streamed)(&server.post(endpoint.path, &with(fields, json!({ "stream": true })))),
            );
            prop_assert_eq!(&whole, &streamed, "{}", endpoint.path);
            if endpoint.path != "/v1/completions" {
                all.push(whole);
            }
        }
        // One script is one answer, whatever the API.
        prop_assert!(all.iter().all(|texts| *texts == all[0]), "{:?}", all);
    }
}
