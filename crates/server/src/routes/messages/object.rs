//! The object that a message is, and errors in Anthropic's form.

use axum::http::StatusCode;
use causeway_request::StopReason;
use serde_json::{Value, json};

use crate::ask::Answering;
use crate::error::ApiError;
use crate::event::Ended;
use crate::routes::choices;
use crate::routes::segments::{Kind, Segment, Segments};

/// A message before its first token: what of the prompt is cached is told at the end.
pub(super) fn begun(answering: &Answering) -> Value {
    json!({
        "id": answering.id,
        "type": "message",
        "role": "assistant",
        "model": answering.model.about.model.name,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": {
            "input_tokens": answering.prompt_tokens.len(),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 0,
        },
    })
}

/// A whole message.
pub(super) fn ended(
    answering: &Answering,
    segments: &Segments,
    ended: &Ended,
    extends: bool,
) -> Value {
    let mut message = begun(answering);
    message["content"] = segments.all().iter().map(block).collect();
    let (reason, sequence) = stop(answering, &ended.stop, segments.has_calls());
    message["stop_reason"] = json!(reason);
    message["stop_sequence"] = json!(sequence);
    message["usage"] = usage(ended);
    if extends {
        message["causeway"] = choices::extension(answering, &[(0, ended)]);
    }
    message
}

/// A block of the content.
pub(super) fn block(segment: &Segment) -> Value {
    match segment.kind {
        // Whoever sends it back is believed: a signature would prove nothing here.
        Kind::Reasoning => {
            json!({ "type": "thinking", "thinking": segment.text, "signature": "" })
        }
        Kind::Text => json!({ "type": "text", "text": segment.text, "citations": null }),
        Kind::Call => {
            let Segment { id, name, text, .. } = segment;
            // Empty before its input has come.
            let input: Value = serde_json::from_str(text).unwrap_or_else(|_| json!({}));
            json!({ "type": "tool_use", "id": id, "name": name, "input": input })
        }
    }
}

/// Anthropic's `stop_reason`, and the sequence that was met; a reason that Anthropic has no word
/// for keeps its own.
pub(super) fn stop(
    answering: &Answering,
    stop: &StopReason,
    has_calls: bool,
) -> (&'static str, Option<String>) {
    match stop {
        StopReason::Eos { .. } | StopReason::SchemaComplete if has_calls => ("tool_use", None),
        StopReason::Eos { .. } | StopReason::SchemaComplete => ("end_turn", None),
        StopReason::StopString { string } => ("stop_sequence", Some(string.clone())),
        StopReason::StopToken { token } => {
            let piece = answering.model.text.tokenizer.piece(*token).unwrap_or_default();
            ("stop_sequence", Some(String::from_utf8_lossy(piece).into_owned()))
        }
        StopReason::MaxTokens { .. } => ("max_tokens", None),
        StopReason::ContextFull { .. } => ("model_context_window_exceeded", None),
        StopReason::Cancelled { .. } | StopReason::Deadline { .. } | StopReason::Error { .. } => {
            (stop.name(), None)
        }
    }
}

/// Anthropic counts cached tokens apart from the input's.
pub(super) fn usage(ended: &Ended) -> Value {
    let tokens = &ended.account.tokens;
    json!({
        "input_tokens": tokens.prompt.saturating_sub(tokens.cached),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": tokens.cached,
        "output_tokens": tokens.prefix,
        "output_tokens_details": { "thinking_tokens": tokens.reasoning },
        "service_tier": "standard",
    })
}

/// An error in Anthropic's form; the field that is wrong stands beside it.
pub(super) fn error(error: &ApiError) -> Value {
    let kind = match error.status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::NOT_FOUND => "not_found_error",
        StatusCode::REQUEST_TIMEOUT => "timeout_error",
        StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        StatusCode::SERVICE_UNAVAILABLE => "overloaded_error",
        status if status.is_client_error() => "invalid_request_error",
        _ => "api_error",
    };
    let ApiError { message, param, code, .. } = error;
    let error = json!({ "type": kind, "message": message, "param": param, "code": code });
    json!({ "type": "error", "error": error })
}
