//! The input of a response, made into messages of a chat.

use causeway_text::Chat;
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::fields::Fields;
use crate::fields::chat::MESSAGES_MAX;
use crate::routes::messages_in;
use crate::routes::parts::{known, other_type, part, text};
use crate::routes::turns::{self, Asked};

/// Roles that a message of the input may have.
const ROLES: &[&str] = &["user", "assistant", "system", "developer"];
/// Types that an item may have.
const TYPES: &[&str] = &["message", "reasoning", "function_call", "function_call_output"];
/// Fields of an item that say nothing to the model: they come back with every item of an output.
const KEPT_OUT: &[&str] = &["type", "id", "status", "phase"];

/// The chat of a request: its instructions, then its input.
///
/// # Errors
/// An input of another form, or an item that is no message, no reasoning, and no call or its
/// output.
pub(super) fn chat(fields: &Fields, tools: Option<Value>) -> Result<Chat, ApiError> {
    let wrong = |text: &str| ApiError::field("input", text).with_code("invalid_value");
    let mut messages = Vec::new();
    if let Some(instructions) = fields.text("instructions") {
        messages.push(json!({ "role": "system", "content": instructions }));
    }
    match fields.value("input") {
        None => return Err(wrong("`input` is missing: a text or a list of messages is needed")),
        Some(Value::String(text)) if text.is_empty() => {
            return Err(wrong("`input` is empty: at least one character is needed"));
        }
        Some(Value::String(text)) => messages.push(json!({ "role": "user", "content": text })),
        Some(Value::Array(items)) if items.is_empty() => {
            return Err(wrong("`input` is empty: at least one message is needed"));
        }
        Some(Value::Array(items)) if items.len() > MESSAGES_MAX => {
            let count = items.len();
            let text =
                format!("`input` is a list of {count}, must be a list of at most {MESSAGES_MAX}");
            return Err(wrong(&text));
        }
        Some(Value::Array(list)) => messages = items(list, messages)?,
        Some(_) => return Err(wrong("`input` must be a text or a list of messages")),
    }
    messages_in::made(messages, fields.flag("continue_final_message"), fields, tools)
}

/// Messages of the items, behind those that there are.
fn items(list: &[Value], messages: Vec<Value>) -> Result<Vec<Value>, ApiError> {
    let mut turns = Turns { messages, reasoning: None, asked: Asked::default() };
    for (index, item) in list.iter().enumerate() {
        let path = format!("input[{index}]");
        let Some(given) = item.as_object() else {
            return Err(ApiError::field(&*path, format!("`{path}` is not an object")));
        };
        let kind = given.get("type").map_or(Some("message"), Value::as_str).unwrap_or_default();
        match kind {
            "reasoning" => turns.reasoning = Some((path.clone(), reasoning_text(&path, given)?)),
            "message" => turns.put(message(&path, given)?)?,
            "function_call" => turns.call(&path, given)?,
            "function_call_output" => turns.output(&path, given)?,
            _ => return Err(other_type(&path, part(given, "type"), TYPES)),
        }
    }
    turns.reasoning.map_or(Ok(turns.messages), |(place, _)| Err(orphan(&place)))
}

/// A conversation as its items are read.
struct Turns {
    messages: Vec<Value>,
    /// Where it stands and what it says; it belongs to the assistant's turn behind it.
    reasoning: Option<(String, String)>,
    asked: Asked,
}

impl Turns {
    fn put(&mut self, mut message: Value) -> Result<(), ApiError> {
        if let Some((place, text)) = self.reasoning.take() {
            if message["role"] != "assistant" {
                return Err(orphan(&place));
            }
            message["reasoning_content"] = json!(text);
        }
        self.messages.push(message);
        Ok(())
    }

    /// A call is a part of the assistant's turn before it, or begins one.
    fn call(&mut self, path: &str, given: &Map<String, Value>) -> Result<(), ApiError> {
        known(path, given, &["type", "id", "status", "call_id", "name", "arguments"])?;
        let (id, name) = (text(path, given, "call_id")?, text(path, given, "name")?);
        let param = format!("{path}.arguments");
        let arguments = part(given, "arguments");
        let call = self.asked.call(id, name, turns::arguments(&param, arguments)?);
        let turn = self.messages.last_mut().filter(|last| last["role"] == "assistant");
        match turn.filter(|_| self.reasoning.is_none()) {
            Some(turn) => turns::add(turn, call),
            None => {
                self.put(json!({ "role": "assistant", "content": "", "tool_calls": [call] }))?;
            }
        }
        Ok(())
    }

    fn output(&mut self, path: &str, given: &Map<String, Value>) -> Result<(), ApiError> {
        known(path, given, &["type", "id", "status", "call_id", "output"])?;
        let id = text(path, given, "call_id")?;
        let param = format!("{path}.output");
        let said = part(given, "output");
        let said = messages_in::content(&param, said)?;
        let result = self.asked.result(&format!("{path}.call_id"), id, &said)?;
        self.put(result)
    }
}

fn orphan(path: &str) -> ApiError {
    let text = format!("`{path}` is reasoning without the assistant's turn behind it");
    ApiError::field(path, text)
}

fn message(path: &str, given: &Map<String, Value>) -> Result<Value, ApiError> {
    let role = given.get("role").and_then(Value::as_str).unwrap_or_default();
    if !ROLES.contains(&role) {
        let (param, roles) = (format!("{path}.role"), ROLES.join("`, `"));
        let text = format!("`{param}` must be one of `{roles}`");
        return Err(ApiError::field(param, text));
    }
    let told = given.iter().filter(|(name, _)| !KEPT_OUT.contains(&name.as_str()));
    let told = told.map(|(name, value)| (name.clone(), value.clone())).collect();
    messages_in::one(path, &Value::Object(told))
}

/// The text of reasoning that an earlier answer had.
fn reasoning_text(path: &str, given: &Map<String, Value>) -> Result<String, ApiError> {
    if given.get("encrypted_content").is_some_and(|content| !content.is_null()) {
        let param = format!("{path}.encrypted_content");
        let text = format!("`{param}` is not supported: reasoning is text here");
        return Err(ApiError::field(param, text).with_code("unsupported_parameter"));
    }
    let parts = given.get("content").and_then(Value::as_array).into_iter().flatten();
    let texts: Option<Vec<&str>> = parts.map(|part| part["text"].as_str()).collect();
    texts.map(|texts| texts.concat()).ok_or_else(|| {
        let param = format!("{path}.content");
        let text = format!("`{param}` must be a list of texts");
        ApiError::field(param, text)
    })
}
