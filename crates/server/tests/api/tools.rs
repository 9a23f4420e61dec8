//! Calls of tools: asked for in each API's words, held, told apart from text, and sent back.

use serde_json::{Value, json};

use crate::support::{Reply, Server};

fn chat(fields: &Value) -> Value {
    asked(&json!({ "messages": [{ "role": "user", "content": "go" }] }), fields)
}

fn input(fields: &Value) -> Value {
    asked(&json!({ "input": "go" }), fields)
}

fn message(fields: &Value) -> Value {
    asked(&json!({ "messages": [{ "role": "user", "content": "go" }], "max_tokens": 500 }), fields)
}

/// A body with these fields in it.
fn asked(least: &Value, fields: &Value) -> Value {
    let mut body = least.clone();
    body["temperature"] = json!(0);
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// A model whose template has a form for calls, and which says this.
fn caller(text: &str) -> Server {
    Server::of(&json!({
        "template": "{% if tools %}{% for t in tools %}{{ t.function.name }} as <tool_call> {% endfor %}\
                     {% endif %}{% for m in messages %}{{ m.content }}{% endfor %}<|assistant|>",
        "answers": [{ "text": text }],
    }))
}

fn tools() -> Value {
    let parameters = json!({
        "type": "object",
        "properties": { "city": { "enum": ["Ulm", "Bonn"] } },
        "required": ["city"],
        "additionalProperties": false,
    });
    json!([
        { "type": "function", "function": { "name": "clock" } },
        { "type": "function", "function": { "name": "weather", "parameters": parameters, "strict": true } },
    ])
}

const CALL: &str =
    "<tool_call>\n{\"name\":\"weather\",\"arguments\":{\"city\":\"Bonn\"}}\n</tool_call>";

#[test]
fn a_call_is_held_and_told_apart_from_text() {
    for (said, choice) in [(CALL, "required"), (CALL, "auto"), ("It rains.", "auto")] {
        let server = caller(said);
        let fields =
            json!({ "tools": tools(), "tool_choice": choice, "parallel_tool_calls": false });
        let answer = server.post("/v1/chat/completions", &chat(&fields));
        assert_eq!(answer.status, 200, "{answer:?}");
        let answer = answer.json();
        let message = &answer["choices"][0]["message"];
        if said == CALL {
            assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls", "{answer}");
            assert_eq!(message["content"], Value::Null, "{answer}");
            let call = &message["tool_calls"][0];
            assert_eq!(
                (&call["type"], &call["function"]["name"]),
                (&json!("function"), &json!("weather"))
            );
            assert_eq!(call["function"]["arguments"], r#"{"city":"Bonn"}"#);
        } else {
            assert_eq!(message["content"], said, "{answer}");
            assert_eq!(message["tool_calls"], Value::Null);
        }
        let mut streamed = chat(&fields);
        streamed["stream"] = json!(true);
        let events = server.post("/v1/chat/completions", &streamed).events();
        let deltas: Vec<&Value> =
            events.iter().map(|event| &event["choices"][0]["delta"]).collect();
        let text: String = deltas.iter().filter_map(|delta| delta["content"].as_str()).collect();
        let calls: Vec<&Value> = deltas
            .iter()
            .filter_map(|delta| delta["tool_calls"].as_array())
            .flatten()
            .map(|call| &call["function"])
            .collect();
        let want: Vec<&Value> = message["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|call| &call["function"])
            .collect();
        assert_eq!(calls, want);
        assert_eq!(text, message["content"].as_str().unwrap_or_default());
    }
}

#[test]
fn a_named_tool_is_called_whatever_the_model_would_say() {
    let server = caller("It rains.");
    let named = json!({ "type": "function", "function": { "name": "clock" } });
    let fields = json!({ "tools": tools(), "tool_choice": named });
    let answer = server.post("/v1/chat/completions", &chat(&fields)).json();
    let call = &answer["choices"][0]["message"]["tool_calls"][0]["function"];
    assert_eq!(call, &json!({ "name": "clock", "arguments": "{}" }), "{answer}");
}

#[test]
fn tools_that_cannot_be_called_are_refused() {
    let refused = |server: &Server, fields: &Value, param: &str, want: &str| {
        let reply = server.post("/v1/chat/completions", &chat(fields));
        assert_eq!(reply.status, 400, "{fields} {reply:?}");
        let error = &reply.json()["error"];
        assert_eq!(error["param"], param, "{error}");
        assert!(error["message"].as_str().unwrap().contains(want), "{error}");
    };
    let plain = Server::saying(json!({ "text": "x" }));
    refused(&plain, &json!({ "tools": tools() }), "tools", "has no form for calls");
    let calling = caller("x");
    let other = json!({ "type": "function", "function": { "name": "other" } });
    refused(
        &calling,
        &json!({ "tools": tools(), "tool_choice": other }),
        "tool_choice",
        "not among `tools`",
    );
    let mut broken = tools();
    broken[1]["function"]["parameters"]["not"] = json!({});
    refused(&calling, &json!({ "tools": broken }), "tools", "#/tools/1/function/parameters");
    refused(&calling, &json!({ "tool_choice": "required" }), "tool_choice", "there are no `tools`");
}

/// The same functions as a response's request has them.
fn flat() -> Value {
    let flat = |tool: &Value| {
        let mut flat = tool["function"].clone();
        flat["type"] = json!("function");
        flat
    };
    tools().as_array().unwrap().iter().map(flat).collect()
}

/// The same functions as a message's request has them.
fn anthropic() -> Value {
    let own = |tool: &Value| {
        let function = &tool["function"];
        let none = json!({ "type": "object", "additionalProperties": false });
        let schema = function.get("parameters").unwrap_or(&none);
        let strict = &function["strict"];
        json!({ "name": function["name"], "input_schema": schema, "strict": strict })
    };
    tools().as_array().unwrap().iter().map(own).collect()
}

/// The events' names and indices.
fn shape(reply: &Reply) -> Vec<String> {
    let name = |event: &Value| {
        let name = event["delta"]["type"].as_str().or(event["type"].as_str()).unwrap();
        let name = name.trim_start_matches("response.");
        let index = event["output_index"].as_u64().or(event["index"].as_u64());
        index.map_or(name.to_owned(), |index| format!("{index} {name}"))
    };
    let mut shape: Vec<String> = reply.events().iter().map(name).collect();
    shape.dedup();
    shape
}

#[test]
fn a_response_calls() {
    let server = caller(&format!("Look.\n{CALL}"));
    let fields = json!({ "tools": flat(), "parallel_tool_calls": false });
    let reply = server.post("/v1/responses", &input(&fields));
    assert_eq!(reply.status, 200, "{reply:?}");
    let answer = reply.json();
    assert_eq!((&answer["status"], &answer["tool_choice"]), (&json!("completed"), &json!("auto")));
    assert_eq!(answer["parallel_tool_calls"], false);
    assert_eq!(answer["tools"][1]["name"], "weather", "{answer}");
    assert_eq!(answer["tools"][0]["parameters"], Value::Null, "{answer}");
    let output = answer["output"].as_array().unwrap();
    assert_eq!(output[0]["content"][0]["text"], "Look.", "{answer}");
    let mut call = output[1].clone();
    for (name, prefix) in [("id", "fc_resp"), ("call_id", "call_")] {
        let id = call.as_object_mut().unwrap().remove(name).unwrap();
        assert!(id.as_str().unwrap().starts_with(prefix), "{id}");
    }
    let arguments = r#"{"city":"Bonn"}"#;
    let want = json!({
        "type": "function_call", "name": "weather", "arguments": arguments, "status": "completed",
    });
    assert_eq!((call, output.len()), (want, 2));
    let mut streamed = input(&fields);
    streamed["stream"] = json!(true);
    let reply = server.post("/v1/responses", &streamed);
    let shape = shape(&reply);
    let item = shape.iter().position(|name| name == "1 output_item.added").unwrap();
    assert_eq!(
        shape[item..],
        [
            "1 output_item.added",
            "1 function_call_arguments.delta",
            "1 function_call_arguments.done",
            "1 output_item.done",
            "completed",
        ]
    );
    let events = reply.events();
    let of = |name: &str| events.iter().find(|event| event["type"] == name).unwrap();
    assert_eq!(of("response.function_call_arguments.delta")["delta"], arguments);
    let done = of("response.function_call_arguments.done");
    assert_eq!((&done["name"], &done["arguments"]), (&json!("weather"), &json!(arguments)));
    let last = &events.last().unwrap()["response"]["output"][1];
    assert_eq!(done["item_id"], last["id"]);
    assert_eq!(last["arguments"], arguments);
}

#[test]
fn a_message_calls() {
    let server = caller(&format!("Look.\n{CALL}"));
    let fields = json!({ "tools": anthropic() });
    let reply = server.post("/v1/messages", &message(&fields));
    assert_eq!(reply.status, 200, "{reply:?}");
    let answer = reply.json();
    assert_eq!(answer["stop_reason"], "tool_use", "{answer}");
    assert_eq!(answer["content"][0]["text"], "Look.", "{answer}");
    let call = &answer["content"][1];
    assert_eq!((&call["type"], &call["name"]), (&json!("tool_use"), &json!("weather")));
    assert_eq!(call["input"], json!({ "city": "Bonn" }));
    assert!(call["id"].as_str().unwrap().starts_with("toolu_"), "{call}");
    let mut streamed = message(&fields);
    streamed["stream"] = json!(true);
    let reply = server.post("/v1/messages", &streamed);
    let shape = shape(&reply);
    let block = shape.iter().position(|name| name == "1 content_block_start").unwrap();
    assert_eq!(
        shape[block..],
        [
            "1 content_block_start",
            "1 input_json_delta",
            "1 content_block_stop",
            "message_delta",
            "message_stop",
        ]
    );
    let events = reply.events();
    let start = events.iter().filter(|event| event["type"] == "content_block_start").nth(1);
    let block = &start.unwrap()["content_block"];
    assert_eq!((&block["name"], &block["input"]), (&json!("weather"), &json!({})));
    let delta = events.iter().find(|event| event["delta"]["type"] == "input_json_delta").unwrap();
    assert_eq!(delta["delta"]["partial_json"], r#"{"city":"Bonn"}"#);
    let delta = events.iter().find(|event| event["type"] == "message_delta").unwrap();
    assert_eq!(delta["delta"]["stop_reason"], "tool_use");
}

#[test]
fn a_choice_of_tools_is_held_in_every_api() {
    let server = caller("It rains.");
    let named = json!({ "type": "function", "name": "clock" });
    let fields = json!({ "tools": flat(), "tool_choice": named });
    let answer = server.post("/v1/responses", &input(&fields)).json();
    assert_eq!(answer["output"][0]["name"], "clock", "{answer}");
    assert_eq!(answer["output"].as_array().unwrap().len(), 1, "{answer}");
    let named = json!({ "type": "tool", "name": "clock", "disable_parallel_tool_use": true });
    let fields = json!({ "tools": anthropic(), "tool_choice": named });
    let answer = server.post("/v1/messages", &message(&fields)).json();
    assert_eq!(answer["content"][0]["name"], "clock", "{answer}");
    assert_eq!(answer["content"].as_array().unwrap().len(), 1, "{answer}");
    // Where none may be called, the template is told of none, and another form may stand beside.
    let none = json!({ "tools": flat(), "tool_choice": "none" });
    let answer = server.post("/v1/responses", &input(&none)).json();
    assert_eq!(answer["output"][0]["content"][0]["text"], "It rains.", "{answer}");
    let fields = json!({ "tools": tools(), "tool_choice": "none", "guided_choice": ["a"] });
    let answer = server.post("/v1/chat/completions", &chat(&fields)).json();
    assert_eq!(answer["choices"][0]["message"]["content"], "a", "{answer}");
}

#[test]
fn logprobs_of_text_before_a_call_are_the_texts() {
    let server = caller(&format!("Look.\n{CALL}"));
    let mut body = input(&json!({ "tools": flat(), "parallel_tool_calls": false }));
    body["include"] = json!(["message.output_text.logprobs"]);
    for streams in [false, true] {
        body["stream"] = json!(streams);
        let reply = server.post("/v1/responses", &body);
        let answer = match streams {
            true => reply.events().last().unwrap()["response"].clone(),
            false => reply.json(),
        };
        let logprobs = answer["output"][0]["content"][0]["logprobs"].as_array().unwrap();
        let told: String = logprobs.iter().filter_map(|line| line["token"].as_str()).collect();
        assert_eq!(told, "Look.", "{answer}");
    }
}

/// A model whose template shows every turn, and which says this to a conversation that reads so.
fn hears(when: &str) -> Server {
    Server::of(&json!({
        "template": "{% for m in messages %}[{{ m.role }}:{{ m.reasoning_content }}:{{ m.content }}\
                     {% for c in m.tool_calls %} {{ c.function.name }}{{ c.function.arguments | tojson }}\
                     {% endfor %}]{% endfor %}{# <tool_call> #}",
        "answers": [{ "when": when, "text": "good" }, { "text": "bad" }],
    }))
}

const TURNS: &str = "[user::go][assistant:so:Look. weather{\"city\": \"Bonn\"} clock{}]\
                     [tool::rain][tool::Error: late]";

#[test]
fn calls_and_their_results_are_sent_back_in_every_api() {
    let server = hears(TURNS);
    let function = |id: &str, name: &str, arguments: &str| {
        let function = json!({ "name": name, "arguments": arguments });
        json!({ "id": id, "type": "function", "function": function })
    };
    let arguments = r#"{"city":"Bonn"}"#;
    let calls = [function("a", "weather", arguments), function("b", "clock", "")];
    let turns = json!([
        { "role": "user", "content": "go" },
        { "role": "assistant", "content": "Look.", "reasoning_content": "so", "tool_calls": calls },
        { "role": "tool", "tool_call_id": "a", "content": "rain" },
        { "role": "tool", "tool_call_id": "b", "content": "Error: late" },
    ]);
    let reply = server.post("/v1/chat/completions", &json!({ "messages": turns }));
    assert_eq!(reply.json()["choices"][0]["message"]["content"], "good", "{reply:?}");
    let turns = json!([
        { "role": "user", "content": "go" },
        { "type": "reasoning", "summary": [], "content": [{ "type": "reasoning_text", "text": "so" }] },
        { "role": "assistant", "content": "Look." },
        { "type": "function_call", "call_id": "a", "name": "weather", "arguments": arguments },
        { "type": "function_call", "id": "fc_1", "call_id": "b", "name": "clock", "arguments": "{}",
          "status": "completed" },
        { "type": "function_call_output", "call_id": "a", "output": "rain" },
        { "type": "function_call_output", "call_id": "b",
          "output": [{ "type": "input_text", "text": "Error: late" }] },
    ]);
    let reply = server.post("/v1/responses", &json!({ "input": turns }));
    assert_eq!(reply.json()["output"][0]["content"][0]["text"], "good", "{reply:?}");
    let turns = json!([
        { "role": "user", "content": "go" },
        { "role": "assistant", "content": [
            { "type": "thinking", "thinking": "so", "signature": "" },
            { "type": "text", "text": "Look." },
            { "type": "tool_use", "id": "a", "name": "weather", "input": { "city": "Bonn" } },
            { "type": "tool_use", "id": "b", "name": "clock", "input": {} },
        ] },
        { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "a", "content": "rain" },
            { "type": "tool_result", "tool_use_id": "b", "is_error": true,
              "content": [{ "type": "text", "text": "late" }] },
        ] },
    ]);
    let reply = server.post("/v1/messages", &json!({ "messages": turns, "max_tokens": 9 }));
    assert_eq!(reply.json()["content"][0]["text"], "good", "{reply:?}");
}

#[test]
fn what_is_said_before_and_after_a_result_keeps_its_place() {
    let server = hears("[assistant:: clock{}][user::first][tool::7][user::then]");
    let turns = json!([
        { "role": "assistant", "content": [
            { "type": "tool_use", "id": "a", "name": "clock", "input": {} },
        ] },
        { "role": "user", "content": [
            { "type": "text", "text": "first" },
            { "type": "tool_result", "tool_use_id": "a", "content": "7" },
            { "type": "text", "text": "then" },
        ] },
    ]);
    let reply = server.post("/v1/messages", &json!({ "messages": turns, "max_tokens": 9 }));
    assert_eq!(reply.json()["content"][0]["text"], "good", "{reply:?}");
}

#[test]
fn conversations_with_calls_of_every_wrong_form_are_refused() {
    let server = hears("");
    let chat = |call: Value| {
        let turn = json!({ "role": "assistant", "tool_calls": [call] });
        ("/v1/chat/completions", json!({ "messages": [turn] }))
    };
    let response = |item: Value| ("/v1/responses", json!({ "input": [item] }));
    let blocks = |role: &str, block: Value| {
        let turn = json!({ "role": role, "content": [block] });
        ("/v1/messages", json!({ "max_tokens": 9, "messages": [turn] }))
    };
    let call = |arguments: Value| json!({ "function": { "name": "f", "arguments": arguments } });
    for ((path, body), param) in [
        (chat(json!(5)), "messages[0].tool_calls[0]"),
        (chat(json!({ "type": "custom" })), "messages[0].tool_calls[0]"),
        (chat(json!({ "function": {} })), "messages[0].tool_calls[0].function.name"),
        (chat(call(json!("{"))), "messages[0].tool_calls[0].function.arguments"),
        (chat(call(json!("[]"))), "messages[0].tool_calls[0].function.arguments"),
        (response(json!({ "type": "function_call", "call_id": "a" })), "input[0].name"),
        (response(json!({ "type": "function_call", "name": "a" })), "input[0].call_id"),
        (
            response(json!({ "type": "function_call", "name": "a", "call_id": "a",
                             "arguments": "x" })),
            "input[0].arguments",
        ),
        (
            response(json!({ "type": "function_call_output", "call_id": "a", "output": "x" })),
            "input[0].call_id",
        ),
        (response(json!({ "type": "function_call_output", "call_id": "a" })), "input[0].output"),
        (response(json!({ "type": "web_search_call" })), "input[0]"),
        (
            blocks("user", json!({ "type": "tool_use", "id": "a", "name": "f", "input": {} })),
            "messages[0].content[0]",
        ),
        (
            blocks("assistant", json!({ "type": "tool_use", "id": "a", "name": "f" })),
            "messages[0].content[0].input",
        ),
        (
            blocks("assistant", json!({ "type": "tool_use", "id": "a", "name": "f", "input": {} })),
            "messages[0]",
        ),
        (
            blocks("user", json!({ "type": "tool_result", "tool_use_id": "a", "content": "x" })),
            "messages[0].content[0].tool_use_id",
        ),
        (
            blocks("user", json!({ "type": "tool_result", "tool_use_id": "a", "is_error": 1 })),
            "messages[0].content[0].is_error",
        ),
    ] {
        let reply = server.post(path, &body);
        assert_eq!(reply.status, 400, "{body} {reply:?}");
        assert_eq!(reply.json()["error"]["param"], param, "{body} {reply:?}");
        assert!(reply.message().contains(&format!("`{param}`")), "{reply:?}");
    }
    assert!(server.is_alive());
}

#[test]
fn arguments_that_cannot_be_read_say_why() {
    let server = hears("");
    let arguments = |text: &str| {
        let call = json!({ "function": { "name": "f", "arguments": text } });
        let turn = json!({ "role": "assistant", "tool_calls": [call] });
        ("/v1/chat/completions", json!({ "messages": [turn] }))
    };
    let item = |text: &str| {
        let item =
            json!({ "type": "function_call", "name": "a", "call_id": "a", "arguments": text });
        ("/v1/responses", json!({ "input": [item] }))
    };
    let nested = format!("{{\"a\":{}1{}}}", "[".repeat(200), "]".repeat(200));
    for ((path, body), reason) in [
        (arguments("{\"a\":1e999}"), "cannot be read as JSON: number out of range"),
        (arguments(&nested), "cannot be read as JSON: recursion limit exceeded"),
        (arguments("{"), "cannot be read as JSON: EOF"),
        (arguments("[]"), "must be the text of a JSON object"),
        (item("{\"a\":1e999}"), "cannot be read as JSON: number out of range"),
        (item(&nested), "cannot be read as JSON: recursion limit exceeded"),
    ] {
        let reply = server.post(path, &body);
        assert_eq!(reply.status, 400, "{body} {reply:?}");
        assert!(reply.message().contains(reason), "{reason}: {reply:?}");
    }
}

#[test]
fn a_form_beside_tools_is_refused_in_the_words_of_the_request() {
    let format = json!({ "type": "json_object" });
    let (asked, text) = (json!({ "tools": tools() }), json!({ "format": format }));
    for (path, name, mut body) in [
        ("/v1/chat/completions", "response_format", chat(&asked)),
        ("/v1/responses", "text.format", input(&json!({ "tools": flat() }))),
    ] {
        match name {
            "response_format" => body[name] = format.clone(),
            _ => body["text"] = text.clone(),
        }
        let reply = caller("x").post(path, &body);
        assert_eq!(reply.status, 400, "{reply:?}");
        let want = format!("`{name}` and `tools` are both set");
        assert!(reply.message().contains(&want), "{reply:?}");
        assert_eq!(reply.json()["error"]["param"], name, "{reply:?}");
    }
}

#[test]
fn a_type_that_is_missing_is_said_to_be() {
    let server = caller("x");
    let parts = json!([{ "role": "user", "content": [{ "text": "a" }] }]);
    for (body, param) in [
        (chat(&json!({ "tools": [{}] })), "tools[0].type"),
        (chat(&json!({ "response_format": {} })), "response_format.type"),
        (json!({ "messages": parts }), "messages[0].content[0].type"),
    ] {
        let reply = server.post("/v1/chat/completions", &body);
        let want = format!("`{param}` is missing");
        assert!(reply.status == 400 && reply.message().contains(&want), "{reply:?}");
        assert_eq!(reply.json()["error"]["param"], param, "{reply:?}");
    }
}

#[test]
fn names_that_are_cut_are_said_to_be() {
    let server = caller("x");
    let long = "n".repeat(70);
    let shown = format!("{}…", "n".repeat(64));
    let tool = json!([{ "type": "function", "function": { "name": long } }]);
    let choice = json!({ "type": "function", "function": { "name": long } });
    for (fields, want) in [
        (json!({ "tools": tool }), format!("\"{shown}\" of 70 characters")),
        (json!({ "tools": tools(), "tool_choice": choice }), format!("`{shown}`")),
        (json!({ "tools": [{ "type": long }] }), format!("`{shown}`")),
        (json!({ "response_format": { "type": long } }), format!("`{shown}`")),
        (json!({ "model": long }), format!("`{shown}`")),
    ] {
        let reply = server.post("/v1/chat/completions", &chat(&fields));
        assert!(reply.message().contains(&want), "{want}: {reply:?}");
    }
}

#[test]
fn tools_are_refused_with_places_as_the_request_has_them() {
    let calling = caller("x");
    let refused = |path: &str, body: &Value, want: &str| {
        let reply = calling.post(path, body);
        assert_eq!(reply.status, 400, "{body} {reply:?}");
        assert_eq!(reply.json()["error"]["param"], "tools", "{reply:?}");
        assert!(reply.message().contains(want), "{want}: {reply:?}");
    };
    let mut broken = flat();
    broken[1]["parameters"]["not"] = json!({});
    refused("/v1/responses", &input(&json!({ "tools": broken })), " #/tools/1/parameters");
    let mut broken = anthropic();
    broken[1]["input_schema"]["not"] = json!({});
    refused("/v1/messages", &message(&json!({ "tools": broken })), " #/tools/1/input_schema");
    let counted = json!({ "messages": [{ "role": "user", "content": "go" }], "tools": broken });
    refused("/v1/messages/count_tokens", &counted, " #/tools/1/input_schema");
    let odd = json!([{ "name": "a b\n\u{0}", "input_schema": {} }]);
    refused("/v1/messages", &message(&json!({ "tools": odd })), "`tools[0].name` is no name");
    let twice = json!([{ "type": "function", "name": "f" }, { "type": "function", "name": "f" }]);
    refused("/v1/responses", &input(&json!({ "tools": twice })), "two tools");
    let mut free = anthropic();
    free[1]["strict"] = json!(false);
    free[1]["input_schema"]["not"] = json!({});
    let answer = calling.post("/v1/messages", &message(&json!({ "tools": free }))).json();
    let warning = answer["causeway"]["warnings"][0].as_str().unwrap();
    let want = "the arguments of `weather` are any object, because of #/tools/1/input_schema/not: ";
    assert!(warning.starts_with(want), "{warning}");
    for schema in [json!({ "type": "string" }), json!({ "anyOf": [{ "type": "null" }] })] {
        let tool = json!([{ "name": "f", "input_schema": schema, "strict": true }]);
        refused(
            "/v1/messages",
            &message(&json!({ "tools": tool })),
            " #/tools/0/input_schema: must",
        );
    }
}

#[test]
fn tools_are_counted_with_the_prompt() {
    let server = caller("x");
    let mut body = message(&json!({ "tools": anthropic() }));
    let usage = server.post("/v1/messages", &body).json()["usage"].clone();
    body.as_object_mut().unwrap().retain(|name, _| name == "messages" || name == "tools");
    let counted = server.post("/v1/messages/count_tokens", &body).json();
    let cached = usage["cache_read_input_tokens"].as_u64().unwrap();
    assert_eq!(counted["input_tokens"], usage["input_tokens"].as_u64().unwrap() + cached);
}
