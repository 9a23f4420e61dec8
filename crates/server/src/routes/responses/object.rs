//! The object that a response is, and the items of its output.

use causeway_request::StopReason;
use serde_json::{Value, json};

use crate::ask::Answering;
use crate::event::{Ended, TokenLine};
use crate::fields::Fields;
use crate::routes::segments::{Kind, Segment, Segments};
use crate::routes::{chat, choices};
use crate::state::State;
use crate::wire;

/// What a response repeats of its request.
#[derive(Debug)]
pub(super) struct Repeated(Value);

impl Repeated {
    /// The fields as they are in force.
    pub(super) fn new(fields: &Fields, state: &State) -> Self {
        let given = |name: &str| fields.value(name).cloned();
        let base = state.registry.base(fields.text("model"));
        let in_force = |name: &str, path: &str, default: Value| {
            given(name).or_else(|| base.own(path).cloned()).unwrap_or(default)
        };
        let plain = || json!({ "format": { "type": "text" } });
        Self(json!({
            "object": "response",
            "background": false,
            "error": null,
            "incomplete_details": null,
            "instructions": given("instructions"),
            "max_output_tokens": in_force("max_output_tokens", "stop.tokens_max", Value::Null),
            "max_tool_calls": null,
            "metadata": given("metadata").unwrap_or_else(|| json!({})),
            "output": [],
            "parallel_tool_calls": fields.flag_or("parallel_tool_calls", true),
            "previous_response_id": null,
            "prompt_cache_key": given("prompt_cache_key"),
            "reasoning": {
                "effort": fields.value("reasoning").map(|reasoning| &reasoning["effort"]),
                "summary": null,
            },
            "safety_identifier": given("safety_identifier"),
            "service_tier": given("service_tier").unwrap_or_else(|| json!("default")),
            "store": false,
            "temperature": in_force("temperature", "shape.temperature", json!(1.0)),
            "text": given("text").filter(|text| !text["format"].is_null()).unwrap_or_else(plain),
            "tool_choice": given("tool_choice").unwrap_or_else(|| json!("auto")),
            "tools": tools(fields),
            "top_logprobs": fields.count("top_logprobs").unwrap_or(0),
            "top_p": in_force("top_p", "shape.top_p", json!(1.0)),
            "truncation": "disabled",
            "usage": null,
            "user": given("user"),
        }))
    }

    /// The response before its first token.
    pub(super) fn begun(&self, answering: &Answering) -> Value {
        let mut response = self.0.clone();
        response["id"] = json!(answering.id);
        response["created_at"] = json!(answering.created);
        response["model"] = json!(answering.model.about.model.name);
        response["status"] = json!("in_progress");
        response
    }

    /// The response at its end.
    pub(super) fn ended(
        &self,
        answering: &Answering,
        (segments, ended): (&Segments, &Ended),
        completed_at: u64,
        extends: bool,
    ) -> Value {
        let mut response = self.begun(answering);
        let (status, reason) = status(&ended.stop);
        response["status"] = json!(status);
        if let Some(reason) = reason {
            response["incomplete_details"] = json!({ "reason": reason });
        } else {
            response["completed_at"] = json!(completed_at);
        }
        let last = segments.all().len().saturating_sub(1);
        let items = segments.all().iter().enumerate().map(|(index, segment)| {
            let is_cut = index == last && reason.is_some();
            item(answering, index, segment, if is_cut { "incomplete" } else { "completed" })
        });
        response["output"] = items.collect();
        response["usage"] = usage(ended);
        if extends {
            response["causeway"] = choices::extension(answering, &[(0, ended)]);
        }
        response
    }

    /// The response of a run that could not go on.
    pub(super) fn failed(
        &self,
        answering: &Answering,
        segments: &Segments,
        message: &str,
    ) -> Value {
        let mut response = self.begun(answering);
        response["status"] = json!("failed");
        response["error"] = json!({ "code": "server_error", "message": message });
        let items = segments.all().iter().enumerate();
        let items = items.map(|(index, segment)| item(answering, index, segment, "incomplete"));
        response["output"] = items.collect();
        response
    }
}

/// The functions that were given, with what they left out.
fn tools(fields: &Fields) -> Value {
    let given = fields.value("tools").and_then(Value::as_array).into_iter().flatten();
    let tool = |tool: &Value| {
        let mut tool = tool.clone();
        for name in ["description", "parameters", "strict"] {
            tool[name] = tool[name].take();
        }
        tool
    };
    given.map(tool).collect()
}

/// The status of a response, and what it lacks where it is not complete; reasons that OpenAI has
/// no word for keep their own.
pub(super) fn status(stop: &StopReason) -> (&'static str, Option<&'static str>) {
    match (stop, wire::finish_reason(stop)) {
        (_, "stop") => ("completed", None),
        (_, "length") => ("incomplete", Some("max_output_tokens")),
        (StopReason::Cancelled { .. }, reason) => ("cancelled", Some(reason)),
        (_, reason) => ("incomplete", Some(reason)),
    }
}

/// The id of an item.
pub(super) fn item_id(answering: &Answering, index: usize, kind: Kind) -> String {
    let prefix = match kind {
        Kind::Reasoning => "rs",
        Kind::Text => "msg",
        Kind::Call => "fc",
    };
    format!("{prefix}_{}_{index}", answering.id)
}

/// An item of the output.
pub(super) fn item(answering: &Answering, index: usize, segment: &Segment, status: &str) -> Value {
    let mut item = opened(answering, index, segment);
    if segment.kind == Kind::Call {
        // A call comes whole, wherever the answer is cut.
        item["status"] = json!("completed");
        item["arguments"] = json!(segment.text);
    } else {
        item["status"] = json!(status);
        item["content"] = json!([part(answering, segment)]);
    }
    item
}

/// An item before its first part.
pub(super) fn opened(answering: &Answering, index: usize, segment: &Segment) -> Value {
    let id = item_id(answering, index, segment.kind);
    match segment.kind {
        Kind::Reasoning => json!({
            "id": id, "type": "reasoning", "summary": [], "content": [], "status": "in_progress",
        }),
        Kind::Text => json!({
            "id": id,
            "type": "message",
            "role": "assistant",
            "content": [],
            "status": "in_progress",
        }),
        Kind::Call => json!({
            "id": id,
            "type": "function_call",
            "call_id": segment.id,
            "name": segment.name,
            "arguments": "",
            "status": "in_progress",
        }),
    }
}

/// The one part of an item that is text.
pub(super) fn part(answering: &Answering, segment: &Segment) -> Value {
    match segment.kind {
        Kind::Reasoning => json!({ "type": "reasoning_text", "text": segment.text }),
        Kind::Text | Kind::Call => json!({
            "type": "output_text",
            "text": segment.text,
            "annotations": [],
            "logprobs": logprobs(answering, &segment.tokens),
        }),
    }
}

/// The tokens as a list, empty where none were asked for.
pub(super) fn logprobs(answering: &Answering, tokens: &[TokenLine]) -> Value {
    let mut told = chat::logprobs(answering, tokens);
    if told.is_null() { json!([]) } else { told["content"].take() }
}

fn usage(ended: &Ended) -> Value {
    let tokens = &ended.account.tokens;
    json!({
        "input_tokens": tokens.prompt,
        // Writing a prefix down costs nobody anything.
        "input_tokens_details": { "cached_tokens": tokens.cached, "cache_write_tokens": 0 },
        "output_tokens": tokens.prefix,
        "output_tokens_details": { "reasoning_tokens": tokens.reasoning },
        "total_tokens": tokens.prompt + tokens.prefix,
    })
}
