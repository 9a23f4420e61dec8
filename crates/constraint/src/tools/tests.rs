//! Tools as a request has them, and the answers that they allow.

use serde_json::{Value, json};

use super::{ToolCalls, ToolFormat, read_tools};
use crate::{Constraint, Environment, Limits, accepts, compile};

fn weather() -> Value {
    json!({ "type": "function", "function": {
        "name": "get_weather",
        "description": "Weather of a place.",
        "parameters": {
            "type": "object",
            "properties": { "place": { "$ref": "#/$defs/place" }, "days": { "type": "integer" } },
            "required": ["place"],
            "additionalProperties": false,
            "$defs": { "place": { "type": "string", "minLength": 1 } },
        },
        "strict": true,
    } })
}

fn clock() -> Value {
    json!({ "type": "function", "function": { "name": "clock" } })
}

fn calls(tools: &Value, choice: &Value, format: ToolFormat) -> Option<ToolCalls> {
    read_tools(tools, Some(choice), true, format).unwrap()
}

/// Which answers are allowed.
fn check(calls: ToolCalls, answers: &[(&str, bool)]) {
    let environment = Environment::of_bytes();
    let constraint = Constraint::ToolCalls(calls);
    let plan = compile(&constraint, &environment, &Limits::default()).unwrap();
    for (answer, want) in answers {
        let found = accepts(&mut plan.matcher(), &environment, answer);
        assert_eq!(found.is_ok(), *want, "{answer:?}: {found:?}");
    }
}

const ONE: &str =
    "<tool_call>\n{\"name\":\"get_weather\",\"arguments\":{\"place\":\"Ulm\"}}\n</tool_call>";
const TWO: &str = "<tool_call>\n{\"name\":\"clock\",\"arguments\":{}}\n</tool_call>";

#[test]
fn qwen_answers() {
    let tools = json!([weather(), clock()]);
    let both = format!("{ONE}\n{TWO}");
    let wrong = ONE.replace("\"Ulm\"", "7");
    let (after, told) = (format!("I look. {ONE}"), "It is 9 < 10 {\"a\"} <tool>.");
    let cases = |required: bool| {
        vec![
            (ONE.to_owned(), true),
            (both.clone(), true),
            (wrong.clone(), false),
            (ONE.replace("get_weather", "clock"), false),
            (ONE.replace("</tool_call>", ""), false),
            (after.clone(), !required),
            (told.to_owned(), !required),
            ("<tool_call>".to_owned(), false),
            ("a <tool_call> b".to_owned(), false),
        ]
    };
    for (choice, required) in [("required", true), ("auto", false)] {
        let calls = calls(&tools, &json!(choice), ToolFormat::Qwen).unwrap();
        let cases = cases(required);
        let cases: Vec<(&str, bool)> =
            cases.iter().map(|(text, want)| (text.as_str(), *want)).collect();
        check(calls.clone(), &cases);
        check(ToolCalls { parallel: false, ..calls }, &[(ONE, true), (&both, false)]);
    }
    let named = json!({ "type": "function", "function": { "name": "clock" } });
    check(calls(&tools, &named, ToolFormat::Qwen).unwrap(), &[(ONE, false), (TWO, true)]);
}

#[test]
fn llama_answers() {
    let tools = json!([weather(), clock()]);
    let one = "{\"name\":\"get_weather\",\"parameters\":{\"place\":\"Ulm\",\"days\":3}}";
    let wrong = "{\"name\":\"get_weather\",\"parameters\":{\"days\":3}}";
    for (choice, is_text) in [("required", false), ("auto", true)] {
        check(
            calls(&tools, &json!(choice), ToolFormat::Llama3).unwrap(),
            &[
                (one, true),
                (wrong, false),
                ("{\"name\":\"clock\",\"parameters\":{}}", true),
                ("{\"name\":\"none\",\"parameters\":{}}", false),
                ("The weather is {fine}.", is_text),
                ("{}", false),
            ],
        );
    }
}

#[test]
fn no_call_is_no_constraint() {
    let format = ToolFormat::Qwen;
    assert_eq!(calls(&json!([clock()]), &json!("none"), format), None);
    assert_eq!(calls(&json!([]), &json!("auto"), format), None);
    assert_eq!(read_tools(&json!(null), None, true, format), Ok(None));
    let auto = read_tools(&json!([clock()]), None, true, format).unwrap().unwrap();
    assert!(!auto.required);
}

#[test]
fn what_is_no_tool_is_refused() {
    let function = |function: Value| json!([{ "type": "function", "function": function }]);
    let cases = [
        (json!({}), json!("auto"), "`tools` must be a list"),
        (json!([{}]), json!("auto"), "`tools[0].type` must be `function`"),
        (json!([{ "type": "function" }]), json!("auto"), "`tools[0].function` must be an object"),
        (function(json!({})), json!("auto"), "`tools[0].function.name` must be a string"),
        (function(json!({ "name": "a b" })), json!("auto"), "is no name of a tool: \"a b\""),
        (function(json!({ "name": "" })), json!("auto"), "is no name of a tool"),
        (function(json!({ "name": "a", "parameters": 1 })), json!("auto"), "parameters` must be"),
        (function(json!({ "name": "a", "strict": 1 })), json!("auto"), "strict` must be a boolean"),
        (json!([clock(), clock()]), json!("auto"), "two tools have the name `clock`"),
        (json!([]), json!("required"), "`tools` is empty"),
        (json!([clock()]), json!("always"), "`tool_choice` must be"),
        (json!([clock()]), json!({ "type": "function" }), "`tool_choice.function.name` must be"),
        (json!([clock()]), json!({ "type": "function", "name": "x" }), "tool `x`, which is not"),
        (json!(vec![clock(); 129]), json!("auto"), "129 tools, the limit is 128"),
    ];
    for (tools, choice, told) in cases {
        let error = read_tools(&tools, Some(&choice), true, ToolFormat::Qwen).unwrap_err();
        assert!(error.to_string().contains(told), "{told}: {error}");
        assert!(error.is_callers_mistake());
    }
}

/// A strict tool with such parameters is refused for this reason at this place, and one that is not
/// strict takes any object and says so.
fn check_unheld(parameters: &Value, place: &str, reason: &str) {
    let environment = Environment::of_bytes();
    for (strict, choice, format) in [
        (true, "required", ToolFormat::Qwen),
        (true, "auto", ToolFormat::Llama3),
        (false, "required", ToolFormat::Qwen),
        (false, "auto", ToolFormat::Qwen),
        (false, "required", ToolFormat::Llama3),
    ] {
        let tool = json!({ "type": "function", "function":
            { "name": "f", "parameters": parameters, "strict": strict } });
        let calls = calls(&json!([weather(), tool]), &json!(choice), format).unwrap();
        let found =
            compile(&Constraint::ToolCalls(calls.clone()), &environment, &Limits::default());
        let place = format!("#/tools/1/function/parameters{place}");
        let plan = match found {
            Err(error) => {
                let told = error.to_string();
                assert!(strict && error.path() == Some(&place), "{parameters}: {error}");
                assert!(told.starts_with(&format!("schema, {place}: {reason}")), "{told}");
                continue;
            }
            Ok(plan) => plan,
        };
        assert!(!strict, "{parameters}");
        let told: Vec<String> = plan.warnings().iter().map(ToString::to_string).collect();
        let start = format!("the arguments of `f` are any object, because of {place}: {reason}");
        assert!(told.len() == 1 && told[0].starts_with(&start), "{told:?}");
        let (open, key, close) = match format {
            ToolFormat::Qwen => ("<tool_call>\n", "arguments", "\n</tool_call>"),
            ToolFormat::Llama3 => ("", "parameters", ""),
        };
        let call = |name: &str, arguments: &str| {
            format!("{open}{{\"name\":\"{name}\",\"{key}\":{arguments}}}{close}")
        };
        check(
            calls,
            &[
                (&call("f", "{\"a\":[1]}"), true),
                (&call("f", "{}"), true),
                (&call("f", "\"a\""), false),
                (&call("f", "null"), false),
                // The other tool is held all the same.
                (&call("get_weather", "{\"place\":\"Ulm\"}"), true),
                (&call("get_weather", "{\"place\":7}"), false),
            ],
        );
    }
}

#[test]
fn a_schema_that_cannot_be_held_is_refused_or_any_object() {
    let of_a = |schema: Value| json!({ "properties": { "a": schema }, "required": ["a"] });
    let unsupported = "the keyword `not` is not supported";
    check_unheld(&of_a(json!({ "not": {} })), "/properties/a/not", unsupported);
    // What only the engine refuses.
    let empty = json!({ "type": "object", "properties": { "b": false }, "required": ["b"] });
    check_unheld(&of_a(empty), "/properties/a", "cannot be compiled");
    let never = json!({ "type": "string", "pattern": "^a{3}$", "minLength": 5 });
    check_unheld(&of_a(never), "/properties/a", "cannot be compiled");
}

#[test]
fn a_schema_that_allows_no_object_is_refused_or_any_object() {
    let text = json!({ "type": "string" });
    for parameters in [
        text.clone(),
        json!({ "type": ["array", "null"] }),
        json!({ "anyOf": [text, { "type": "null" }] }),
        json!({ "enum": ["a", 1] }),
        json!({ "const": "a" }),
        json!({ "$ref": "#/$defs/t", "$defs": { "t": text } }),
        json!({ "allOf": [text] }),
        json!({ "type": "object", "enum": ["a"] }),
        json!({ "properties": { "a": false }, "required": ["a"] }),
    ] {
        check_unheld(&parameters, "", "must be a schema that some object satisfies");
    }
}

#[test]
fn arguments_are_an_object_whatever_else_the_schema_allows() {
    let object = json!({
        "type": "object",
        "properties": { "a": { "type": "integer" } },
        "required": ["a"],
        "additionalProperties": false,
    });
    let text = json!({ "type": "string" });
    let mut loose = object.clone();
    loose["type"] = json!(["string", "object", "null"]);
    for parameters in [
        loose,
        json!({ "anyOf": [text, object, { "type": "null" }] }),
        json!({ "oneOf": [text, object] }),
        json!({ "enum": ["a", { "a": 7 }] }),
        json!({ "$ref": "#/$defs/o", "$defs": { "o": { "anyOf": [object, text] } } }),
        json!({ "allOf": [{ "anyOf": [object, text] }] }),
    ] {
        let tool = json!({ "type": "function", "function":
            { "name": "f", "parameters": parameters, "strict": true } });
        let calls = calls(&json!([tool]), &json!("required"), ToolFormat::Llama3).unwrap();
        let call = |arguments: &str| format!("{{\"name\":\"f\",\"parameters\":{arguments}}}");
        check(
            calls,
            &[
                (&call("{\"a\":7}"), true),
                (&call("{\"a\":\"x\"}"), false),
                (&call("\"a\""), false),
                (&call("null"), false),
            ],
        );
    }
}
