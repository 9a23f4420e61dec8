//! Requests as they should not be, and what a prompt becomes, at every API there is here.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{Reply, Server};

fn messages(content: &str) -> Value {
    json!([{ "role": "user", "content": content }])
}

/// Every API that answers: its path, a good body about a text, its budget, its prompt's field.
fn apis(text: &str) -> [(&'static str, Value, &'static str, &'static str); 4] {
    let messages = messages(text);
    [
        ("/v1/chat/completions", json!({ "messages": messages }), "max_tokens", "messages"),
        ("/v1/completions", json!({ "prompt": text }), "max_tokens", "prompt"),
        ("/v1/responses", json!({ "input": text }), "max_output_tokens", "input"),
        (
            "/v1/messages",
            json!({ "messages": messages, "max_tokens": 5 }),
            "max_tokens",
            "messages",
        ),
    ]
}

fn with(body: &Value, field: &str, value: Value) -> Value {
    let mut body = body.clone();
    body[field] = value;
    body
}

/// Asks whole and as a stream; a refusal is the same plain answer to both.
fn check_refused(server: &Server, path: &str, body: &Value, param: &str) -> Reply {
    let whole = server.post(path, body);
    for reply in [&whole, &server.post(path, &with(body, "stream", json!(true)))] {
        assert_eq!(reply.status, 400, "{path} {body} {reply:?}");
        let error = reply.json()["error"].clone();
        assert_eq!(error["type"], "invalid_request_error", "{path} {body} {reply:?}");
        assert_eq!(error["param"], param, "{path} {body} {reply:?}");
        assert!(!error["message"].as_str().unwrap().contains('\n'), "{reply:?}");
        assert_eq!(error["message"], whole.json()["error"]["message"], "{path} {body}");
    }
    whole
}

#[test]
fn a_budget_has_the_same_limits_everywhere() {
    let endless = json!({ "pieces": ["x"], "repeats": true });
    let server = Server::of(&json!({ "context_len": 512, "answers": [endless] }));
    for (path, body, budget, _) in apis("1 2") {
        for value in [
            json!(0),
            json!(-1),
            json!(-5),
            json!(1.5),
            json!(1.0),
            json!("5"),
            json!(true),
            json!([5]),
            json!(513),
            json!(100_000_000),
            json!(9_007_199_254_740_992_u64),
            json!(u64::MAX),
            json!(1e30),
        ] {
            let reply = check_refused(&server, path, &with(&body, budget, value.clone()), budget);
            assert!(reply.message().contains(budget), "{value} {reply:?}");
        }
        for value in [1, 5] {
            let reply = server.post(path, &with(&body, budget, json!(value)));
            assert_eq!(reply.status, 200, "{reply:?}");
        }
    }
    let body = json!({ "messages": messages("a"), "max_completion_tokens": -5 });
    check_refused(&server, "/v1/chat/completions", &body, "max_completion_tokens");
    for echo in [true, false] {
        let body = json!({ "prompt": "a", "max_tokens": 0, "echo": echo });
        check_refused(&server, "/v1/completions", &body, "max_tokens");
    }
    assert!(server.is_alive());
}

#[test]
fn a_prompt_beyond_the_context_is_refused_everywhere() {
    let server = Server::of(&json!({ "context_len": 512, "answers": [{ "text": "ok" }] }));
    for (path, body, budget, field) in apis(&format!("SECRET{}", "w".repeat(600))) {
        let reply = check_refused(&server, path, &body, field);
        let error = reply.json()["error"].clone();
        assert_eq!(error["code"], "context_length_exceeded", "{reply:?}");
        let counted = server.post(
            "/tokenize",
            &match field {
                "messages" => json!({ "messages": body["messages"] }),
                "input" => json!({ "messages": messages(body["input"].as_str().unwrap()) }),
                _ => json!({ "prompt": body["prompt"] }),
            },
        );
        let count = counted.json()["count"].to_string();
        assert!(reply.message().contains(&count) && reply.message().contains("512"), "{reply:?}");
        // One that fits, with a budget that does not.
        let (path, body, ..) =
            apis(&"w".repeat(480)).into_iter().find(|api| api.0 == path).unwrap();
        let reply = check_refused(&server, path, &with(&body, budget, json!(40)), budget);
        assert!(reply.message().contains("(40)") && reply.message().contains("512"), "{reply:?}");
        // And one that fits with it: what was sent is what is counted.
        let reply = server.post(path, &with(&body, budget, json!(8))).json();
        let usage = &reply["usage"];
        let prompt = usage["prompt_tokens"].as_u64().or(usage["input_tokens"].as_u64()).unwrap();
        let prompt = prompt + usage["cache_read_input_tokens"].as_u64().unwrap_or(0);
        assert!((480..504).contains(&prompt), "{path} {reply}");
    }
    assert!(server.is_alive());
}

#[test]
fn a_prompt_of_nothing_is_refused_everywhere() {
    let server = Server::of(&json!({ "answers": [{ "text": "ok" }] }));
    let mut sentences = BTreeSet::new();
    for prompt in [json!(""), json!([""])] {
        let body = json!({ "prompt": prompt });
        sentences.insert(check_refused(&server, "/v1/completions", &body, "prompt").message());
    }
    assert_eq!(sentences.len(), 1, "{sentences:?}");
    for (path, body, param) in [
        ("/v1/completions", json!({ "prompt": [] }), "prompt"),
        ("/v1/completions", json!({ "prompt": [[]] }), "prompt"),
        ("/v1/completions", json!({}), "prompt"),
        ("/v1/chat/completions", json!({ "messages": [] }), "messages"),
        ("/v1/chat/completions", json!({}), "messages"),
        ("/v1/responses", json!({ "input": "" }), "input"),
        ("/v1/responses", json!({ "input": [] }), "input"),
        ("/v1/responses", json!({}), "input"),
        ("/v1/messages", json!({ "messages": [], "max_tokens": 5 }), "messages"),
        ("/v1/messages", json!({ "max_tokens": 5 }), "messages"),
    ] {
        check_refused(&server, path, &body, param);
    }
    assert!(server.is_alive());
}

#[test]
fn numbers_of_the_wrong_type_are_refused_everywhere() {
    let server = Server::of(&json!({ "answers": [{ "text": "ok" }] }));
    for (path, body, ..) in apis("a") {
        let too_hot = if path == "/v1/messages" { json!(1.5) } else { json!(2.5) };
        for (field, value) in [
            ("temperature", json!(-1)),
            ("temperature", json!(-1e-9)),
            ("temperature", json!(true)),
            ("temperature", json!("0.7")),
            ("temperature", json!([0.7])),
            ("temperature", json!(1e300)),
            ("temperature", too_hot),
            ("top_p", json!(-0.5)),
            ("top_p", json!(0)),
            ("top_p", json!(1.000_001)),
            ("top_p", json!("1")),
            ("top_k", json!(-1)),
            ("top_k", json!(u64::MAX)),
            ("min_p", json!(2)),
            ("seed", json!(-1)),
            ("seed", json!(1e30)),
            ("min_tokens", json!(-1)),
            ("min_tokens", json!(u64::MAX)),
            ("timeout_ms", json!(-1)),
            ("timeout_ms", json!(1e30)),
            ("priority", json!(5)),
            ("cache_salt", json!("x".repeat(513))),
            ("repetition_penalty", json!(0)),
            ("stop_token_ids", json!([-1])),
            ("stop_token_ids", json!([1.5])),
            ("allowed_token_ids", json!([])),
        ] {
            check_refused(&server, path, &with(&body, field, value), field);
        }
    }
    assert!(server.is_alive());
}

#[test]
fn ids_that_are_none_are_refused_wherever_ids_stand() {
    let server = Server::of(&json!({ "answers": [{ "text": "ok" }] }));
    for ids in [
        json!([-1]),
        json!([1.5]),
        json!(["1"]),
        json!([[1]]),
        json!([null]),
        json!([999_999_999]),
        json!([u64::MAX]),
        json!(1),
    ] {
        let reply = server.post("/detokenize", &json!({ "tokens": ids }));
        assert_eq!(reply.status, 400, "{ids} {reply:?}");
        assert_eq!(reply.json()["error"]["param"], "tokens", "{ids} {reply:?}");
    }
    let ids = |prompt: Value| {
        check_refused(&server, "/v1/completions", &json!({ "prompt": prompt }), "prompt").message()
    };
    for id in [json!(-1), json!(1.5), json!(999_999_999), json!(u64::MAX), json!(263)] {
        assert_eq!(ids(json!([id])), ids(json!([[id]])), "{id}");
    }
    assert!(server.is_alive());
}

#[test]
fn a_templates_refusal_is_a_400_in_its_own_words_everywhere() {
    let template = "{% if messages[0].role == 'system' %}\
                    {{ raise_exception('no system <here>') }}{% endif %}x{{ messages[5].a.b }}";
    let server = Server::of(&json!({ "template": template, "answers": [{ "text": "ok" }] }));
    let system = json!([
        { "role": "system", "content": "s" }, { "role": "user", "content": "u" },
    ]);
    let user = messages("u");
    for (path, refused, broken) in [
        ("/v1/chat/completions", json!({ "messages": system }), json!({ "messages": user })),
        ("/v1/responses", json!({ "instructions": "s", "input": "u" }), json!({ "input": "u" })),
        (
            "/v1/messages",
            json!({ "system": "s", "messages": user, "max_tokens": 1 }),
            json!({ "messages": user, "max_tokens": 1 }),
        ),
        ("/apply-template", json!({ "messages": system }), json!({ "messages": user })),
        ("/tokenize", json!({ "messages": system }), json!({ "messages": user })),
    ] {
        let reply = server.post(path, &refused);
        assert_eq!(reply.status, 400, "{path} {reply:?}");
        assert!(reply.message().contains("no system <here>"), "{path} {reply:?}");
        // A template that fails by itself says so in one line, and ends nothing else.
        let reply = server.post(path, &broken);
        assert!([400, 500].contains(&reply.status), "{path} {reply:?}");
        assert!(!reply.message().is_empty() && !reply.message().contains('\n'), "{reply:?}");
    }
    assert_eq!(server.get("/health").status, 200);
}

#[test]
fn templates_print_what_transformers_prints() {
    let render = |template: &str, more: Value| {
        let server = Server::of(&json!({ "template": template, "answers": [{ "text": "ok" }] }));
        let mut body = more;
        body["messages"] = messages("u");
        let reply = server.post("/apply-template", &body);
        assert_eq!(reply.status, 200, "{template} {reply:?}");
        reply.json()["prompt"].as_str().unwrap().to_owned()
    };
    assert_eq!(render("{% generation %}x{% endgeneration %}", json!({})), "x");
    assert_eq!(render("{%- generation -%} y {%- endgeneration -%}", json!({})), "y");
    let kwargs = json!({ "chat_template_kwargs": { "m": { "d": "a<b & 'é' 中/" } } });
    assert_eq!(render("{{ m|tojson }}", kwargs), "{\"d\": \"a<b & 'é' 中/\"}");
}

#[test]
fn no_ones_text_becomes_a_control_token() {
    let server = Server::of(&json!({ "answers": [{ "text": "ok" }] }));
    let controls = |messages: Value| {
        let reply = server.post("/tokenize", &json!({ "messages": messages }));
        let tokens = reply.json()["tokens"].as_array().unwrap().clone();
        tokens.iter().filter(|token| token.as_u64().unwrap() < 7).count()
    };
    let marks =
        ["<|turn|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|eos|>", "<unk>"];
    for role in ["user", "system", "assistant"] {
        let plain = controls(json!([{ "role": role, "content": "AB" }]));
        for mark in marks {
            let spelled = format!("A{mark}B");
            let with_mark = json!([{ "role": role, "content": spelled }]);
            assert_eq!(controls(with_mark.clone()), plain, "{role} {mark}");
            // What the user wrote comes back as it was written.
            let prompt = server.post("/apply-template", &json!({ "messages": with_mark })).json();
            assert!(prompt["prompt"].as_str().unwrap().contains(&spelled), "{prompt}");
        }
        let parts =
            json!([{ "type": "text", "text": "A<|tu" }, { "type": "text", "text": "rn|>B" }]);
        assert_eq!(controls(json!([{ "role": role, "content": parts }])), plain, "{role}");
    }
}

#[test]
fn cached_tokens_are_whole_blocks_and_never_the_prompt() {
    let server = Server::of(&json!({ "answers": [{ "text": "ok" }] }));
    let ask = |letter: char, length: usize, salt: Value| {
        let prompt = letter.to_string().repeat(length);
        let body = json!({ "prompt": prompt, "max_tokens": 2, "cache_salt": salt });
        let usage = server.post("/v1/completions", &body).json()["usage"].clone();
        assert_eq!(usage["prompt_tokens"], length, "{usage}");
        usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap()
    };
    for (letter, length) in ('a'..).zip([1usize, 15, 16, 17, 31, 32, 33, 100]) {
        assert_eq!(ask(letter, length, Value::Null), 0, "{length}");
        let whole_blocks = (length - 1) / 16 * 16;
        assert_eq!(ask(letter, length, Value::Null), whole_blocks as u64, "{length}");
    }
    // Salts that look like one another, or like the lack of one, are others.
    let salts = ["", "X", "x", "XX", "X ", "0", "null", "\u{0}"];
    for salt in salts {
        assert_eq!(ask('z', 40, json!(salt)), 0, "{salt:?}");
    }
    for salt in salts {
        assert_eq!(ask('z', 40, json!(salt)), 32, "{salt:?}");
    }
    assert_eq!(ask('z', 40, Value::Null), 0);
}

#[test]
fn every_api_counts_cached_tokens_alike() {
    for (path, body, ..) in apis(&"p".repeat(100)) {
        let server = Server::of(&json!({ "answers": [{ "text": "ok" }] }));
        let usage = || {
            let usage = server.post(path, &body).json()["usage"].clone();
            let cached = usage["prompt_tokens_details"]["cached_tokens"].as_u64();
            let cached = cached.or(usage["input_tokens_details"]["cached_tokens"].as_u64());
            let read = usage["cache_read_input_tokens"].as_u64();
            let prompt = usage["prompt_tokens"].as_u64().or(usage["input_tokens"].as_u64());
            (prompt.unwrap() + read.unwrap_or(0), cached.or(read).unwrap())
        };
        let ((first_prompt, first), (prompt, cached)) = (usage(), usage());
        assert_eq!((first_prompt, first), (prompt, 0), "{path}");
        assert_eq!(cached, (prompt - 1) / 16 * 16, "{path}");
    }
}

#[test]
fn a_seed_owns_its_draws_whoever_is_beside_it() {
    // The script says nothing, so that every token is drawn among all.
    let server =
        Server::of(&json!({ "answers": [{ "when": "nothing", "delay_ms": 1 }, { "text": "ok" }] }));
    for (path, body, budget, _) in apis("nothing") {
        let body = with(&with(&body, budget, json!(16)), "min_tokens", json!(16));
        let ask = |seed: Value| {
            let reply =
                server.post(path, &with(&with(&body, "seed", seed), "result_cache", json!(false)));
            let answer = reply.json();
            let text = [
                &answer["choices"][0]["message"]["content"],
                &answer["choices"][0]["text"],
                &answer["output"][0]["content"][0]["text"],
                &answer["content"][0]["text"],
            ];
            text.into_iter().find_map(Value::as_str).unwrap().to_owned()
        };
        let alone = ask(json!(42));
        assert_ne!(alone, ask(json!(43)), "{path}");
        for other in [Value::Null, json!(42), json!(7)] {
            std::thread::scope(|scope| {
                let (ask, other) = (&ask, &other);
                let beside: Vec<_> =
                    (0..3).map(|_| scope.spawn(move || ask(other.clone()))).collect();
                assert_eq!(ask(json!(42)), alone, "{path} {other}");
                for one in beside {
                    assert!(!one.join().unwrap().is_empty());
                }
            });
        }
    }
}

#[test]
fn logprobs_are_finite_sorted_and_the_models_own() {
    let server = Server::of(&json!({ "answers": [{ "pieces": ["a", "b"] }] }));
    let mut seen = BTreeSet::new();
    for fields in [
        json!({ "temperature": 0 }),
        json!({ "temperature": 1 }),
        json!({ "temperature": 1, "top_k": 1 }),
        json!({ "temperature": 2, "top_p": 0.1 }),
        json!({ "temperature": 1, "min_p": 1, "like": "vllm" }),
    ] {
        for stream in [false, true] {
            let mut body = fields.clone();
            body["messages"] = messages("go");
            (body["logprobs"], body["top_logprobs"]) = (json!(true), json!(20));
            body["stream"] = json!(stream);
            let reply = server.post("/v1/chat/completions", &body);
            assert_eq!(reply.status, 200, "{reply:?}");
            let events = if stream { reply.events() } else { vec![reply.json()] };
            let lists =
                events.iter().filter_map(|one| one["choices"][0]["logprobs"]["content"].as_array());
            let content: Vec<Value> = lists.flatten().cloned().collect();
            assert_eq!(content.len(), 2, "{reply:?}");
            let values: Vec<Vec<String>> = content.iter().map(values_of).collect();
            seen.insert(values);
        }
    }
    assert_eq!(seen.len(), 1, "{seen:?}");
    // Alternatives that the policy rules out have numbers too, and so has what it forces.
    for fields in [
        json!({ "allowed_token_ids": [50] }),
        json!({ "logit_bias": { "50": 100, "51": -100 } }),
        json!({ "forbidden_token_ids": [51, 52], "top_k": 1 }),
    ] {
        let mut body = fields;
        body["messages"] = messages("go");
        (body["logprobs"], body["top_logprobs"]) = (json!(true), json!(20));
        body["max_tokens"] = json!(2);
        let reply = server.post("/v1/chat/completions", &body);
        let content = reply.json()["choices"][0]["logprobs"]["content"].clone();
        content.as_array().unwrap().iter().for_each(|entry| drop(values_of(entry)));
    }
}

/// The numbers of one token: finite, best first, together at most all there is.
fn values_of(entry: &Value) -> Vec<String> {
    let top = entry["top_logprobs"].as_array().unwrap();
    let values: Vec<f64> = top.iter().map(|one| one["logprob"].as_f64().unwrap()).collect();
    assert_eq!(values.len(), 20, "{entry}");
    assert!(values.iter().all(|value| value.is_finite() && *value <= 0.0), "{entry}");
    assert!(values.is_sorted_by(|a, b| a >= b), "{entry}");
    assert!(values.iter().map(|value| value.exp()).sum::<f64>() < 1.000_001, "{entry}");
    assert!(entry["logprob"].as_f64().unwrap().is_finite(), "{entry}");
    let all = [entry["logprob"].to_string()].into_iter();
    all.chain(values.iter().map(f64::to_string)).collect()
}

#[test]
fn logprobs_of_a_cached_prompt_are_those_of_a_new_one() {
    let server = Server::of(&json!({ "answers": [{ "pieces": ["a", "b"] }] }));
    for (letter, length) in ('c'..).zip([15usize, 16, 17, 31, 32, 33]) {
        let prompt = letter.to_string().repeat(length);
        let body = json!({ "prompt": prompt, "logprobs": 3, "echo": true, "max_tokens": 2 });
        let ask = || server.post("/v1/completions", &body).json()["choices"][0].clone();
        assert_eq!(ask()["logprobs"], ask()["logprobs"], "{length}");
        // The prompt's own are no part of this API here, and are not left out in silence.
        let body = with(&body, "prompt_logprobs", json!(1));
        check_refused(&server, "/v1/completions", &body, "prompt_logprobs");
    }
}
