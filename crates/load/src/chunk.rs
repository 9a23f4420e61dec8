//! What one event of a streamed answer says, in the two forms of the API.

use serde::Deserialize;
use serde_json::Value;

use crate::outcome::Usage;

/// The end of a stream.
pub(crate) const DONE: &str = "[DONE]";

/// One event, read.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Piece {
    /// Text of all choices and channels; empty for a role, a usage or a lone finish reason.
    pub(crate) text: String,
    pub(crate) finish_reason: Option<String>,
    pub(crate) usage: Option<Usage>,
    /// The message of an error that ends the stream.
    pub(crate) error: Option<String>,
}

#[derive(Deserialize)]
struct Chunk {
    choices: Option<Vec<Choice>>,
    usage: Option<WireUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Option<Delta>,
    text: Option<String>,
    finish_reason: Option<String>,
}

/// The channels in which chat servers send text.
#[derive(Deserialize)]
struct Delta {
    content: Option<String>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct WireUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
}

/// Reads the payload of an event; none where it is not such an object.
pub(crate) fn read(payload: &str) -> Option<Piece> {
    let Chunk { choices, usage, error } = serde_json::from_str(payload).ok()?;
    let mut piece = Piece { error: error.map(|error| message_of(&error)), ..Piece::default() };
    for Choice { delta, text, finish_reason } in choices.into_iter().flatten() {
        if let Some(Delta { content, reasoning_content, reasoning, refusal }) = delta {
            for part in [reasoning_content, reasoning, content, refusal].iter().flatten() {
                piece.text.push_str(part);
            }
        }
        piece.text.push_str(text.as_deref().unwrap_or_default());
        piece.finish_reason = finish_reason.or(piece.finish_reason);
    }
    piece.usage = usage.map(|usage| {
        let WireUsage { prompt_tokens, completion_tokens, prompt_tokens_details } = usage;
        Usage {
            prompt_tokens: prompt_tokens.unwrap_or_default(),
            cached_tokens: prompt_tokens_details.and_then(|details| details.cached_tokens),
            output_tokens: completion_tokens.unwrap_or_default(),
        }
    });
    Some(piece)
}

/// Most characters of a server's message that are kept.
const MESSAGE_CHARS_MAX: usize = 300;

/// What a server says is wrong: `error.message`, `message`, a string, or whatever it sent.
pub(crate) fn message_of(answer: &Value) -> String {
    let error = answer.get("error").unwrap_or(answer);
    let message = error.get("message").unwrap_or(error);
    let text = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
    text.chars().take(MESSAGE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests;
