//! What the APIs share: reading what is common, whole answers, their extension.

use causeway_request::{Priority, StopReason};
use causeway_session::Given;
use serde_json::{Map, Value, json};

use super::form;
use crate::ask::{Answering, Ask};
use crate::auth::Caller;
use crate::error::ApiError;
use crate::event::{Ended, Event, Part};
use crate::fields::{Edit, Fields};
use crate::short::short;
use crate::wire;

/// How an answer is delivered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delivery {
    pub(crate) streams: bool,
    /// A last chunk says what was used.
    pub(crate) include_usage: bool,
    pub(crate) include_reasoning: bool,
    /// The `causeway` object is part of the answer.
    pub(crate) extends: bool,
    /// Comments say how far the prompt is.
    pub(crate) returns_progress: bool,
}

/// Reads how the answer is to come.
///
/// # Errors
/// Options that are unknown, or that need a stream where none is asked for.
pub(crate) fn delivery(fields: &Fields) -> Result<Delivery, ApiError> {
    let streams = fields.flag("stream");
    let mut include_usage = false;
    if let Some(options) = fields.value("stream_options").and_then(Value::as_object) {
        if !streams {
            let text = "`stream_options` is given, but `stream` is not true";
            return Err(ApiError::field("stream_options", text));
        }
        for (name, value) in options {
            match (name.as_str(), value.as_bool()) {
                ("include_usage", Some(flag)) => include_usage = flag,
                // Chunks carry no padding here: lengths are hidden from nobody on this path.
                ("include_obfuscation", Some(false)) => {}
                ("include_usage" | "include_obfuscation", _) if value.is_null() => {}
                (name, _) => {
                    let shown = short(name);
                    let text =
                        format!("`stream_options.{shown}` is {value}, which is not supported");
                    return Err(ApiError::field(format!("stream_options.{shown}"), text));
                }
            }
        }
    }
    Ok(Delivery {
        streams,
        include_usage,
        include_reasoning: fields.flag_or("include_reasoning", true),
        extends: fields.flag_or("causeway", true),
        returns_progress: fields.flag("return_progress"),
    })
}

/// Edits that are not one field of the policy each.
///
/// # Errors
/// Two budgets that differ, markers that are not two, or a form that is none.
pub(crate) fn edits(fields: &mut Fields) -> Result<Vec<Edit>, ApiError> {
    let mut edits = std::mem::take(&mut fields.edits);
    form::of_guided(fields, &mut edits)?;
    let budgets: Vec<&Edit> = edits.iter().filter(|edit| edit.path == "stop.tokens_max").collect();
    if let [first, second] = budgets[..]
        && first.value != second.value
    {
        let text = format!(
            "`{}` is {}, but `{}` is {}: give one of them",
            first.field, first.value, second.field, second.value
        );
        return Err(ApiError::field(second.field, text));
    }
    if let Some(markers) = fields.value("reasoning_markers") {
        let pair = markers.as_array().map(Vec::as_slice);
        let Some([open, close]) = pair else {
            let text = "`reasoning_markers` must be a list of two texts: what opens the \
                        reasoning, and what closes it";
            return Err(ApiError::field("reasoning_markers", text));
        };
        for (path, value) in [("reasoning.open", open), ("reasoning.close", close)] {
            edits.push(Edit { field: "reasoning_markers", path, value: value.clone() });
        }
    }
    Ok(edits)
}

/// What every API asks for in the same words; what an API asks in its own is set on it.
pub(crate) fn ask(
    fields: &Fields,
    (prefix, prompt_field): (&'static str, &'static str),
    given: Given,
    edits: Vec<Edit>,
    caller: Caller,
    received: Map<String, Value>,
) -> Ask {
    Ask {
        prefix,
        prompt_field,
        caller,
        model: fields.text("model").map(str::to_owned),
        given,
        edits,
        choices: fields.count("n").and_then(|n| u32::try_from(n).ok()).unwrap_or(1),
        seed: fields.count("seed"),
        wants_tokens: None,
        timeout_ms: fields.count("timeout_ms"),
        priority: priority(fields),
        cache_salt: fields.text("cache_salt").map(str::to_owned),
        session: fields.text("session").map(str::to_owned),
        result_cache: fields.value("result_cache").and_then(Value::as_bool),
        received: Value::Object(received),
    }
}

/// Who is served first; a batch may also be asked for in OpenAI's word.
fn priority(fields: &Fields) -> Priority {
    match (fields.text("priority"), fields.text("service_tier")) {
        (Some("batch"), _) | (None, Some("flex")) => Priority::Batch,
        _ => Priority::Interactive,
    }
}

/// One choice, whole.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) part: Part,
    pub(crate) ended: Ended,
}

/// Waits for every choice to end.
///
/// # Errors
/// A choice that could not go on.
pub(crate) async fn whole(answering: &mut Answering) -> Result<Vec<Whole>, ApiError> {
    let mut parts: Vec<Part> = vec![Part::default(); answering.choices as usize];
    let mut ends: Vec<Option<Ended>> = (0..answering.choices).map(|_| None).collect();
    while let Some((choice, event)) = answering.events.recv().await {
        match event {
            Event::Prefilled { .. } => {}
            Event::Part(part) => parts[choice as usize].append(part),
            Event::Ended(ended) => ends[choice as usize] = Some(*ended),
        }
    }
    let mut wholes = Vec::new();
    for (part, ended) in parts.into_iter().zip(ends) {
        let ended = ended.ok_or_else(broken)?;
        if let Some(error) = failure(&ended) {
            return Err(error);
        }
        wholes.push(Whole { part, ended });
    }
    Ok(wholes)
}

/// What is said of an answer whose reading panicked.
pub(crate) fn broken() -> ApiError {
    ApiError::server("reading the answer panicked; other requests go on")
}

/// An end that is an error on the wire.
pub(crate) fn failure(ended: &Ended) -> Option<ApiError> {
    match &ended.stop {
        StopReason::Error { message, is_callers_mistake: true } => {
            Some(ApiError::bad_request(message.clone()))
        }
        StopReason::Error { message, is_callers_mistake: false } => {
            Some(ApiError::server(message.clone()))
        }
        StopReason::Deadline { .. } if ended.passes.is_wait_over => {
            let text = "the request waited for its first pass longer than the server's limit";
            Some(ApiError::busy(text, 5).with_code("wait_over"))
        }
        _ => None,
    }
}

/// The extension object of an answer, about these of its choices.
pub(crate) fn extension(answering: &Answering, ended: &[(u32, &Ended)]) -> Value {
    let choices = ended.iter().map(|(index, ended)| wire::choice(*index, ended));
    let mut extension = json!({
        "request": answering.id,
        "policy": answering.policy.to_string(),
        "seed": answering.seed,
        "choices": choices.collect::<Vec<_>>(),
    });
    if let Some(name) = &answering.policy_name {
        extension["policy_name"] = json!(name);
    }
    if !answering.warnings.is_empty() {
        extension["warnings"] = json!(answering.warnings);
    }
    extension
}

/// Whoever `admit` let in.
pub(crate) fn caller(request: &axum::extract::Request) -> Result<Caller, ApiError> {
    let caller = request.extensions().get::<Caller>().cloned();
    caller.ok_or_else(|| ApiError::server("the request came past the door"))
}
