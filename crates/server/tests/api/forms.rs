//! Answers of a set form: asked for in each API's words, held, laid ahead, accounted by field.

use causeway_policy::PolicyFile;
use serde_json::{Value, json};

use crate::support::{Server, options, script};

const ANSWER: &str = r#"{"verdict":"no","n":7}"#;

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": { "verdict": { "enum": ["yes", "no"] }, "n": { "type": "integer" } },
        "required": ["verdict", "n"],
        "additionalProperties": false,
    })
}

/// A model that would say the answer, and then go on for ever.
fn server() -> Server {
    Server::saying(json!({ "text": format!("{ANSWER} and so on, and so on, and so on") }))
}

fn format() -> Value {
    json!({ "type": "json_schema", "json_schema": { "name": "ticket", "schema": schema() } })
}

fn chat(fields: &Value) -> Value {
    let mut body = json!({ "messages": [{ "role": "user", "content": "go" }], "temperature": 0 });
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

fn content(answer: &Value) -> &str {
    answer["choices"][0]["message"]["content"].as_str().unwrap()
}

#[test]
fn a_schema_is_held_laid_ahead_and_accounted_by_field() {
    let server = server();
    let answer =
        server.post("/v1/chat/completions", &chat(&json!({ "response_format": format() })));
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = answer.json();
    assert_eq!(content(&answer), ANSWER);
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    let choice = &answer["causeway"]["choices"][0];
    assert_eq!(choice["stop"]["reason"], "schema_complete", "{choice}");
    let count = |part: &str, name: &str| choice[part][name].as_u64().unwrap();
    // Every token is a byte here; chosen are the letter of the verdict, the digit, and its end.
    assert_eq!(count("tokens", "completion"), ANSWER.len() as u64);
    assert_eq!(count("tokens", "forced"), ANSWER.len() as u64 - 3, "{choice}");
    assert!(count("passes", "decode") <= 3, "{choice}");
    let fields = choice["fields"].as_array().unwrap();
    let of = |path: &str| fields.iter().find(|field| field["path"] == path).unwrap();
    assert_eq!(of("/verdict")["chosen"], 1, "{choice}");
    let sum = |name: &str| fields.iter().map(|f| f[name].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("chosen") + sum("forced"), ANSWER.len() as u64);
    assert_eq!(sum("decode_passes"), count("passes", "decode"));
    assert_eq!(choice["open_field"], Value::Null);
}

#[test]
fn without_fast_forward_the_answer_is_the_same() {
    let mut options = options(vec![script(&json!({ "answers": [{ "text": ANSWER }] }))]);
    options.sizing.limits.fast_forward = false;
    let server = Server::start(options);
    let body = chat(&json!({ "response_format": format() }));
    let answer = server.post("/v1/chat/completions", &body).json();
    assert_eq!(content(&answer), ANSWER);
    let choice = &answer["causeway"]["choices"][0];
    assert_eq!(choice["tokens"]["forced"], ANSWER.len() - 3, "{choice}");
    assert_eq!(choice["passes"]["decode"], ANSWER.len() - 1, "{choice}");
}

#[test]
fn each_api_asks_in_its_own_words() {
    let server = server();
    let said = |path: &str, body: &Value, at: &str, want: &str| {
        let reply = server.post(path, body);
        assert_eq!(reply.status, 200, "{body} {reply:?}");
        let answer = reply.json();
        assert_eq!(answer.pointer(at).and_then(Value::as_str), Some(want), "{body} {answer}");
    };
    let chat_at = "/choices/0/message/content";
    for fields in [
        json!({ "response_format": { "type": "json_object", "schema": schema() } }),
        json!({ "guided_json": schema() }),
        json!({ "guided_json": schema().to_string() }),
        json!({ "structured_outputs": { "json": schema() } }),
        json!({ "guided_regex": r#"\{"verdict":"no","n":[0-9]\}"# }),
        json!({ "guided_choice": [ANSWER, "another"] }),
        json!({ "structured_outputs": { "choice": [ANSWER, "another"] } }),
        json!({ "guided_grammar": "start: /\\{\"verdict\":\"no\",\"n\":[0-9]\\}/" }),
    ] {
        said("/v1/chat/completions", &chat(&fields), chat_at, ANSWER);
    }
    // Whatever the model would say, one of these it says.
    let choice = json!({ "guided_choice": ["alpha"] });
    said("/v1/chat/completions", &chat(&choice), chat_at, "alpha");
    let prompt =
        json!({ "prompt": "go", "temperature": 0, "guided_json": schema(), "max_tokens": 99 });
    said("/v1/completions", &prompt, "/choices/0/text", ANSWER);
    let mut text = json!({ "input": "go", "temperature": 0 });
    text["text"] = json!({ "format": { "type": "json_schema", "name": "t", "schema": schema() } });
    said("/v1/responses", &text, "/output/0/content/0/text", ANSWER);
    said("/v1/responses", &text, "/text/format/name", "t");
}

#[test]
fn a_streamed_answer_is_the_whole_one() {
    let server = server();
    for choices in [1, 3] {
        let fields = json!({ "response_format": format(), "stream": true, "n": choices });
        let reply = server.post("/v1/chat/completions", &chat(&fields));
        assert_eq!(reply.status, 200);
        for index in 0..choices {
            let mine = reply.events().into_iter().flat_map(|event| {
                let choices = event["choices"].as_array().cloned().unwrap_or_default();
                choices.into_iter().filter(|choice| choice["index"] == index).collect::<Vec<_>>()
            });
            let text: String = mine
                .filter_map(|choice| choice["delta"]["content"].as_str().map(str::to_owned))
                .collect();
            assert_eq!(text, ANSWER, "{index}");
        }
    }
}

#[test]
fn what_is_cut_says_which_field_was_open() {
    let server = server();
    let fields = json!({ "response_format": format(), "max_tokens": 14 });
    let answer = server.post("/v1/chat/completions", &chat(&fields)).json();
    assert_eq!(content(&answer), &ANSWER[..14]);
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    assert_eq!(answer["causeway"]["choices"][0]["open_field"], "/verdict", "{answer}");
}

#[test]
fn a_form_that_cannot_be_held_is_refused_with_its_place() {
    let server = server();
    let refused = |fields: &Value, param: &str, want: &str| {
        let reply = server.post("/v1/chat/completions", &chat(fields));
        assert_eq!(reply.status, 400, "{fields} {reply:?}");
        let error = &reply.json()["error"];
        assert_eq!(error["param"], param, "{fields} {error}");
        assert!(error["message"].as_str().unwrap().contains(want), "{fields} {error}");
        assert!(server.is_alive());
    };
    let with_not =
        json!({ "type": "object", "properties": { "a": { "not": { "type": "null" } } } });
    let named = |schema: &Value| json!({ "response_format": { "type": "json_schema", "json_schema": { "schema": schema } } });
    refused(&named(&with_not), "response_format", "#/properties/a/not");
    refused(
        &named(&json!({ "type": "object", "x-guidance": {} })),
        "response_format",
        "x-guidance",
    );
    refused(&named(&json!(7)), "response_format.json_schema.schema", "must be a JSON schema");
    let no_schema = json!({ "response_format": { "type": "json_schema" } });
    refused(&no_schema, "response_format.json_schema", "is missing");
    let xml = json!({ "response_format": { "type": "xml" } });
    refused(&xml, "response_format", "has the type `xml`");
    let more = json!({ "response_format": { "type": "text", "more": 1 } });
    refused(&more, "response_format.more", "is not known here");
    refused(&json!({ "guided_regex": "(" }), "guided_regex", "cannot be compiled");
    refused(&json!({ "guided_choice": [""] }), "guided_choice", "empty");
    let two = json!({ "guided_regex": "a", "guided_choice": ["a"] });
    refused(&two, "guided_regex", "an answer has one form");
    let prefill = json!({
        "messages": [{ "role": "user", "content": "go" }, { "role": "assistant", "content": "Well" }],
        "continue_final_message": true,
        "response_format": format(),
    });
    let reply = server.post("/v1/chat/completions", &prefill);
    assert_eq!(reply.status, 400);
    assert!(reply.json()["error"]["message"].as_str().unwrap().contains("prefill breaks"));
}

#[test]
fn a_form_begins_behind_a_thought_whose_marker_is_several_tokens() {
    // Every letter is a token of its own here.
    let said = format!("<think>so</think>{ANSWER} and so on");
    let server = Server::saying(json!({ "text": said }));
    let markers = json!(["<think>", "</think>"]);
    let fields = json!({ "response_format": format(), "reasoning_markers": markers });
    let answer = server.post("/v1/chat/completions", &chat(&fields)).json();
    assert_eq!(content(&answer), ANSWER, "{answer}");
    assert_eq!(answer["choices"][0]["message"]["reasoning_content"], "so", "{answer}");
    let choice = &answer["causeway"]["choices"][0];
    let fields = choice["fields"].as_array().unwrap();
    let sum = |name: &str| fields.iter().map(|field| field[name].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("chosen") + sum("forced"), ANSWER.len() as u64, "{choice}");
    let mut streamed = chat(&json!({ "response_format": format(), "stream": true }));
    streamed["reasoning_markers"] = markers;
    let reply = server.post("/v1/chat/completions", &streamed);
    assert_eq!(
        (reply.streamed(), reply.streamed_reasoning()),
        (ANSWER.to_owned(), "so".to_owned())
    );
}

#[test]
fn a_form_goes_on_behind_a_prefill() {
    let server = Server::saying(json!({ "text": r#""no","n":7}"# }));
    let body = json!({
        "messages": [
            { "role": "user", "content": "go" },
            { "role": "assistant", "content": r#"{"verdict":"# },
        ],
        "continue_final_message": true,
        "temperature": 0,
        "response_format": format(),
    });
    let answer = server.post("/v1/chat/completions", &body).json();
    assert_eq!(content(&answer), r#""no","n":7}"#, "{answer}");
}

#[test]
fn keywords_without_effect_are_warnings() {
    let server = server();
    let mut schema = schema();
    schema["x-ui"] = json!("wide");
    let fields = json!({ "guided_json": schema });
    let answer = server.post("/v1/chat/completions", &chat(&fields)).json();
    assert_eq!(answer["causeway"]["warnings"], json!(["`x-ui` at #/x-ui has no effect"]));
}

#[test]
fn a_policy_may_fix_the_form_and_a_request_fill_it_where_it_is_free() {
    let served = |toml: &str| {
        let answer = json!({ "text": format!("{ANSWER} and so on") });
        let mut options = options(vec![script(&json!({ "answers": [answer] }))]);
        options.policy = Some(PolicyFile::from_toml(&format!("schema = 1\n{toml}")).unwrap());
        Server::start(options)
    };
    let fixed = served(&format!("method = \"greedy\"\n[constraints]\nschema = '{}'", schema()));
    let plain = json!({ "messages": [{ "role": "user", "content": "go" }] });
    assert_eq!(content(&fixed.post("/v1/chat/completions", &plain).json()), ANSWER);
    let mut other = plain.clone();
    other["guided_choice"] = json!(["a"]);
    assert_eq!(fixed.post("/v1/chat/completions", &other).status, 400);
    let open = served("method = \"greedy\"");
    let mut asked = plain;
    asked["response_format"] = format();
    assert_eq!(content(&open.post("/v1/chat/completions", &asked).json()), ANSWER);
}

#[test]
fn a_policy_that_leaves_no_token_is_the_callers_mistake() {
    let server = server();
    // The form asks for a byte that the policy forbids.
    let tokens = server.post("/tokenize", &json!({ "content": "no" })).json()["tokens"].clone();
    let fields =
        json!({ "guided_choice": ["no", "nu"], "forbidden_token_ids": [tokens[1], tokens[0]] });
    let reply = server.post("/v1/chat/completions", &chat(&fields));
    let u = server.post("/tokenize", &json!({ "content": "u" })).json()["tokens"].clone();
    let all = json!({ "guided_choice": ["no", "nu"], "forbidden_token_ids": [tokens[1], u[0]] });
    let refused = server.post("/v1/chat/completions", &chat(&all));
    assert_eq!(refused.status, 400, "{refused:?} {reply:?}");
    let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("leaves no token at step 1"), "{message}");
}
