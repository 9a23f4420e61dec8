//! Anthropic's messages, made into messages of a chat.

use causeway_text::Chat;
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::fields::Fields;
use crate::routes::messages_in;
use crate::routes::parts::{self, flag, known, object, other_type, part};
use crate::routes::turns::{self, Asked};

/// Roles that a message may have.
const ROLES: &[&str] = &["user", "assistant", "system"];

/// The chat of a request: its system text, then its messages; turns of one role in a row are one
/// turn, and an answer goes on from a last turn that is the assistant's.
///
/// # Errors
/// A message of another form, a block that is not known, calls without results at the end.
pub(super) fn chat(fields: &Fields, tools: Option<Value>) -> Result<Chat, ApiError> {
    let Some(list) = fields.value("messages").and_then(Value::as_array) else {
        return Err(ApiError::field("messages", "`messages` is missing: a list is needed"));
    };
    if list.is_empty() {
        let text = "`messages` is empty: at least one message is needed";
        return Err(ApiError::field("messages", text));
    }
    let mut turns: Vec<Value> = Vec::new();
    if let Some(system) = fields.value("system") {
        let text = texts("system", system)?;
        turns.push(json!({ "role": "system", "content": text }));
    }
    let mut asked = Asked::default();
    for (index, given) in list.iter().enumerate() {
        for message in message(&format!("messages[{index}]"), given, &mut asked)? {
            match turns.last_mut() {
                Some(last) if last["role"] == message["role"] && message["role"] != "tool" => {
                    join(last, &message);
                }
                _ => turns.push(message),
            }
        }
    }
    let last = turns.last().unwrap_or(&Value::Null);
    if last["tool_calls"].is_array() {
        let param = format!("messages[{}]", list.len() - 1);
        let text = format!("`{param}` calls tools, and no `tool_result` is behind it");
        return Err(ApiError::field(param, text).with_code("invalid_value"));
    }
    let continues = last["role"] == "assistant";
    messages_in::made(turns, continues, fields, tools)
}

/// Puts a turn behind one of the same role.
fn join(turn: &mut Value, next: &Value) {
    for name in ["content", "reasoning_content"] {
        if let Some(text) = next[name].as_str() {
            let before = turn[name].as_str().map(|before| format!("{before}\n"));
            turn[name] = json!(before.unwrap_or_default() + text);
        }
    }
    for call in next["tool_calls"].as_array().into_iter().flatten() {
        turns::add(turn, call.clone());
    }
}

/// The messages of a chat that one of Anthropic's is: results of tools have turns of their own.
fn message(path: &str, given: &Value, asked: &mut Asked) -> Result<Vec<Value>, ApiError> {
    let Some(given) = given.as_object() else {
        return Err(ApiError::field(path, format!("`{path}` is not an object")));
    };
    let role = given.get("role").and_then(Value::as_str).unwrap_or_default();
    if !ROLES.contains(&role) {
        let (param, roles) = (format!("{path}.role"), ROLES.join("`, `"));
        let text = format!("`{param}` must be one of `{roles}`");
        return Err(ApiError::field(param, text));
    }
    known(path, given, &["role", "content"])?;
    let param = format!("{path}.content");
    let Some(value) = given.get("content").filter(|content| !content.is_null()) else {
        return Err(ApiError::field(&*param, format!("`{param}` is missing: a text is needed")));
    };
    if let Some(text) = value.as_str() {
        return Ok(vec![json!({ "role": role, "content": text })]);
    }
    let mut content = Content::default();
    for (index, value) in blocks(&param, value)?.iter().enumerate() {
        content.put(&format!("{param}[{index}]"), role, value, asked)?;
    }
    Ok(content.messages(role))
}

/// What the blocks of one content say.
#[derive(Default)]
struct Content<'c> {
    texts: Vec<&'c str>,
    thoughts: Vec<&'c str>,
    calls: Vec<Value>,
    /// Turns before the text: results, and what was said before them.
    turns: Vec<Value>,
}

impl<'c> Content<'c> {
    fn put(
        &mut self,
        path: &str,
        role: &str,
        block: &'c Value,
        asked: &mut Asked,
    ) -> Result<(), ApiError> {
        let fields = object(path, block)?;
        let kind = part(fields, "type");
        match (kind.as_str().unwrap_or_default(), role) {
            ("text", _) => self.texts.push(text(path, fields)?),
            ("thinking", "assistant") => {
                known(path, fields, &["type", "thinking", "signature"])?;
                self.thoughts.push(parts::text(path, fields, "thinking")?);
            }
            ("tool_use", "assistant") => {
                known(path, fields, &["type", "id", "name", "input"])?;
                let id = parts::text(path, fields, "id")?;
                let name = parts::text(path, fields, "name")?;
                let input = object(&format!("{path}.input"), part(fields, "input"))?;
                self.calls.push(asked.call(id, name, json!(input)));
            }
            ("tool_result", "user") => {
                self.flush();
                self.turns.push(result(path, fields, asked)?);
            }
            _ => return Err(other_type(path, kind, types_of(role))),
        }
        Ok(())
    }

    /// What was said before a result is a turn before it.
    fn flush(&mut self) {
        if !self.texts.is_empty() {
            let content = std::mem::take(&mut self.texts).join("\n");
            self.turns.push(json!({ "role": "user", "content": content }));
        }
    }

    fn messages(mut self, role: &str) -> Vec<Value> {
        if self.texts.is_empty() && !self.turns.is_empty() {
            return self.turns;
        }
        let mut message = json!({ "role": role, "content": self.texts.join("\n") });
        if !self.thoughts.is_empty() {
            message["reasoning_content"] = json!(self.thoughts.concat());
        }
        if !self.calls.is_empty() {
            message["tool_calls"] = json!(self.calls);
        }
        self.turns.push(message);
        self.turns
    }
}

/// What a tool said, or that it failed: templates have no other word for that than the text.
fn result(path: &str, fields: &Map<String, Value>, asked: &Asked) -> Result<Value, ApiError> {
    known(path, fields, &["type", "tool_use_id", "content", "is_error"])?;
    let id = parts::text(path, fields, "tool_use_id")?;
    let said = match fields.get("content").filter(|content| !content.is_null()) {
        Some(content) => texts(&format!("{path}.content"), content)?,
        None => String::new(),
    };
    let has_failed = flag(path, fields, "is_error")?.unwrap_or(false);
    let said = if has_failed { format!("Error: {said}") } else { said };
    asked.result(&format!("{path}.tool_use_id"), id, &said)
}

/// A text, or the texts of its blocks, one to a line.
fn texts(param: &str, content: &Value) -> Result<String, ApiError> {
    if let Some(text) = content.as_str() {
        return Ok(text.to_owned());
    }
    let block = |(index, block): (usize, &Value)| {
        let path = format!("{param}[{index}]");
        let fields = object(&path, block)?;
        match part(fields, "type") {
            Value::String(kind) if kind == "text" => text(&path, fields).map(str::to_owned),
            kind => Err(other_type(&path, kind, types_of(""))),
        }
    };
    let texts: Result<Vec<String>, ApiError> =
        blocks(param, content)?.iter().enumerate().map(block).collect();
    Ok(texts?.join("\n"))
}

fn blocks<'c>(param: &str, content: &'c Value) -> Result<&'c Vec<Value>, ApiError> {
    content.as_array().ok_or_else(|| {
        let text = format!("`{param}` must be a text or a list of blocks");
        ApiError::field(param, text)
    })
}

/// The text of a block that is one.
fn text<'c>(path: &str, fields: &'c Map<String, Value>) -> Result<&'c str, ApiError> {
    known(path, fields, &["type", "text"])?;
    parts::text(path, fields, "text")
}

/// Types that a block of this role's may have.
fn types_of(role: &str) -> &'static [&'static str] {
    match role {
        "assistant" => &["text", "thinking", "tool_use"],
        "user" => &["text", "tool_result"],
        _ => &["text"],
    }
}
