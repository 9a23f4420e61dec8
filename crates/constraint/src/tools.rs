//! Tool calls as they are declared to the API: read, checked, and made a constraint.

mod parse;

use serde_json::{Value, json};

use crate::kind::Whitespace;

pub use parse::{ToolEvent, ToolParser};

/// Most tools of one request.
pub const TOOLS_MAX: usize = 128;
/// Longest name of a tool, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// How a family of chat templates writes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolFormat {
    /// `<tool_call>`, `{"name": …, "arguments": …}` and `</tool_call>`, a line each; several may
    /// follow each other, and text may come before.
    Qwen,
    /// `{"name": …, "parameters": …}`, and nothing beside it.
    Llama3,
}

/// A function that the model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    pub name: String,
    /// JSON schema of the arguments, which are an object whatever it says.
    pub parameters: Value,
    /// Whether a schema that cannot be held is refused; elsewhere such arguments are any object.
    pub strict: bool,
}

/// Tools and how they are called: one kind of constraint.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCalls {
    /// Those that may be called, as (their place in the request, the tool).
    pub tools: Vec<(usize, Tool)>,
    /// Whether the answer must be a call; otherwise it may be text, or text and then calls.
    pub required: bool,
    /// Whether several calls may follow each other, where the format has a way to write them.
    pub parallel: bool,
    pub format: ToolFormat,
    pub whitespace: Whitespace,
}

/// A call that the model wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    pub name: String,
    /// A JSON object without white space, its numbers as they were written.
    pub arguments: String,
}

/// Why tools cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    #[error("`{at}` must be {want}")]
    Malformed { at: String, want: &'static str },
    #[error("`tools` has {count} tools, the limit is {limit}")]
    TooMany { count: usize, limit: usize },
    #[error(
        "`{at}` is no name of a tool: {shown:?} of {chars} characters, which must be 1 to {limit} \
         letters, digits, `_`, `-` or `.`"
    )]
    Name { at: String, shown: String, chars: usize, limit: usize },
    #[error("two tools have the name `{name}`")]
    Twice { name: String },
    #[error("`tool_choice` asks for the tool `{name}`, which is not among `tools`")]
    Missing { name: String },
    #[error("`tool_choice` asks for a call, and `tools` is empty")]
    NoTools,
}

impl ToolError {
    /// Tools are always the caller's.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        true
    }
}

/// Reads `tools` and `tool_choice` of a chat request; nothing comes back where no tool may be
/// called.
///
/// Without a choice it is `auto`. Both spellings of a named choice are read: with the name in
/// `function`, and beside `type`.
///
/// # Errors
/// A list or a choice that is not in the API's form, or names what is not there.
pub fn read_tools(
    tools: &Value,
    choice: Option<&Value>,
    parallel: bool,
    format: ToolFormat,
) -> Result<Option<ToolCalls>, ToolError> {
    let list = match tools {
        Value::Null => &[][..],
        Value::Array(list) => list,
        _ => return malformed("tools", "a list"),
    };
    if list.len() > TOOLS_MAX {
        return Err(ToolError::TooMany { count: list.len(), limit: TOOLS_MAX });
    }
    let mut read: Vec<(usize, Tool)> = Vec::with_capacity(list.len());
    for (index, tool) in list.iter().enumerate() {
        let tool = one(index, tool)?;
        if read.iter().any(|(_, other)| other.name == tool.name) {
            return Err(ToolError::Twice { name: tool.name });
        }
        read.push((index, tool));
    }
    let required = match chosen(choice)? {
        Choice::None => return Ok(None),
        Choice::Auto if read.is_empty() => return Ok(None),
        Choice::Auto => false,
        Choice::Required if read.is_empty() => return Err(ToolError::NoTools),
        Choice::Required => true,
        Choice::Named(name) => {
            read.retain(|(_, tool)| tool.name == name);
            if read.is_empty() {
                return Err(ToolError::Missing { name });
            }
            true
        }
    };
    let whitespace = Whitespace::default();
    Ok(Some(ToolCalls { tools: read, required, parallel, format, whitespace }))
}

enum Choice {
    None,
    Auto,
    Required,
    Named(String),
}

fn chosen(choice: Option<&Value>) -> Result<Choice, ToolError> {
    const WANT: &str = "`none`, `auto`, `required` or a function's name";
    match choice {
        None | Some(Value::Null) => Ok(Choice::Auto),
        Some(Value::String(word)) => match word.as_str() {
            "none" => Ok(Choice::None),
            "auto" => Ok(Choice::Auto),
            "required" => Ok(Choice::Required),
            _ => malformed("tool_choice", WANT),
        },
        Some(Value::Object(map)) if map.get("type").is_some_and(|kind| kind == "function") => {
            let nested = map.get("function").and_then(|function| function.get("name"));
            match nested.or_else(|| map.get("name")).and_then(Value::as_str) {
                Some(name) => Ok(Choice::Named(name.to_owned())),
                None => malformed("tool_choice.function.name", "a string"),
            }
        }
        _ => malformed("tool_choice", WANT),
    }
}

fn one(index: usize, tool: &Value) -> Result<Tool, ToolError> {
    let at = |field: &str| format!("tools[{index}]{field}");
    if tool.get("type").is_none_or(|kind| kind != "function") {
        return malformed(at(".type"), "`function`");
    }
    let Some(Value::Object(function)) = tool.get("function") else {
        return malformed(at(".function"), "an object");
    };
    let Some(Value::String(name)) = function.get("name") else {
        return malformed(at(".function.name"), "a string");
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(is_plain) {
        let chars = name.chars().count();
        let mut shown: String = name.chars().take(NAME_BYTES_MAX).collect();
        if chars > NAME_BYTES_MAX {
            shown.push('…');
        }
        let at = at(".function.name");
        return Err(ToolError::Name { at, shown, chars, limit: NAME_BYTES_MAX });
    }
    let parameters = match function.get("parameters") {
        None | Some(Value::Null) => json!({ "type": "object", "additionalProperties": false }),
        Some(schema @ Value::Object(_)) => schema.clone(),
        Some(_) => return malformed(at(".function.parameters"), "an object"),
    };
    let strict = match function.get("strict") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(strict)) => *strict,
        Some(_) => return malformed(at(".function.strict"), "a boolean"),
    };
    Ok(Tool { name: name.clone(), parameters, strict })
}

fn malformed<T>(at: impl Into<String>, want: &'static str) -> Result<T, ToolError> {
    Err(ToolError::Malformed { at: at.into(), want })
}

#[cfg(test)]
mod tests;
