//! Anthropic's messages, made into messages of a chat.

use causeway_text::Chat;
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::fields::{Fields, Plain};
use crate::routes::messages_in;

/// Roles that a message may have.
const ROLES: &[&str] = &["user", "assistant", "system"];

/// The chat of a request: its system text, then its messages; turns of one role in a row are one
/// turn, and an answer goes on from a last turn that is the assistant's.
///
/// # Errors
/// A message of another form, or a block that is no text.
pub(super) fn chat(fields: &Fields) -> Result<Chat, ApiError> {
    let Some(list) = fields.value("messages").and_then(Value::as_array) else {
        return Err(ApiError::field("messages", "`messages` is missing: a list is needed"));
    };
    if list.is_empty() {
        let text = "`messages` is empty: at least one message is needed";
        return Err(ApiError::field("messages", text));
    }
    let mut messages: Vec<Value> = Vec::new();
    if let Some(system) = fields.value("system") {
        let Content { text, .. } = content("system", system, false)?;
        messages.push(json!({ "role": "system", "content": text }));
    }
    for (index, given) in list.iter().enumerate() {
        let message = message(&format!("messages[{index}]"), given)?;
        match messages.last_mut() {
            Some(last) if last["role"] == message["role"] => join(last, &message),
            _ => messages.push(message),
        }
    }
    let continues = messages.last().is_some_and(|last| last["role"] == "assistant");
    messages_in::made(messages, continues, fields)
}

/// Puts a turn behind one of the same role.
fn join(turn: &mut Value, next: &Value) {
    for name in ["content", "reasoning_content"] {
        if let Some(text) = next[name].as_str() {
            let before = turn[name].as_str().map(|before| format!("{before}\n"));
            turn[name] = json!(before.unwrap_or_default() + text);
        }
    }
}

fn message(path: &str, given: &Value) -> Result<Value, ApiError> {
    let Some(given) = given.as_object() else {
        return Err(ApiError::field(path, format!("`{path}` is not an object")));
    };
    let role = given.get("role").and_then(Value::as_str).unwrap_or_default();
    if !ROLES.contains(&role) {
        let (param, roles) = (format!("{path}.role"), ROLES.join("`, `"));
        let text = format!("`{param}` must be one of `{roles}`");
        return Err(ApiError::field(param, text));
    }
    refuse_others(path, given, &["role", "content"])?;
    let param = format!("{path}.content");
    let Some(value) = given.get("content").filter(|content| !content.is_null()) else {
        return Err(ApiError::field(&*param, format!("`{param}` is missing: a text is needed")));
    };
    let Content { text, reasoning } = content(&param, value, role == "assistant")?;
    let mut made = json!({ "role": role, "content": text });
    if let Some(reasoning) = reasoning {
        made["reasoning_content"] = json!(reasoning);
    }
    Ok(made)
}

/// What the blocks of one content say.
#[derive(Default)]
struct Content {
    text: String,
    reasoning: Option<String>,
}

/// A text, or the texts of its blocks, one to a line.
fn content(param: &str, content: &Value, may_think: bool) -> Result<Content, ApiError> {
    if let Some(text) = content.as_str() {
        return Ok(Content { text: text.to_owned(), reasoning: None });
    }
    let Some(blocks) = content.as_array() else {
        let text = format!("`{param}` must be a text or a list of blocks");
        return Err(ApiError::field(param, text));
    };
    let (mut texts, mut thoughts) = (Vec::new(), Vec::new());
    for (index, block) in blocks.iter().enumerate() {
        let path = format!("{param}[{index}]");
        let kind = block["type"].as_str().unwrap_or_default();
        let fields = block.as_object().cloned().unwrap_or_default();
        match (kind, block["text"].as_str(), block["thinking"].as_str()) {
            ("text", Some(text), _) => {
                refuse_others(&path, &fields, &["type", "text", "cache_control", "citations"])?;
                check_hints(&path, &fields)?;
                texts.push(text);
            }
            ("thinking", _, Some(thought)) if may_think => {
                refuse_others(&path, &fields, &["type", "thinking", "signature"])?;
                thoughts.push(thought);
            }
            _ => {
                let shown: String = kind.chars().take(64).collect();
                let text = format!("`{path}` has the type `{shown}`, only `text` is supported");
                return Err(ApiError::field(path, text).with_code("unsupported_parameter"));
            }
        }
    }
    let reasoning = (!thoughts.is_empty()).then(|| thoughts.concat());
    Ok(Content { text: texts.join("\n"), reasoning })
}

/// Prefixes are cached anyway, and nothing is cited.
fn check_hints(path: &str, block: &Map<String, Value>) -> Result<(), ApiError> {
    let caches = block
        .get("cache_control")
        .is_none_or(|control| control.is_null() || Plain::Typed("ephemeral").is(control));
    let cites =
        block.get("citations").is_some_and(|cited| !cited.is_null() && !Plain::EmptyList.is(cited));
    let name = match (caches, cites) {
        (false, _) => "cache_control",
        (_, true) => "citations",
        _ => return Ok(()),
    };
    Err(unsupported(path, name))
}

fn refuse_others(path: &str, given: &Map<String, Value>, known: &[&str]) -> Result<(), ApiError> {
    match given.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(other) => Err(unsupported(path, &other.chars().take(64).collect::<String>())),
    }
}

fn unsupported(path: &str, name: &str) -> ApiError {
    let param = format!("{path}.{name}");
    let text = format!("`{param}` is not supported");
    ApiError::field(param, text).with_code("unsupported_parameter")
}
