//! The input of a response, made into messages of a chat.

use causeway_text::Chat;
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::fields::Fields;
use crate::fields::chat::MESSAGES_MAX;
use crate::routes::messages_in;

/// Roles that a message of the input may have.
const ROLES: &[&str] = &["user", "assistant", "system", "developer"];
/// Fields of an item that say nothing to the model: they come back with every item of an output.
const KEPT_OUT: &[&str] = &["type", "id", "status", "phase"];

/// The chat of a request: its instructions, then its input.
///
/// # Errors
/// An input of another form, or an item that is neither a message nor reasoning.
pub(super) fn chat(fields: &Fields) -> Result<Chat, ApiError> {
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
        Some(Value::Array(list)) => items(list, &mut messages)?,
        Some(_) => return Err(wrong("`input` must be a text or a list of messages")),
    }
    messages_in::made(messages, fields.flag("continue_final_message"), fields)
}

/// Messages of the items; reasoning belongs to the assistant's message behind it.
fn items(list: &[Value], messages: &mut Vec<Value>) -> Result<(), ApiError> {
    let mut reasoning: Option<(String, String)> = None;
    for (index, item) in list.iter().enumerate() {
        let path = format!("input[{index}]");
        let Some(given) = item.as_object() else {
            return Err(ApiError::field(&*path, format!("`{path}` is not an object")));
        };
        let kind = given.get("type").map_or(Some("message"), Value::as_str).unwrap_or_default();
        match kind {
            "reasoning" => {
                let text = reasoning_text(&path, given)?;
                reasoning = Some((path, text));
            }
            "message" => {
                let mut message = message(&path, given)?;
                if let Some((place, text)) = reasoning.take() {
                    if message["role"] != "assistant" {
                        return Err(orphan(&place));
                    }
                    message["reasoning_content"] = json!(text);
                }
                messages.push(message);
            }
            other => {
                let shown: String = other.chars().take(64).collect();
                let text = format!(
                    "`{path}` has the type `{shown}`, only `message` and `reasoning` are supported"
                );
                return Err(ApiError::field(path, text).with_code("unsupported_parameter"));
            }
        }
    }
    reasoning.map_or(Ok(()), |(place, _)| Err(orphan(&place)))
}

fn orphan(path: &str) -> ApiError {
    let text = format!("`{path}` is reasoning without the assistant's message behind it");
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
