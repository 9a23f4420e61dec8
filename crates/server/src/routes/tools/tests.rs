//! Tools in every API's words: one constraint, and sentences with places as the request has them.

use serde_json::{Value, json};

use super::{Tools, Words};
use crate::fields::Fields;
use crate::fields::chat::CHAT;
use crate::fields::messages::MESSAGES;
use crate::fields::responses::RESPONSES;

fn read(words: Words, body: &Value) -> Result<Tools, String> {
    let table = match words {
        Words::Chat => CHAT,
        Words::Responses => RESPONSES,
        Words::Messages => MESSAGES,
    };
    let fields = Fields::read(table, body.as_object().unwrap());
    let tools = fields.and_then(|fields| Tools::read(words, &fields));
    tools.map_err(|error| format!("{}: {}", error.param.unwrap_or_default(), error.message))
}

fn schema() -> Value {
    json!({ "type": "object", "properties": { "b": {}, "a": {} } })
}

fn chat_tool() -> Value {
    let function =
        json!({ "name": "f", "description": "Does.", "parameters": schema(), "strict": true });
    json!({ "type": "function", "function": function })
}

fn responses_tool() -> Value {
    json!({ "type": "function", "name": "f", "description": "Does.", "parameters": schema(),
            "strict": true, "defer_loading": false, "output_schema": null })
}

fn messages_tool() -> Value {
    json!({ "name": "f", "description": "Does.", "input_schema": schema(), "strict": true,
            "cache_control": { "type": "ephemeral" } })
}

#[test]
fn every_api_asks_for_one_constraint() {
    for (chat, responses, messages) in [
        (json!(null), json!(null), json!(null)),
        (json!("auto"), json!("auto"), json!({ "type": "auto" })),
        (json!("required"), json!("required"), json!({ "type": "any" })),
        (json!("none"), json!("none"), json!({ "type": "none" })),
        (
            json!({ "type": "function", "function": { "name": "f" } }),
            json!({ "type": "function", "name": "f" }),
            json!({ "type": "tool", "name": "f" }),
        ),
    ] {
        let chat =
            read(Words::Chat, &json!({ "tools": [chat_tool()], "tool_choice": chat })).unwrap();
        for (words, tool, choice) in [
            (Words::Responses, responses_tool(), responses),
            (Words::Messages, messages_tool(), messages),
        ] {
            let tools = read(words, &json!({ "tools": [tool], "tool_choice": choice })).unwrap();
            assert_eq!(tools.edit(), chat.edit(), "{words:?} {choice}");
            assert_eq!(tools.told(), chat.told(), "{words:?} {choice}");
        }
    }
}

#[test]
fn parts_of_a_chats_tool_that_ask_for_nothing_are_not_told() {
    let function =
        json!({ "parameters": schema(), "name": "f", "description": null, "strict": false });
    let tool = json!({ "type": "function", "cache_control": { "type": "ephemeral" },
                       "function": function });
    let tools = read(Words::Chat, &json!({ "tools": [tool] })).unwrap();
    let told = tools.told().unwrap().to_string();
    let want = format!(
        r#"[{{"type":"function","function":{{"parameters":{},"name":"f","strict":false}}}}]"#,
        schema()
    );
    assert_eq!(told, want);
}

#[test]
fn several_calls_are_refused_in_each_apis_words() {
    let asked = |words: Words, body: &Value| {
        let edit = read(words, body).unwrap().edit().unwrap();
        edit.value.as_str().unwrap().contains(r#""parallel_tool_calls":false"#)
    };
    let choice = json!({ "type": "any", "disable_parallel_tool_use": true });
    for (words, body, want) in [
        (Words::Chat, json!({ "tools": [chat_tool()], "parallel_tool_calls": false }), true),
        (Words::Chat, json!({ "tools": [chat_tool()] }), false),
        (
            Words::Responses,
            json!({ "tools": [responses_tool()], "parallel_tool_calls": false }),
            true,
        ),
        (Words::Messages, json!({ "tools": [messages_tool()], "tool_choice": choice }), true),
        (Words::Messages, json!({ "tools": [messages_tool()] }), false),
    ] {
        assert_eq!(asked(words, &body), want, "{body}");
    }
}

/// Each is refused in a sentence with this, about this field.
fn check_refused(cases: &[((Words, Value), &str, &str)]) {
    for ((words, body), param, want) in cases {
        let error = read(*words, body).unwrap_err();
        assert!(error.starts_with(&format!("{param}: ")), "{param}: {error}");
        assert!(error.contains(want) && error.contains(&format!("`{param}`")), "{want}: {error}");
    }
}

#[test]
fn what_is_no_tool_is_refused_by_its_place() {
    let responses = |tool: Value| (Words::Responses, json!({ "tools": [responses_tool(), tool] }));
    let messages = |tool: Value| (Words::Messages, json!({ "tools": [messages_tool(), tool] }));
    let chat = |tool: Value| (Words::Chat, json!({ "tools": [chat_tool(), tool] }));
    let of_function = |parts: Value| {
        let mut function = json!({ "name": "g" });
        function.as_object_mut().unwrap().extend(parts.as_object().unwrap().clone());
        chat(json!({ "type": "function", "function": function }))
    };
    check_refused(&[
        ((Words::Chat, json!({ "tools": [{ "type": "custom" }] })), "tools[0]", "`custom`"),
        ((Words::Chat, json!({ "tools": [7] })), "tools[0]", "an object"),
        (
            (Words::Chat, json!({ "tools": [{ "type": "function" }] })),
            "tools[0].function",
            "missing",
        ),
        (responses(json!({ "type": "web_search" })), "tools[1]", "`web_search`"),
        (responses(json!({ "name": "f" })), "tools[1].type", "missing, must be `function`"),
        (responses(json!({ "type": 5 })), "tools[1].type", "is 5, must be `function`"),
        (chat(json!({})), "tools[1].type", "missing, must be `function`"),
        (
            chat(json!({ "type": "function", "strict": true, "function": { "name": "g" } })),
            "tools[1].strict",
            "only `type`, `function`",
        ),
        (of_function(json!({ "description": 5 })), "tools[1].function.description", "is 5"),
        (of_function(json!({ "parameters": "x" })), "tools[1].function.parameters", "an object"),
        (of_function(json!({ "strict": 1 })), "tools[1].function.strict", "is 1"),
        (of_function(json!({ "unheard": 1 })), "tools[1].function.unheard", "not known"),
        (responses(json!({ "type": "function" })), "tools[1].name", "missing"),
        (
            responses(json!({ "type": "function", "name": "g", "parameters": 7 })),
            "tools[1].parameters",
            "7",
        ),
        (
            responses(json!({ "type": "function", "name": "g", "strict": 1 })),
            "tools[1].strict",
            "1",
        ),
        (
            responses(json!({ "type": "function", "name": "g", "defer_loading": true })),
            "tools[1].defer_loading",
            "not known",
        ),
        (messages(json!({ "type": "bash_20250124", "name": "bash" })), "tools[1]", "bash_20250124"),
        (messages(json!({ "name": "g" })), "tools[1].input_schema", "missing"),
        (messages(json!({ "name": 7, "input_schema": {} })), "tools[1].name", "a text"),
        (
            messages(json!({ "name": "g", "input_schema": {}, "parameters": {} })),
            "tools[1].parameters",
            "",
        ),
        ((Words::Responses, json!({ "tools": vec![responses_tool(); 10_000] })), "tools", "10000"),
    ]);
}

#[test]
fn a_choice_of_no_tool_is_refused() {
    let chosen = |words: Words, tool: Value, choice: Value| {
        (words, json!({ "tools": [tool], "tool_choice": choice }))
    };
    check_refused(&[
        (chosen(Words::Chat, chat_tool(), json!("always")), "tool_choice", "always"),
        (
            chosen(Words::Chat, chat_tool(), json!({ "type": "function", "name": "g" })),
            "tool_choice",
            "`g`",
        ),
        (
            chosen(Words::Responses, responses_tool(), json!({ "type": "mcp" })),
            "tool_choice",
            "`mcp`",
        ),
        (
            chosen(Words::Messages, messages_tool(), json!({ "type": "tool" })),
            "tool_choice.name",
            "",
        ),
        (
            chosen(Words::Messages, messages_tool(), json!({ "type": "tool", "name": "é" })),
            "tool_choice",
            "`é`",
        ),
        (
            chosen(
                Words::Messages,
                messages_tool(),
                json!({ "type": "none", "disable_parallel_tool_use": true }),
            ),
            "tool_choice.disable_parallel_tool_use",
            "",
        ),
        (
            (Words::Messages, json!({ "tool_choice": { "type": "any" } })),
            "tool_choice",
            "no `tools`",
        ),
    ]);
}

#[test]
fn a_choice_that_says_too_little_is_refused() {
    let chosen = |words: Words, tool: Value, choice: Value| {
        (words, json!({ "tools": [tool], "tool_choice": choice }))
    };
    check_refused(&[
        (chosen(Words::Chat, chat_tool(), json!({})), "tool_choice.type", "missing"),
        (chosen(Words::Messages, messages_tool(), json!({})), "tool_choice.type", "missing"),
        (
            chosen(Words::Chat, chat_tool(), json!({ "type": "function" })),
            "tool_choice.function.name",
            "missing",
        ),
        (
            chosen(Words::Chat, chat_tool(), json!({ "type": "function", "function": {} })),
            "tool_choice.function.name",
            "missing",
        ),
        (
            chosen(Words::Chat, chat_tool(), json!({ "type": "function", "function": "f" })),
            "tool_choice.function",
            "an object",
        ),
        (
            chosen(
                Words::Chat,
                chat_tool(),
                json!({ "type": "function", "function": { "name": "f", "strict": true } }),
            ),
            "tool_choice.function.strict",
            "only `name`",
        ),
        (
            chosen(Words::Responses, responses_tool(), json!({ "type": "function" })),
            "tool_choice.name",
            "missing",
        ),
    ]);
}

#[test]
fn places_are_those_of_the_request() {
    for (words, sentence, want) in [
        (Words::Chat, "at #/tools/1/function/parameters/a", "at #/tools/1/function/parameters/a"),
        (Words::Responses, "at #/tools/1/function/parameters/a", "at #/tools/1/parameters/a"),
        (
            Words::Messages,
            "at #/tools/12/function/parameters/function/parameters",
            "at #/tools/12/input_schema/function/parameters",
        ),
        (Words::Messages, "`tools[3].function.name` is no name", "`tools[3].name` is no name"),
        (Words::Responses, "`tools[3].function.parameters` is", "`tools[3].parameters` is"),
        (Words::Messages, "`tools[` and `#/tools/`", "`tools[` and `#/tools/`"),
        (Words::Messages, "two tools have the name `f`", "two tools have the name `f`"),
    ] {
        assert_eq!(words.placed(sentence), want);
    }
}
