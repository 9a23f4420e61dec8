//! Messages as OpenAI spells them, made into what a chat template takes.

use causeway_text::{Chat, ChatValue};
use serde_json::{Map, Value, json};

use super::{parts, turns};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::short::short;

/// Roles that a message may have.
const ROLES: &[&str] = &["system", "developer", "user", "assistant", "tool"];
/// Fields of a message that go to the template as they are.
const KEPT: &[&str] = &["name", "tool_call_id", "reasoning_content", "refusal"];

/// The chat of a request, with what its template is told beside the messages: `tools` too, where
/// any may be called.
///
/// # Errors
/// A message of another form, or a part that is no text.
pub(crate) fn chat(fields: &Fields, tools: Option<Value>) -> Result<Chat, ApiError> {
    let Some(list) = fields.value("messages").and_then(Value::as_array) else {
        return Err(ApiError::field("messages", "`messages` is missing: a list is needed"));
    };
    if list.is_empty() {
        let text = "`messages` is empty: at least one message is needed";
        return Err(ApiError::field("messages", text));
    }
    let indexed = list.iter().enumerate();
    let messages: Result<Vec<Value>, ApiError> =
        indexed.map(|(index, message)| one(&format!("messages[{index}]"), message)).collect();
    made(messages?, fields.flag("continue_final_message"), fields, tools)
}

/// A chat of messages that are read already.
///
/// # Errors
/// A last message that cannot be continued, where it is to be.
pub(crate) fn made(
    messages: Vec<Value>,
    continues: bool,
    fields: &Fields,
    tools: Option<Value>,
) -> Result<Chat, ApiError> {
    if continues {
        let last = messages.last().unwrap_or(&Value::Null);
        let why = match (last["role"].as_str(), last["tool_calls"].is_array()) {
            (Some("assistant"), false) => None,
            (Some("assistant"), true) => Some("calls tools"),
            _ => Some("is not the assistant's"),
        };
        if let Some(why) = why {
            let text = format!("`continue_final_message` is true, but the last message {why}");
            return Err(ApiError::field("continue_final_message", text));
        }
    }
    let variables = fields.value("chat_template_kwargs").and_then(Value::as_object);
    let variables = variables.map_or_else(Vec::new, |variables| {
        variables.iter().map(|(name, value)| (name.clone(), lowered(value))).collect()
    });
    Ok(Chat {
        messages: lowered(&Value::Array(messages)),
        tools: tools.as_ref().map(lowered),
        continue_final_message: continues,
        variables,
        ..Chat::default()
    })
}

fn lowered(value: &Value) -> ChatValue {
    let value = serde_json::from_value(value.clone());
    value.expect("invariant: a template's values are those of JSON")
}

/// One message, at this path of the request.
///
/// # Errors
/// A message of another form, or a part that is no text.
pub(crate) fn one(path: &str, message: &Value) -> Result<Value, ApiError> {
    let Some(given) = message.as_object() else {
        return Err(ApiError::field(path, format!("`{path}` is not an object")));
    };
    let role = given.get("role").and_then(Value::as_str).unwrap_or_default();
    if !ROLES.contains(&role) {
        let (param, roles) = (format!("{path}.role"), ROLES.join("`, `"));
        let text = format!("`{param}` must be one of `{roles}`");
        return Err(ApiError::field(param, text));
    }
    // Templates know one role for whoever sets the rules.
    let role = if role == "developer" { "system" } else { role };
    let mut made = Map::from_iter([("role".to_owned(), json!(role))]);
    let calls = given.get("tool_calls").filter(|calls| !calls.is_null());
    for (name, value) in given {
        match name.as_str() {
            "role" => {}
            "tool_calls" => {
                if let Some(calls) = calls {
                    let calls = turns::of_chat(&format!("{path}.tool_calls"), calls)?;
                    made.insert(name.clone(), calls);
                }
            }
            "content" if value.is_null() && calls.is_some() => {}
            "content" => {
                made.insert(name.clone(), json!(content(&format!("{path}.content"), value)?));
            }
            kept if KEPT.contains(&kept) => {
                if !value.is_null() {
                    made.insert(name.clone(), value.clone());
                }
            }
            _ if value.is_null() => {}
            other => {
                let shown = short(other);
                let param = format!("{path}.{shown}");
                let text = format!("`{param}` is not supported");
                return Err(ApiError::field(param, text).with_code("unsupported_parameter"));
            }
        }
    }
    if calls.is_some() {
        made.entry("content").or_insert(json!(""));
    }
    if !made.contains_key("content") {
        let param = format!("{path}.content");
        let text = format!("`{param}` is missing: a text is needed");
        return Err(ApiError::field(param, text));
    }
    Ok(Value::Object(made))
}

/// Types of parts that are text, in the words of every API.
const TEXTS: &[&str] = &["text", "input_text", "output_text"];

/// A text, or the texts of its parts, one to a line.
///
/// # Errors
/// A part that is no text.
pub(super) fn content(param: &str, content: &Value) -> Result<String, ApiError> {
    if let Some(text) = content.as_str() {
        return Ok(text.to_owned());
    }
    let Some(parts) = content.as_array() else {
        let text = format!("`{param}` must be a text or a list of parts");
        return Err(ApiError::field(param, text));
    };
    let mut texts = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let param = format!("{param}[{index}]");
        let part = parts::object(&param, part)?;
        match parts::part(part, "type") {
            Value::String(kind) if TEXTS.contains(&kind.as_str()) => {
                texts.push(parts::text(&param, part, "text")?);
            }
            kind => return Err(parts::other_type(&param, kind, &["text"])),
        }
    }
    Ok(texts.join("\n"))
}
