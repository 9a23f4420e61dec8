//! Faults that users of other engines met: streams, stops, reasoning, limits and bad requests.
//!
//! Every case of text is sent whole and as a stream, and both must say the same.

use crate::support::{Server, options, script};
use serde_json::{Value, json};

/// What a run of a script must look like.
struct Want<'a> {
    text: &'a str,
    reasoning: &'a str,
    finish: &'a str,
    tokens: u64,
}

/// Runs pieces under a body's fields, whole and streamed, as a chat and as a completion.
fn check(pieces: &Value, fields: Value, want: &Want<'_>) {
    let server = Server::saying(json!({ "pieces": pieces }));
    let mut body = fields;
    body["messages"] = json!([{ "role": "user", "content": "go" }]);
    let whole = server.post("/v1/chat/completions", &body);
    assert_eq!(whole.status, 200, "{whole:?}");
    let answer = whole.json();
    let message = &answer["choices"][0]["message"];
    assert_eq!(message["content"], want.text, "{pieces} {body}");
    assert_eq!(message["reasoning_content"].as_str().unwrap_or(""), want.reasoning, "{body}");
    assert_eq!(answer["choices"][0]["finish_reason"], want.finish, "{pieces} {body}");
    assert_eq!(answer["usage"]["completion_tokens"], want.tokens, "{pieces} {body}");
    body["stream"] = json!(true);
    body["stream_options"] = json!({ "include_usage": true });
    let stream = server.post("/v1/chat/completions", &body);
    assert_eq!(stream.streamed(), want.text, "{stream:?}");
    assert_eq!(stream.streamed_reasoning(), want.reasoning, "{stream:?}");
    assert_eq!(stream.finish_reasons(), [want.finish], "{stream:?}");
    assert!(stream.body.ends_with("data: [DONE]\n\n"), "{stream:?}");
    let usage = stream.events().last().unwrap()["usage"].clone();
    assert_eq!(usage["completion_tokens"], want.tokens, "{stream:?}");
    let fields = body.as_object_mut().unwrap();
    fields.remove("messages");
    fields.remove("stream_options");
    fields.insert("prompt".to_owned(), json!("go"));
    fields.entry("max_tokens").or_insert(json!(100));
    let stream = server.post("/v1/completions", &body);
    assert_eq!(stream.streamed(), want.text, "{stream:?}");
    assert_eq!(stream.finish_reasons(), [want.finish], "{stream:?}");
}

fn text(text: &str, finish: &'static str, tokens: u64) -> Want<'static> {
    Want { text: String::leak(text.to_owned()), reasoning: "", finish, tokens }
}

fn bytes(bytes: &[u8]) -> Vec<Value> {
    bytes.iter().map(|byte| json!({ "byte": byte })).collect()
}

#[test]
fn a_stop_string_leaves_nothing_of_itself() {
    let pieces = json!(["ABC", "DEF", "G", "HI", "J", "K"]);
    check(&pieces, json!({ "stop": ["DEFGHIJ"] }), &text("ABC", "stop", 5));
    let pieces = json!(["The quick br", "own", " fox"]);
    check(&pieces, json!({ "stop": "own fox" }), &text("The quick br", "stop", 3));
    let pieces = json!(["before<EARLY>mid<LATE>end"]);
    check(&pieces, json!({ "stop": ["<LATE>", "<EARLY>"] }), &text("before", "stop", 1));
    check(&pieces, json!({ "stop": ["<EARLY>", "<LATE>"] }), &text("before", "stop", 1));
    let pieces = json!(["code\n", ">>>>>>>", " UPD", "ATED"]);
    let stops = json!({ "stop": [">>>>>>> UPDATED", ">>>>>>> UPDATED\n"] });
    check(&pieces, stops, &text("code\n", "stop", 4));
    check(&pieces, json!({}), &text("code\n>>>>>>> UPDATED", "stop", 5));
}

#[test]
fn a_stop_string_may_hold_any_character() {
    check(&json!(["é", "y"]), json!({ "stop": ["éx"] }), &text("éy", "stop", 3));
    check(&json!(["é", "x"]), json!({ "stop": ["éx"] }), &text("", "stop", 2));
    for stop in ["é", "中", "😀", "×"] {
        let pieces = json!(["a", "é", "中", "😀", "×"]);
        let before = "aé中😀×".split(stop).next().unwrap();
        let tokens = before.chars().count() as u64 + 1;
        check(&pieces, json!({ "stop": [stop] }), &text(before, "stop", tokens));
    }
}

#[test]
fn a_stop_waits_for_the_least_number_of_tokens() {
    let pieces = json!(["a", "\n", "b", "\n", "c", "\n", "d"]);
    let fields = json!({ "min_tokens": 5, "stop": ["\n"] });
    check(&pieces, fields, &text("a\nb\nc", "stop", 6));
}

#[test]
fn characters_come_whole() {
    let smile = [0xF0, 0x9F, 0x98, 0x80];
    let mut pieces = bytes(&smile);
    pieces.push(json!("ok"));
    check(&json!(pieces), json!({}), &text("😀ok", "stop", 6));
    let cut = json!(bytes(&smile));
    check(&cut, json!({ "max_tokens": 3 }), &text("\u{FFFD}", "length", 3));
}

#[test]
fn spaces_are_the_answers_own() {
    let answer = json!({ "pieces": [" Hello", " world", " world"] });
    let server = Server::of(&json!({ "space_prefix": true, "answers": [answer] }));
    let messages = json!([{ "role": "user", "content": "go" }]);
    let body = json!({ "messages": messages, "stream": true });
    assert_eq!(server.post("/v1/chat/completions", &body).streamed(), "Hello world world");
}

#[test]
fn reasoning_is_apart_however_it_is_cut() {
    let markers = json!({ "reasoning_markers": ["<think>", "</think>"] });
    let all = "<think>weighing it</think>Answer.";
    for width in [1, 2, 5, 100] {
        let pieces: Vec<String> =
            all.as_bytes().chunks(width).map(|cut| String::from_utf8_lossy(cut).into()).collect();
        let tokens = pieces.len() as u64 + 1;
        let want = Want { text: "Answer.", reasoning: "weighing it", finish: "stop", tokens };
        check(&json!(pieces), markers.clone(), &want);
    }
}

#[test]
fn stops_are_the_visible_texts() {
    let pieces = json!(["<think>", "9.8 is more", "</think>", "Answer 9"]);
    let fields = json!({ "reasoning_markers": ["<think>", "</think>"], "stop": ["9.8"] });
    let want = Want { text: "Answer 9", reasoning: "9.8 is more", finish: "stop", tokens: 5 };
    check(&pieces, fields, &want);
}

#[test]
fn a_template_may_open_the_reasoning() {
    let script_of = |pieces: Value| {
        json!({
            "template": "{% for m in messages %}{{ m.content }}{% endfor %}<|assistant|><think>\n",
            "answers": [{ "pieces": pieces }],
        })
    };
    let server = Server::of(&script_of(json!(["so", "</th", "ink>", "Yes."])));
    let body = json!({
        "messages": [{ "role": "user", "content": "go" }],
        "reasoning_markers": ["<think>", "</think>"],
    });
    let answer = server.post("/v1/chat/completions", &body).json();
    assert_eq!(answer["choices"][0]["message"]["content"], "Yes.");
    assert_eq!(answer["choices"][0]["message"]["reasoning_content"], "so");
    let usage = &answer["usage"]["completion_tokens_details"];
    assert_eq!(usage["reasoning_tokens"], 3, "{answer}");
}

#[test]
fn reasoning_can_be_hidden_and_is_counted_all_the_same() {
    let server = Server::saying(json!({ "pieces": ["<think>", "so", "</think>", "Yes."] }));
    let body = json!({
        "messages": [{ "role": "user", "content": "go" }],
        "reasoning_markers": ["<think>", "</think>"],
        "include_reasoning": false,
    });
    let answer = server.post("/v1/chat/completions", &body).json();
    let message = &answer["choices"][0]["message"];
    assert_eq!(
        (message["content"].as_str(), message.get("reasoning_content")),
        (Some("Yes."), None)
    );
    let tokens = &answer["causeway"]["choices"][0]["tokens"];
    assert_eq!(tokens["reasoning"], 3, "{answer}");
    assert_eq!(tokens["visible"], 1, "{answer}");
}

#[test]
fn a_budget_has_limits() {
    let server = Server::of(&json!({
        "context_len": 512,
        "answers": [{ "pieces": ["x"], "repeats": true }],
    }));
    for (field, value, status) in [
        ("max_tokens", json!(0), 400),
        ("max_tokens", json!(-5), 400),
        ("max_tokens", json!(100_000_000), 400),
        ("max_tokens", json!(1.5), 400),
        ("max_tokens", json!("5"), 400),
        ("max_tokens", json!(5), 200),
    ] {
        let reply = server.post("/v1/completions", &json!({ "prompt": "1 2", field: value }));
        assert_eq!(reply.status, status, "{reply:?}");
        if status == 400 {
            assert_eq!(reply.json()["error"]["param"], field, "{reply:?}");
            assert!(reply.message().contains(field), "{reply:?}");
        }
    }
    let chat = json!([{ "role": "user", "content": "go" }]);
    let body = json!({ "messages": chat, "max_completion_tokens": -5 });
    let reply = server.post("/v1/chat/completions", &body);
    assert_eq!(reply.json()["error"]["param"], "max_completion_tokens");
    let body = json!({ "messages": chat, "max_completion_tokens": 3, "max_tokens": 4 });
    assert_eq!(server.post("/v1/chat/completions", &body).status, 400);
    // Without a budget a chat runs to the end of the context, and says so.
    let reply = server.post("/v1/chat/completions", &json!({ "messages": chat }));
    let answer = reply.json();
    assert_eq!(answer["choices"][0]["finish_reason"], "length", "{answer}");
    assert_eq!(answer["usage"]["total_tokens"], 512, "{answer}");
}

#[test]
fn a_prompt_beyond_the_context_is_refused_with_its_numbers() {
    let server = Server::of(&json!({ "context_len": 512, "answers": [{ "text": "ok" }] }));
    let reply = server.post("/v1/completions", &json!({ "prompt": "w".repeat(513) }));
    assert_eq!(reply.status, 400);
    assert_eq!(reply.json()["error"]["code"], "context_length_exceeded");
    assert!(reply.message().contains("513") && reply.message().contains("512"), "{reply:?}");
    let body = json!({ "prompt": "w".repeat(504), "max_tokens": 8 });
    let reply = server.post("/v1/completions", &body);
    assert_eq!(reply.json()["usage"]["prompt_tokens"], 504, "{reply:?}");
    let body = json!({ "prompt": "w".repeat(504), "max_tokens": 9 });
    let reply = server.post("/v1/completions", &body);
    assert_eq!(
        reply.message(),
        "prompt (504 tokens) plus max_tokens (9) exceeds the context limit of 512 tokens"
    );
}

#[test]
fn broken_bodies_are_refused_and_harm_nobody() {
    let server = Server::saying(json!({ "text": "ok" }));
    for body in [
        &b""[..],
        b"{\"prompt\":",
        b"{\"prompt\":\"a\xFF\"}",
        b"{\"prompt\":\"\\ud83d\",\"max_tokens\":2}",
        b"[]",
        b"null",
        b"{\"prompt\":\"a\",\"temperature\":NaN}",
        b"{\"prompt\":\"a\",\"temperature\":1e999}",
        b"{\"prompt\":\"a\",\"max_tokens\":99999999999999999999999}",
        &[b'['; 100_000],
    ] {
        let reply = server.send("POST", "/v1/completions", body);
        assert_eq!(reply.status, 400, "{reply:?}");
        assert_eq!(reply.json()["error"]["type"], "invalid_request_error", "{reply:?}");
        assert!(!reply.message().contains('\n'), "{reply:?}");
    }
    let paired = br#"{"prompt":"\ud83d\ude00","max_tokens":2}"#;
    assert_eq!(server.send("POST", "/v1/completions", paired).status, 200);
    assert!(server.is_alive());
}

#[test]
fn prompts_of_every_wrong_form_are_refused() {
    let server = Server::saying(json!({ "text": "ok" }));
    let mut sentences = std::collections::BTreeMap::<String, Vec<String>>::new();
    for (group, prompt) in [
        ("empty text", json!("")),
        ("empty text", json!([""])),
        ("empty list", json!([])),
        ("empty list", json!([[]])),
        ("no ids", json!([-1])),
        ("no ids", json!([[-1]])),
        ("no ids", json!([1.5])),
        ("no ids", json!([99_999_999_999_u64])),
        ("outside", json!([999_999_999])),
        ("outside", json!([[999_999_999]])),
        ("several", json!(["a", "b"])),
        ("several", json!([[1], [2]])),
        ("type", json!(true)),
        ("type", json!({})),
        ("missing", json!(null)),
    ] {
        let reply = server.post("/v1/completions", &json!({ "max_tokens": 2, "prompt": prompt }));
        assert_eq!(reply.status, 400, "{prompt} {reply:?}");
        sentences.entry(group.to_owned()).or_default().push(reply.message());
    }
    for (group, sentences) in sentences {
        assert!(sentences.iter().all(|one| *one == sentences[0]), "{group}: {sentences:?}");
    }
    assert!(server.is_alive());
}

#[test]
fn messages_of_every_wrong_form_are_refused() {
    let server = Server::saying(json!({ "text": "ok" }));
    for (messages, param) in [
        (json!([]), "messages"),
        (json!("hi"), "messages"),
        (json!([1]), "messages[0]"),
        (json!([{ "content": "x" }]), "messages[0].role"),
        (json!([{ "role": "robot", "content": "x" }]), "messages[0].role"),
        (json!([{ "role": "user" }]), "messages[0].content"),
        (json!([{ "role": "user", "content": null }]), "messages[0].content"),
        (json!([{ "role": "user", "content": 5 }]), "messages[0].content"),
        (json!([{ "role": "user", "content": "x", "audio": {} }]), "messages[0].audio"),
        (
            json!([{ "role": "user", "content": [{ "type": "image_url", "image_url": {} }] }]),
            "messages[0].content[0]",
        ),
    ] {
        let reply = server.post("/v1/chat/completions", &json!({ "messages": messages }));
        assert_eq!(reply.status, 400, "{messages} {reply:?}");
        assert_eq!(reply.json()["error"]["param"], param, "{messages} {reply:?}");
    }
    let parts = json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
    let messages = json!([{ "role": "developer", "content": parts }]);
    assert_eq!(
        server.post("/apply-template", &json!({ "messages": messages })).json()["prompt"],
        "<|system|>a\nb<|turn|><|assistant|>"
    );
    assert!(server.is_alive());
}

#[test]
fn a_templates_own_refusal_is_the_callers_to_read() {
    let template = "{% if messages[0].role == 'system' %}\
                    {{ raise_exception('System role not supported') }}{% endif %}x";
    let server = Server::of(&json!({ "template": template, "answers": [{ "text": "ok" }] }));
    let messages = json!([{ "role": "system", "content": "be kind" }]);
    let reply = server.post("/v1/chat/completions", &json!({ "messages": messages }));
    assert_eq!(reply.status, 400, "{reply:?}");
    assert!(reply.message().contains("System role not supported"), "{reply:?}");
}

#[test]
fn control_tokens_come_from_the_template_only() {
    let server = Server::saying(json!({ "text": "ok" }));
    let count = |content: &str| {
        let messages = json!([{ "role": "user", "content": content }]);
        let reply = server.post("/tokenize", &json!({ "messages": messages }));
        let tokens = reply.json()["tokens"].as_array().unwrap().clone();
        tokens.iter().filter(|token| token.as_u64().unwrap() < 7).count()
    };
    assert_eq!(count("A<|turn|>B"), count("AB"));
}

#[test]
fn sampling_fields_keep_their_ranges_and_types() {
    let server = Server::saying(json!({ "text": "ok" }));
    for (field, value) in [
        ("temperature", json!(-1)),
        ("temperature", json!(2.5)),
        ("temperature", json!(true)),
        ("temperature", json!("0.7")),
        ("top_p", json!(0)),
        ("top_p", json!(1.01)),
        ("top_k", json!(-1)),
        ("top_k", json!(1.5)),
        ("presence_penalty", json!(2.1)),
        ("frequency_penalty", json!([])),
        ("logit_bias", json!({ "x": 1 })),
        ("logit_bias", json!({ "+5": 1 })),
        ("logit_bias", json!({ "05": 1 })),
        ("logit_bias", json!({ "5": 101 })),
        ("logit_bias", json!({ "999999": 1 })),
        ("stop", json!("")),
        ("stop", json!(["a", 5])),
        ("stop", json!(vec!["a"; 65])),
        ("stop", json!("x".repeat(1025))),
        ("stop_token_ids", json!([999_999])),
        ("n", json!(0)),
        ("n", json!(17)),
        ("seed", json!(-1)),
        ("seed", json!(1.5)),
        ("stream", json!("yes")),
        ("timeout_ms", json!(0)),
        ("nonsense", json!(1)),
    ] {
        let reply = server.post("/v1/completions", &json!({ "prompt": "a", field: value }));
        assert_eq!(reply.status, 400, "{field} {value} {reply:?}");
        assert!(reply.message().contains(field), "{field} {value} {reply:?}");
    }
    assert!(server.is_alive());
}

#[test]
fn logprobs_do_not_follow_the_sampler() {
    let server = Server::saying(json!({ "pieces": ["a", "b"] }));
    let mut seen = std::collections::BTreeSet::new();
    for fields in [
        json!({ "temperature": 0 }),
        json!({ "temperature": 1 }),
        json!({ "temperature": 1, "top_k": 1 }),
        json!({ "temperature": 2, "top_p": 0.1 }),
    ] {
        let mut body = fields;
        body["messages"] = json!([{ "role": "user", "content": "go" }]);
        body["logprobs"] = json!(true);
        let reply = server.post("/v1/chat/completions", &body);
        let answer = reply.json();
        let content = answer["choices"][0]["logprobs"]["content"].as_array().unwrap().clone();
        assert_eq!(content.len(), 2, "{answer}");
        assert!(!reply.body.contains("null,\"probability"), "{reply:?}");
        let values: Vec<String> =
            content.iter().map(|entry| entry["logprob"].to_string()).collect();
        seen.insert(values);
    }
    assert_eq!(seen.len(), 1, "{seen:?}");
}

#[test]
fn cached_tokens_are_counted_right_and_salts_keep_apart() {
    let server = Server::start(options(vec![script(&json!({ "answers": [{ "text": "ok" }] }))]));
    let cached = |salt: Value| {
        let body = json!({ "prompt": "p".repeat(100), "max_tokens": 2, "cache_salt": salt });
        let answer = server.post("/v1/completions", &body).json();
        assert_eq!(answer["usage"]["prompt_tokens"], 100, "{answer}");
        answer["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap()
    };
    assert_eq!(cached(Value::Null), 0);
    let second = cached(Value::Null);
    assert!(second > 0 && second <= 99 && second % 16 == 0, "{second}");
    assert_eq!(cached(json!("X")), 0);
    assert_eq!(cached(json!("Y")), 0);
    assert!(cached(json!("X")) > 0);
}
