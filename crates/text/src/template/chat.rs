//! What a chat template is given: messages, and what stands beside them.

use minijinja::value::Value;

use super::CivilTime;
use super::python::{entries, is_list, is_map, with_entry};
use crate::error::TemplateError;

/// What is rendered: messages and what stands beside them, as the request has them.
#[derive(Debug, Clone, Default)]
pub struct Chat {
    /// A list of mappings, each with at least `role`.
    pub messages: Value,
    /// A list of mappings, or nothing.
    pub tools: Option<Value>,
    /// A list of mappings, or nothing.
    pub documents: Option<Value>,
    /// End with the header of an answer.
    pub add_generation_prompt: bool,
    /// End inside the last message, so that the answer goes on from it (response prefill).
    pub continue_final_message: bool,
    /// Further variables, such as `enable_thinking`.
    pub variables: Vec<(String, Value)>,
    /// What `strftime_now` says; without it templates find no such function.
    pub now: Option<CivilTime>,
}

impl Chat {
    /// Reads a chat from JSON: a list of messages, or an object with `messages` and, where there
    /// are any, `tools`, `documents`, `add_generation_prompt`, `continue_final_message` and `now`
    /// (`2024-07-26T15:04:05`, or seconds since 1970, which are taken as UTC).
    ///
    /// Every other key is a variable of the template.
    ///
    /// # Errors
    /// What is not JSON, or a key of the wrong type.
    pub fn from_json(json: &str) -> Result<Self, TemplateError> {
        let value: Value =
            serde_json::from_str(json).map_err(|source| TemplateError::Json { source })?;
        if is_list(&value) {
            return Ok(Self { messages: value, ..Self::default() });
        }
        if !is_map(&value) {
            return Err(shape("a chat", "an object or a list"));
        }
        let mut chat = Self::default();
        for (key, value) in entries(&value) {
            match key.as_str().unwrap_or_default() {
                "messages" => chat.messages = value,
                "tools" => chat.tools = Some(value),
                "documents" => chat.documents = Some(value),
                "add_generation_prompt" => {
                    chat.add_generation_prompt = flag("add_generation_prompt", &value)?;
                }
                "continue_final_message" => {
                    chat.continue_final_message = flag("continue_final_message", &value)?;
                }
                "now" => chat.now = Some(time(&value)?),
                name => chat.variables.push((name.to_owned(), value)),
            }
        }
        Ok(chat)
    }

    /// Whether there is a tool among its tools; an empty list is none.
    #[must_use]
    pub fn has_tools(&self) -> bool {
        self.tools.as_ref().and_then(Value::len).is_some_and(|count| count > 0)
    }

    /// The chat without the final message that it continues, ready for the answer to begin.
    pub(crate) fn before_final(&self) -> Option<Self> {
        if !self.continue_final_message {
            return None;
        }
        let mut messages: Vec<Value> = self.messages.try_iter().ok()?.collect();
        messages.pop()?;
        Some(Self {
            messages: messages.into(),
            add_generation_prompt: true,
            continue_final_message: false,
            ..self.clone()
        })
    }

    /// Refuses what no template is asked to render.
    pub(super) fn check(&self) -> Result<(), TemplateError> {
        if !is_list(&self.messages) {
            return Err(shape("messages", "a list of objects"));
        }
        if self.messages.try_iter().is_ok_and(|mut all| all.any(|message| !is_map(&message))) {
            return Err(shape("each message", "an object"));
        }
        for (what, list) in [("tools", &self.tools), ("documents", &self.documents)] {
            if let Some(list) = list
                && !list.is_none()
                && !is_list(list)
            {
                return Err(shape(what, "a list"));
            }
        }
        if self.continue_final_message && self.add_generation_prompt {
            return Err(TemplateError::Continued);
        }
        Ok(())
    }
}

/// The messages with `tag` behind the last one's text, and that text.
pub(super) fn continue_last(messages: &Value, tag: &str) -> Result<(Value, String), TemplateError> {
    let mut list: Vec<Value> = messages.try_iter().map(Iterator::collect).unwrap_or_default();
    let message = list.pop().ok_or(TemplateError::FinalContent)?;
    let content = message.get_attr("content").unwrap_or_default();
    let (content, text) = if let Some(text) = content.as_str() {
        (Value::from(format!("{text}{tag}")), text.to_owned())
    } else {
        let mut parts: Vec<Value> = content.try_iter().map(Iterator::collect).unwrap_or_default();
        let found = parts.iter_mut().rev().find_map(|part| {
            let text = part.get_attr("text").ok()?.as_str()?.to_owned();
            *part = with_entry(part, "text", Value::from(format!("{text}{tag}")));
            Some(text)
        });
        (Value::from(parts), found.ok_or(TemplateError::FinalContent)?)
    };
    list.push(with_entry(&message, "content", content));
    Ok((Value::from(list), text))
}

fn shape(what: &'static str, wanted: &'static str) -> TemplateError {
    TemplateError::Shape { what, wanted }
}

fn flag(what: &'static str, value: &Value) -> Result<bool, TemplateError> {
    match value.kind() {
        minijinja::value::ValueKind::Bool => Ok(value.is_true()),
        minijinja::value::ValueKind::None => Ok(false),
        _ => Err(shape(what, "true or false")),
    }
}

fn time(value: &Value) -> Result<CivilTime, TemplateError> {
    let seconds = || u64::try_from(value.clone()).ok().and_then(CivilTime::from_unix);
    let parsed = value.as_str().map_or_else(seconds, CivilTime::parse);
    parsed.ok_or(shape("now", "a time such as `2024-07-26T15:04:05`, or seconds since 1970"))
}
