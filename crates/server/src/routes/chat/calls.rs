//! Calls of tools as a chat completion writes them.

use serde_json::{Value, json};

use crate::routes::calls::{Called, Calls, Said};

/// Deltas of a stream's message, as the next text decides them.
pub(super) fn feed(calls: &mut Calls, text: String) -> Vec<Value> {
    let before = calls.count();
    deltas(calls.feed(text), before)
}

/// Deltas of what was still waiting for its end.
pub(super) fn finish(calls: &mut Calls) -> Vec<Value> {
    let before = calls.count();
    deltas(calls.finish(), before)
}

fn deltas(said: Vec<Said>, mut index: usize) -> Vec<Value> {
    let delta = |said| match said {
        Said::Text(text) => json!({ "content": text }),
        Said::Call(call) => {
            let mut call = told(call);
            call["index"] = json!(index);
            index += 1;
            json!({ "tool_calls": [call] })
        }
    };
    said.into_iter().map(delta).collect()
}

/// The whole message's content, null where there are calls alone, and its calls.
pub(super) fn whole(mut calls: Calls, text: String) -> (Value, Vec<Value>) {
    let mut said = calls.feed(text);
    said.extend(calls.finish());
    let (mut content, mut told_calls) = (String::new(), Vec::new());
    for said in said {
        match said {
            Said::Text(text) => content.push_str(&text),
            Said::Call(call) => told_calls.push(told(call)),
        }
    }
    let is_calls_alone = content.is_empty() && !told_calls.is_empty();
    (if is_calls_alone { Value::Null } else { json!(content) }, told_calls)
}

fn told(Called { id, name, arguments }: Called) -> Value {
    let function = json!({ "name": name, "arguments": arguments });
    json!({ "id": id, "type": "function", "function": function })
}
