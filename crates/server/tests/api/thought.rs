//! Thoughts with a budget: closed behind it, counted apart, asked for in each API's words.

use causeway_policy::PolicyFile;
use serde_json::{Value, json};

use crate::support::{Reply, Server, options, script};

/// What the model would say for ever, a letter a token; the script goes on behind what is laid.
const PIECES: [&str; 16] =
    ["<think>", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o"];
const CLOSE: &str = "</think>";

fn server() -> Server {
    Server::saying(json!({ "pieces": PIECES }))
}

/// A server whose template opens the thought.
fn opening() -> Server {
    Server::of(&json!({
        "template": "{% for m in messages %}{{ m.content }}{% endfor %}<|assistant|><think>\n",
        "answers": [{ "pieces": PIECES[1..] }],
    }))
}

fn body(fields: &Value) -> Value {
    let mut body = json!({
        "messages": [{ "role": "user", "content": "go" }],
        "reasoning_markers": ["<think>", CLOSE],
    });
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

fn chat(server: &Server, fields: &Value) -> Value {
    let reply = server.post("/v1/chat/completions", &body(fields));
    assert_eq!(reply.status, 200, "{fields} {reply:?}");
    reply.json()
}

/// Reasoning, visible text, and the counts of one answer: completion, forced, reasoning, visible.
fn read(answer: &Value) -> (String, String, [u64; 4]) {
    let message = &answer["choices"][0]["message"];
    let text = |name: &str| message[name].as_str().unwrap_or_default().to_owned();
    let tokens = &answer["causeway"]["choices"][0]["tokens"];
    let counts = ["completion", "forced", "reasoning", "visible"];
    (text("reasoning_content"), text("content"), counts.map(|name| tokens[name].as_u64().unwrap()))
}

/// Tokens that the closing marker takes.
fn close_tokens(server: &Server) -> usize {
    let reply = server.post("/tokenize", &json!({ "content": CLOSE }));
    reply.json()["tokens"].as_array().unwrap().len()
}

/// After `before` thought tokens the marker is laid, and the script goes on where it then is.
fn check(server: &Server, budget: usize, opened: bool) {
    let laid = close_tokens(server);
    let opening = usize::from(!opened);
    let script = &PIECES[1 - opening..];
    let thought: String = script[opening..opening + budget].concat();
    let behind = script[opening + budget + laid..].concat();
    let fields = json!({ "reasoning_tokens_max": budget });
    let (reasoning, visible, counts) = read(&chat(server, &fields));
    assert_eq!((reasoning.as_str(), visible.as_str()), (thought.as_str(), behind.as_str()));
    let all = script.len() + 1;
    let hidden = opening + budget + laid;
    // The end token shows nothing either.
    assert_eq!(counts, [all, laid, hidden, all - hidden - 1].map(|count| count as u64));
    let mut streaming = body(&fields);
    streaming["stream"] = json!(true);
    let stream = server.post("/v1/chat/completions", &streaming);
    assert_eq!((stream.streamed_reasoning(), stream.streamed()), (reasoning, visible));
}

#[test]
fn a_budget_closes_the_thought() {
    for budget in [0, 1, 2, 5] {
        check(&server(), budget, false);
        check(&opening(), budget, true);
    }
}

#[test]
fn a_thought_that_ends_by_itself_is_left_alone() {
    let server = Server::saying(json!({ "pieces": ["<think>", "so", CLOSE, "Yes."] }));
    let answer = chat(&server, &json!({ "reasoning_tokens_max": 5 }));
    assert_eq!(read(&answer), ("so".to_owned(), "Yes.".to_owned(), [5, 0, 3, 1]), "{answer}");
    // What it opens later has what is left.
    let again = json!({ "pieces": ["<think>", "so", CLOSE, "Yes.", "<think>", "but", "no"] });
    let answer = chat(&Server::saying(again), &json!({ "reasoning_tokens_max": 3 }));
    let (reasoning, visible, counts) = read(&answer);
    assert_eq!((reasoning.as_str(), visible.as_str()), ("sobut", "Yes."), "{answer}");
    assert!(counts[1] > 0, "{answer}");
}

#[test]
fn tokens_max_may_fall_inside_the_marker() {
    let server = server();
    let laid = close_tokens(&server);
    assert!(laid > 1, "the marker has an inside");
    for inside in 0..=laid {
        let most = 3 + inside;
        let fields = json!({ "reasoning_tokens_max": 2, "max_tokens": most });
        let answer = chat(&server, &fields);
        // Half a marker is nobody's text.
        let counts = [most, inside, most, 0].map(|count| count as u64);
        assert_eq!(read(&answer), ("ab".to_owned(), String::new(), counts), "{answer}");
        assert_eq!(answer["choices"][0]["finish_reason"], "length", "{answer}");
        assert_eq!(answer["usage"]["completion_tokens"], most, "{answer}");
    }
}

#[test]
fn reasoning_can_be_asked_for_in_openais_words() {
    let server = server();
    let (none, ..) = read(&chat(&server, &json!({ "reasoning_effort": "none" })));
    assert_eq!(none, "");
    let ask = |reasoning: Value| {
        let fields = json!({ "input": "go", "reasoning": reasoning });
        let mut body = body(&fields);
        body.as_object_mut().unwrap().remove("messages");
        server.post("/v1/responses", &body)
    };
    let reply = ask(json!({ "effort": "none", "summary": null }));
    assert_eq!(reply.json()["output"][0]["type"], "message", "{reply:?}");
    assert_eq!(reply.json()["reasoning"]["effort"], "none", "{reply:?}");
    for (reasoning, param) in [
        (json!({ "effort": "low" }), "reasoning.effort"),
        (json!({ "effort": 5 }), "reasoning.effort"),
        (json!({ "summary": "auto" }), "reasoning.summary"),
        (json!({ "nonsense": 1 }), "reasoning.nonsense"),
    ] {
        let reply = ask(reasoning.clone());
        assert_eq!((reply.status, &reply.json()["error"]["param"]), (400, &json!(param)));
    }
}

fn message(server: &Server, fields: &Value) -> Reply {
    let mut body = body(fields);
    body.as_object_mut().unwrap().entry("max_tokens").or_insert(json!(40));
    server.post("/v1/messages", &body)
}

#[test]
fn reasoning_can_be_asked_for_in_anthropics_words() {
    let server = server();
    let blocks = |thinking: Value| {
        let reply = message(&server, &json!({ "thinking": thinking }));
        assert_eq!(reply.status, 200, "{thinking} {reply:?}");
        let content = reply.json()["content"].clone();
        let block = |block: &Value| {
            let kind = block["type"].as_str().unwrap().to_owned();
            let text = block[kind.as_str()].as_str().unwrap().to_owned();
            (kind, text)
        };
        content.as_array().unwrap().iter().map(block).collect::<Vec<_>>()
    };
    let enabled = blocks(json!({ "type": "enabled", "budget_tokens": 2 }));
    assert_eq!(enabled[0], ("thinking".to_owned(), "ab".to_owned()));
    let omitted = blocks(json!({ "type": "enabled", "budget_tokens": 2, "display": "omitted" }));
    assert_eq!(omitted, enabled[1..]);
    let disabled = blocks(json!({ "type": "disabled" }));
    assert_eq!((disabled.len(), disabled[0].0.as_str()), (1, "text"), "{disabled:?}");
}

#[test]
fn what_is_said_of_a_thought_must_be_right() {
    let server = server();
    let enabled = |budget: Value| json!({ "type": "enabled", "budget_tokens": budget });
    for (fields, param) in [
        (json!({ "thinking": { "type": "enabled" } }), "thinking.budget_tokens"),
        (json!({ "thinking": enabled(json!(0)) }), "thinking.budget_tokens"),
        (json!({ "thinking": enabled(json!("2")) }), "thinking.budget_tokens"),
        (json!({ "thinking": enabled(json!(40)) }), "thinking.budget_tokens"),
        (json!({ "thinking": { "type": "adaptive" } }), "thinking.type"),
        (
            json!({ "thinking": { "type": "disabled", "budget_tokens": 2 } }),
            "thinking.budget_tokens",
        ),
        (
            json!({
                "thinking": { "type": "enabled", "budget_tokens": 2, "display": "summarized" },
            }),
            "thinking.display",
        ),
        (json!({ "thinking": enabled(json!(2)), "reasoning_tokens_max": 3 }), "thinking"),
        (json!({ "thinking": enabled(json!(2)), "reasoning_markers": null }), "thinking"),
        (json!({ "reasoning_tokens_max": 2, "reasoning_markers": null }), "reasoning_tokens_max"),
        (
            json!({ "reasoning_tokens_max": 2, "reasoning_markers": ["<think>", "<|turn|>"] }),
            "reasoning_markers",
        ),
    ] {
        let reply = message(&server, &fields);
        let error = &reply.json()["error"];
        assert_eq!((reply.status, &error["param"]), (400, &json!(param)), "{fields} {reply:?}");
        let text = error["message"].as_str().unwrap();
        assert!(text.contains(param) && !text.contains('\n'), "{text}");
    }
    // It asks for what happens anyway where nothing tells a thought from text.
    let off = json!({ "thinking": { "type": "disabled" }, "reasoning_markers": null });
    assert_eq!(message(&server, &off).status, 200);
}

#[test]
fn a_policys_budget_is_not_a_requests_to_change() {
    let with = |budget: &str| {
        let markers = "open = \"<think>\"\nclose = \"</think>\"";
        let policy = format!("schema = 1\n[reasoning]\n{markers}\n{budget}");
        let mut options = options(vec![script(&json!({ "answers": [{ "pieces": PIECES }] }))]);
        options.policy = Some(PolicyFile::from_toml(&policy).unwrap());
        Server::start(options)
    };
    let ask = |server: &Server, fields: Value| {
        let mut body = json!({ "messages": [{ "role": "user", "content": "go" }] });
        for (name, value) in fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        server.post("/v1/chat/completions", &body)
    };
    let fixed = with("tokens_max = 2");
    assert_eq!(read(&ask(&fixed, json!({})).json()).0, "ab");
    assert_eq!(read(&ask(&fixed, json!({ "reasoning_tokens_max": 2 })).json()).0, "ab");
    let reply = ask(&fixed, json!({ "reasoning_tokens_max": 1 }));
    assert_eq!(reply.json()["error"]["code"], "fixed_by_policy", "{reply:?}");
    let open = with("");
    assert_eq!(read(&ask(&open, json!({ "reasoning_tokens_max": 1 })).json()).0, "a");
    assert_eq!(read(&ask(&open, json!({ "reasoning_effort": "none" })).json()).0, "");
    let enabled = json!({ "type": "enabled", "budget_tokens": 1 });
    let asked = json!({
        "messages": [{ "role": "user", "content": "go" }], "max_tokens": 40, "thinking": enabled,
    });
    assert_eq!(open.post("/v1/messages", &asked).json()["content"][0]["thinking"], "a");
}
