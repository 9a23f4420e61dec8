//! `/v1/responses`: the object, the order and the numbers of its events, what input may be.

use serde_json::{Value, json};

use crate::support::{Reply, Server};

/// A script that reasons before it answers.
fn thinker() -> Server {
    Server::saying(json!({ "pieces": ["<think>", "so", " it", "</think>", "Yes", "."] }))
}

fn ask(fields: Value) -> Value {
    let mut body = fields;
    body["input"] = json!("go");
    body
}

fn markers(fields: Value) -> Value {
    let mut body = ask(fields);
    body["reasoning_markers"] = json!(["<think>", "</think>"]);
    body
}

/// The events' names and indices, deltas in a row told once.
fn shape(reply: &Reply) -> Vec<String> {
    let mut shape: Vec<String> = Vec::new();
    for event in reply.events() {
        let name = event["type"].as_str().unwrap().trim_start_matches("response.");
        let line = match event["output_index"].as_u64() {
            Some(index) => format!("{index} {name}"),
            None => name.to_owned(),
        };
        if !(name.ends_with(".delta") && shape.last() == Some(&line)) {
            shape.push(line);
        }
    }
    shape
}

#[test]
fn a_response_is_an_object_with_items() {
    let server = Server::saying(json!({ "pieces": ["Hel", "lo"] }));
    let answer = server
        .post("/v1/responses", &ask(json!({ "instructions": "be kind", "temperature": 0.5 })))
        .json();
    assert_eq!(answer["object"], "response");
    assert_eq!(answer["status"], "completed");
    assert_eq!(answer["error"], Value::Null);
    assert_eq!(answer["incomplete_details"], Value::Null);
    assert_eq!(answer["instructions"], "be kind");
    assert_eq!((&answer["temperature"], &answer["top_p"]), (&json!(0.5), &json!(1.0)));
    assert_eq!((&answer["store"], &answer["tools"]), (&json!(false), &json!([])));
    assert_eq!(answer["text"], json!({ "format": { "type": "text" } }));
    let output = answer["output"].as_array().unwrap();
    assert_eq!(output.len(), 1, "{answer}");
    assert_eq!((&output[0]["type"], &output[0]["role"]), (&json!("message"), &json!("assistant")));
    assert_eq!(
        output[0]["content"],
        json!([{ "type": "output_text", "text": "Hello", "annotations": [], "logprobs": [] }])
    );
    let usage = &answer["usage"];
    assert_eq!(usage["output_tokens"], 3, "{answer}");
    assert_eq!(usage["output_tokens_details"]["reasoning_tokens"], 0);
    let prompt = usage["input_tokens"].as_u64().unwrap();
    assert_eq!(usage["total_tokens"], prompt + 3);
    assert_eq!(answer["causeway"]["choices"][0]["stop"]["reason"], "eos");
    let answer = server.post("/v1/responses", &ask(json!({ "causeway": false }))).json();
    assert_eq!(answer.get("causeway"), None);
}

#[test]
fn what_is_cut_short_is_incomplete() {
    let server = Server::saying(json!({ "pieces": ["a", "b", "c"] }));
    let answer = server.post("/v1/responses", &ask(json!({ "max_output_tokens": 2 }))).json();
    assert_eq!(answer["status"], "incomplete");
    assert_eq!(answer["incomplete_details"], json!({ "reason": "max_output_tokens" }));
    assert_eq!(answer["output"][0]["status"], "incomplete");
    assert_eq!(answer["max_output_tokens"], 2);
    let body = ask(json!({ "max_output_tokens": 2, "stream": true }));
    let events = server.post("/v1/responses", &body).events();
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.incomplete");
    assert_eq!(last["response"]["status"], "incomplete");
    let answer = server.post("/v1/responses", &ask(json!({ "stop": ["c"] }))).json();
    assert_eq!(answer["status"], "completed");
    assert_eq!(answer["output"][0]["content"][0]["text"], "ab");
}

#[test]
fn events_come_in_order_and_numbered() {
    let server = thinker();
    let reply = server.post("/v1/responses", &markers(json!({ "stream": true })));
    let events = reply.events();
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number, "{event}");
    }
    // Each is sent under its own name, and nothing comes after the last one.
    let names: Vec<&str> =
        reply.body.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(names, types);
    assert!(!reply.body.contains("[DONE]"), "{reply:?}");
    assert_eq!(
        shape(&reply),
        [
            "created",
            "in_progress",
            "0 output_item.added",
            "0 content_part.added",
            "0 reasoning_text.delta",
            "0 reasoning_text.done",
            "0 content_part.done",
            "0 output_item.done",
            "1 output_item.added",
            "1 content_part.added",
            "1 output_text.delta",
            "1 output_text.done",
            "1 content_part.done",
            "1 output_item.done",
            "completed",
        ]
    );
    let done = events.iter().find(|event| event["type"] == "response.output_text.done").unwrap();
    assert_eq!(done["text"], "Yes.");
    // What the last event holds is what would have come whole.
    let mut streamed = events.last().unwrap()["response"].clone();
    let mut whole = server.post("/v1/responses", &markers(json!({}))).json();
    for answer in [&mut streamed, &mut whole] {
        for name in ["id", "created_at", "completed_at", "causeway"] {
            assert!(answer.as_object_mut().unwrap().remove(name).is_some(), "{name}");
        }
        for item in answer["output"].as_array_mut().unwrap() {
            item.as_object_mut().unwrap().remove("id");
        }
        answer["usage"]["input_tokens_details"] = Value::Null;
    }
    assert_eq!(streamed, whole);
}

#[test]
fn an_answer_without_text_has_an_empty_one() {
    let server = Server::saying(json!({ "text": "" }));
    let answer = server.post("/v1/responses", &ask(json!({}))).json();
    assert_eq!(answer["output"][0]["content"][0]["text"], "", "{answer}");
    let reply = server.post("/v1/responses", &ask(json!({ "stream": true })));
    let want = [
        "created",
        "in_progress",
        "0 output_item.added",
        "0 content_part.added",
        "0 output_text.done",
        "0 content_part.done",
        "0 output_item.done",
        "completed",
    ];
    assert_eq!(shape(&reply), want);
}

#[test]
fn logprobs_come_to_those_who_include_them() {
    let server = Server::saying(json!({ "pieces": ["a", "b"] }));
    let fields = json!({ "include": ["message.output_text.logprobs"], "top_logprobs": 2 });
    let answer = server.post("/v1/responses", &ask(fields.clone())).json();
    let logprobs = answer["output"][0]["content"][0]["logprobs"].as_array().unwrap().clone();
    assert_eq!(logprobs.len(), 2, "{answer}");
    assert_eq!(logprobs[0]["token"], "a");
    assert_eq!(logprobs[0]["top_logprobs"].as_array().unwrap().len(), 2);
    let mut fields = fields;
    fields["stream"] = json!(true);
    let events = server.post("/v1/responses", &ask(fields)).events();
    let deltas = events.iter().filter(|event| event["type"] == "response.output_text.delta");
    let streamed: Vec<Value> =
        deltas.flat_map(|event| event["logprobs"].as_array().unwrap().clone()).collect();
    assert_eq!(streamed, logprobs);
    let reply = server.post("/v1/responses", &ask(json!({ "top_logprobs": 2 })));
    assert_eq!(reply.json()["error"]["param"], "top_logprobs", "{reply:?}");
}

#[test]
fn a_run_that_fails_ends_its_stream() {
    let server = Server::saying(json!({ "pieces": ["a"], "repeats": true, "fails_at": 3 }));
    assert_eq!(server.post("/v1/responses", &ask(json!({}))).status, 500);
    let events = server.post("/v1/responses", &ask(json!({ "stream": true }))).events();
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.failed");
    assert_eq!(last["response"]["status"], "failed");
    assert_eq!(last["response"]["error"]["code"], "server_error");
    assert!(last["response"]["error"]["message"].is_string(), "{last}");
}

#[test]
fn an_output_may_be_the_next_input() {
    let template = "{% for m in messages %}[{{ m.role }}:{{ m.reasoning_content }}:{{ m.content }}]\
                    {% endfor %}";
    let server = Server::of(&json!({
        "template": template,
        "answers": [
            { "when": "[system::kind][user::go][assistant:so it:Yes.][user::on]", "text": "good" },
            { "pieces": ["<think>", "so", " it", "</think>", "Yes", "."] },
        ],
    }));
    let first = server.post("/v1/responses", &markers(json!({}))).json();
    let mut input = vec![json!({ "role": "user", "content": "go" })];
    input.extend(first["output"].as_array().unwrap().clone());
    input.push(json!({ "role": "user", "content": [{ "type": "input_text", "text": "on" }] }));
    let body = json!({ "input": input, "instructions": "kind" });
    let second = server.post("/v1/responses", &body).json();
    assert_eq!(second["output"][0]["content"][0]["text"], "good", "{second}");
}

#[test]
fn inputs_of_every_wrong_form_are_refused() {
    let server = Server::saying(json!({ "text": "ok" }));
    for (input, param) in [
        (json!(null), "input"),
        (json!({}), "input"),
        (json!([{ "role": "user" }]), "input[0].content"),
        (json!([{ "role": "tool", "content": "x" }]), "input[0].role"),
        (json!([{ "content": "x" }]), "input[0].role"),
        (json!([{ "role": "user", "content": "x", "name": "n", "x": 1 }]), "input[0].x"),
        (json!([{ "type": "function_call", "name": "f" }]), "input[0].call_id"),
        (json!([{ "type": "computer_call" }]), "input[0]"),
        (json!([{ "type": "reasoning", "content": [] }]), "input[0]"),
        (json!([{ "type": "reasoning", "content": [5] }]), "input[0].content"),
        (json!([{ "type": "reasoning", "encrypted_content": "x" }]), "input[0].encrypted_content"),
        (
            json!([{ "role": "user", "content": [{ "type": "input_image", "image_url": "x" }] }]),
            "input[0].content[0]",
        ),
    ] {
        let reply = server.post("/v1/responses", &json!({ "input": input }));
        assert_eq!(reply.status, 400, "{input} {reply:?}");
        assert_eq!(reply.json()["error"]["param"], param, "{input} {reply:?}");
    }
    let body = ask(json!({ "stream": true, "stream_options": { "include_usage": true } }));
    assert_eq!(server.post("/v1/responses", &body).status, 400);
}
