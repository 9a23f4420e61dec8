//! Calls of tools and their results in a conversation, made into what a chat template takes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::parts::{self, known, object, other_type, part};
use crate::error::ApiError;
use crate::fields::wrong;
use crate::short::short;

/// The calls that a conversation has made so far, by their ids.
#[derive(Debug, Default)]
pub(super) struct Asked(BTreeSet<String>);

impl Asked {
    /// A call of the assistant's: templates write the arguments as JSON, so they are an object.
    pub(super) fn call(&mut self, id: &str, name: &str, arguments: Value) -> Value {
        self.0.insert(id.to_owned());
        call(Some(&json!(id)), name, arguments)
    }

    /// What a tool said to a call that was made before.
    ///
    /// # Errors
    /// The id of no call, at this path of the request.
    pub(super) fn result(&self, param: &str, id: &str, said: &str) -> Result<Value, ApiError> {
        if !self.0.contains(id) {
            let shown = short(id);
            let text = format!("`{param}` is `{shown}`, which is the id of no call before it");
            return Err(ApiError::field(param, text).with_code("invalid_value"));
        }
        Ok(json!({ "role": "tool", "tool_call_id": id, "content": said }))
    }
}

/// Puts a call behind those of the assistant's turn.
pub(super) fn add(turn: &mut Value, call: Value) {
    match turn["tool_calls"].as_array_mut() {
        Some(calls) => calls.push(call),
        None => turn["tool_calls"] = json!([call]),
    }
}

/// The calls of a chat's message.
///
/// # Errors
/// A call of another form, or of something that is no function.
pub(super) fn of_chat(param: &str, calls: &Value) -> Result<Value, ApiError> {
    let list = calls.as_array().ok_or_else(|| wrong(param, calls, "a list of calls"))?;
    let one = |(index, given): (usize, &Value)| {
        let at = format!("{param}[{index}]");
        let given = object(&at, given)?;
        known(&at, given, &["id", "type", "function", "index"])?;
        let kind = part(given, "type");
        if !kind.is_null() && *kind != json!("function") {
            return Err(other_type(&at, kind, &["function"]));
        }
        let at = format!("{at}.function");
        let function = object(&at, part(given, "function"))?;
        known(&at, function, &["name", "arguments"])?;
        let arguments = arguments(&format!("{at}.arguments"), part(function, "arguments"))?;
        Ok(call(given.get("id"), parts::text(&at, function, "name")?, arguments))
    };
    list.iter().enumerate().map(one).collect()
}

fn call(id: Option<&Value>, name: &str, arguments: Value) -> Value {
    let mut call = json!({
        "type": "function",
        "function": { "name": name, "arguments": arguments },
    });
    if let Some(id) = id {
        call["id"] = id.clone();
    }
    call
}

/// Arguments, which OpenAI's APIs have as the text of an object.
///
/// # Errors
/// A text that is none, and why it cannot be read.
pub(super) fn arguments(param: &str, given: &Value) -> Result<Value, ApiError> {
    let read = match given {
        // A call without arguments.
        Value::Null => json!({}),
        Value::String(text) if text.trim().is_empty() => json!({}),
        Value::String(text) => serde_json::from_str(text).map_err(|error| {
            let text = format!("`{param}` cannot be read as JSON: {error}");
            ApiError::field(param, text).with_code("invalid_value")
        })?,
        other => other.clone(),
    };
    match read {
        Value::Object(_) => Ok(read),
        _ => Err(wrong(param, given, "the text of a JSON object")),
    }
}
