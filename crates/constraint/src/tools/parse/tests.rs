//! Answers and what is read of them, whole and cut at every byte.

use proptest::prelude::*;

use super::{ToolEvent, ToolParser};
use crate::tools::{ToolCall, ToolFormat};

/// All events of an answer that comes in these pieces, neighbouring texts joined.
fn read<'a>(format: ToolFormat, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<ToolEvent> {
    let mut parser = ToolParser::new(format);
    let mut events = Vec::new();
    for piece in pieces {
        events.extend(parser.feed(piece));
    }
    events.extend(parser.finish());
    let mut joined: Vec<ToolEvent> = Vec::new();
    for event in events {
        match (joined.last_mut(), event) {
            (Some(ToolEvent::Text(before)), ToolEvent::Text(text)) => before.push_str(&text),
            (_, event) => joined.push(event),
        }
    }
    joined
}

/// Events as lines: `text …`, `call name arguments`.
fn check(format: ToolFormat, answer: &str, want: &[&str]) {
    let told = |events: Vec<ToolEvent>| -> Vec<String> {
        let line = |event| match event {
            ToolEvent::Text(text) => format!("text {text}"),
            ToolEvent::Call(ToolCall { name, arguments }) => format!("call {name} {arguments}"),
        };
        events.into_iter().map(line).collect()
    };
    assert_eq!(told(read(format, [answer.as_bytes()])), want, "{answer:?}");
    let bytes = answer.as_bytes();
    assert_eq!(told(read(format, bytes.chunks(1))), want, "{answer:?} byte by byte");
    for at in 0..=bytes.len() {
        let (first, second) = bytes.split_at(at);
        assert_eq!(told(read(format, [first, second])), want, "{answer:?} cut at {at}");
    }
}

#[test]
fn qwen_calls() {
    let cases: &[(&str, &[&str])] = &[
        ("", &[]),
        ("Hello, wörld 🦙.", &["text Hello, wörld 🦙."]),
        ("a <tool_cal", &["text a <tool_cal"]),
        ("a\n\n", &["text a\n\n"]),
        (
            "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1.0, \"b\": [1, 2]}}\n</tool_call>",
            &["call f {\"a\":1.0,\"b\":[1,2]}"],
        ),
        (
            "Let me see.\n<tool_call>{\"arguments\":{},\"name\":\"f\"}</tool_call>",
            &["text Let me see.", "call f {}"],
        ),
        (
            "<tool_call>\n{\"name\":\"f\",\"arguments\":{}}\n</tool_call>\n\
             <tool_call>\n{\"name\":\"g\",\"arguments\":{\"n\":12345678901234567890123}}\n</tool_call>\n",
            &["call f {}", "call g {\"n\":12345678901234567890123}"],
        ),
        // A string may hold what ends a call.
        (
            "<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":\"</tool_call>\\\"}\"}}</tool_call>",
            &["call f {\"x\":\"</tool_call>\\\"}\"}"],
        ),
        // The end tag may be what the answer stopped at.
        ("<tool_call>\n{\"name\":\"f\",\"arguments\":{}}\n</tool", &["call f {}"]),
        ("<tool_call>{\"name\":\"f\",\"arguments\":{}}", &["call f {}"]),
        // What is no call is text, as it was written.
        ("<tool_call>no</tool_call>", &["text <tool_call>no</tool_call>"]),
        ("x <tool_call>{\"name\":\"f\"", &["text x <tool_call>{\"name\":\"f\""]),
        (
            "<tool_call>{\"name\":1,\"arguments\":{}}</tool_call> z",
            &["text <tool_call>{\"name\":1,\"arguments\":{}}</tool_call> z"],
        ),
        (
            "<tool_call>{\"name\":\"f\",\"arguments\":\"{}\"}</tool_call>",
            &["text <tool_call>{\"name\":\"f\",\"arguments\":\"{}\"}</tool_call>"],
        ),
        (
            "<tool_call><tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>",
            &["text <tool_call>", "call f {}"],
        ),
    ];
    for (answer, want) in cases {
        check(ToolFormat::Qwen, answer, want);
    }
}

#[test]
fn llama_calls() {
    let cases: &[(&str, &[&str])] = &[
        ("", &[]),
        (
            "Hello {\"name\":\"f\",\"parameters\":{}}",
            &["text Hello {\"name\":\"f\",\"parameters\":{}}"],
        ),
        ("{\"name\": \"f\", \"parameters\": {\"a\": \"é\"}}", &["call f {\"a\":\"é\"}"]),
        ("<|python_tag|>{\"name\":\"f\",\"parameters\":{}}", &["call f {}"]),
        ("\n{\"name\":\"f\",\"parameters\":{}}\n", &["call f {}"]),
        (
            "{\"name\":\"f\",\"parameters\":{}}; {\"name\":\"g\",\"parameters\":{\"}\":1}}",
            &["call f {}", "call g {\"}\":1}"],
        ),
        ("{\"answer\": 1}", &["text {\"answer\": 1}"]),
        ("{\"name\":\"f\",\"parameters\":", &["text {\"name\":\"f\",\"parameters\":"]),
        ("{]", &["text {]"]),
        ("<|python", &["text <|python"]),
        ("{\"name\":\"f\",\"parameters\":{}} so", &["call f {}", "text  so"]),
    ];
    for (answer, want) in cases {
        check(ToolFormat::Llama3, answer, want);
    }
}

#[test]
fn deep_nesting_is_text() {
    for depth in [100, 10_000] {
        let open = "{\"a\":".repeat(depth);
        let answer = format!("{{\"name\":\"f\",\"parameters\":{open}1{}}}", "}".repeat(depth));
        let found = read(ToolFormat::Llama3, [answer.as_bytes()]);
        let is_call = matches!(found.as_slice(), [ToolEvent::Call(_)]);
        assert_eq!(is_call, depth == 100, "depth {depth}");
        if !is_call {
            assert_eq!(found, [ToolEvent::Text(answer)]);
        }
    }
}

/// Texts that are likely to come near a call.
fn answers() -> impl Strategy<Value = String> {
    let parts = [
        "<tool_call>",
        "</tool_call>",
        "{\"name\":\"f\",\"arguments\":{\"a\":[1,\"}\"]}}",
        "\n",
        " ",
        "{",
        "}",
        "\"",
        "\\",
        "é🦙",
        "<",
        "text",
        ";",
        "<|python_tag|>",
        "{\"name\": \"g\", \"parameters\": {}}",
    ];
    proptest::collection::vec(proptest::sample::select(parts.to_vec()), 0..12)
        .prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cuts_change_nothing(answer in answers(), size in 1_usize..9) {
        for format in [ToolFormat::Qwen, ToolFormat::Llama3] {
            let whole = read(format, [answer.as_bytes()]);
            prop_assert_eq!(&read(format, answer.as_bytes().chunks(size)), &whole);
            let no_call = whole.iter().all(|event| matches!(event, ToolEvent::Text(_)));
            if no_call && !answer.is_empty() {
                prop_assert_eq!(whole, vec![ToolEvent::Text(answer.clone())]);
            }
        }
    }
}
