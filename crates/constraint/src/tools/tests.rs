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

#[test]
fn a_strict_schema_is_held_or_refused_and_another_falls_back_with_a_warning() {
    let environment = Environment::of_bytes();
    for strict in [true, false] {
        let parameters = json!({ "properties": { "a": { "not": {} } } });
        let tool = json!({ "type": "function", "function":
            { "name": "f", "parameters": parameters, "strict": strict } });
        let tools = json!([clock(), tool]);
        let calls = calls(&tools, &json!("required"), ToolFormat::Qwen).unwrap();
        let found =
            compile(&Constraint::ToolCalls(calls.clone()), &environment, &Limits::default());
        let place = "#/tools/1/function/parameters/properties/a/not";
        match found {
            Err(error) => assert!(strict && error.path() == Some(place), "{error}"),
            Ok(plan) => {
                assert!(!strict && plan.warnings()[0].path == place);
                let any = TWO.replace("clock", "f").replace("{}", "{\"a\":[1]}");
                check(calls, &[(&any, true)]);
            }
        }
    }
}
