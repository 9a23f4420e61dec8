//! `POST /v1/responses`: text in, text and calls of tools out.

mod input;
mod object;
mod stream;

use std::sync::Arc;

use axum::extract::{Request, State as Shared};
use axum::http::StatusCode;
use axum::response::Response;
use causeway_session::Given;
use serde_json::{Map, Value};

use super::choices::{self, Delivery};
use super::segments::{self, Segments};
use super::tools::{Tools, Words};
use super::{form, thought};
use crate::ask::Ask;
use crate::auth::Caller;
use crate::error::{ApiError, json_response};
use crate::fields::responses::RESPONSES;
use crate::fields::{Edit, Fields};
use crate::http::{body, sse};
use crate::short::short;
use crate::state::State;
use object::Repeated;

/// What the ids of calls begin with.
const CALL: &str = "call";
/// What `include` may name.
const LOGPROBS: &str = "message.output_text.logprobs";

/// Answers an input, whole or as a stream.
///
/// # Errors
/// Whatever is wrong with the request, or has no room.
pub(crate) async fn answer(
    Shared(state): Shared<Arc<State>>,
    request: Request,
) -> Result<Response, ApiError> {
    let caller = choices::caller(&request)?;
    let object = body::object(request, &state.bodies).await?;
    let (ask, delivery, repeated) = read(object, caller, &state)?;
    let mut answering = Words::Responses.begin(&state, ask).await?;
    if delivery.streams {
        let (sse, response) = sse::stream();
        let segments = Segments::new(CALL, &answering);
        tokio::spawn(async move {
            let events =
                stream::Events { answering, delivery, repeated, sse, state, segments, number: 0 };
            // A reader that is gone needs no last word.
            let _ = events.write().await;
        });
        return Ok(response);
    }
    let (segments, ended) =
        segments::whole(CALL, &mut answering, delivery.include_reasoning).await?;
    let completed_at = state.clock.unix_s();
    let answer = (&segments, &ended);
    let response = repeated.ended(&answering, answer, completed_at, delivery.extends);
    Ok(json_response(StatusCode::OK, &response))
}

/// Reads a body into what every API asks for.
fn read(
    object: Map<String, Value>,
    caller: Caller,
    state: &State,
) -> Result<(Ask, Delivery, Repeated), ApiError> {
    let mut fields = Fields::read(RESPONSES, &object)?;
    let delivery = choices::delivery(&fields)?;
    if fields.value("stream_options").is_some_and(|options| !options["include_usage"].is_null()) {
        let name = "stream_options.include_usage";
        let text = format!("`{name}` is not supported: the last event always has the usage");
        return Err(ApiError::field(name, text).with_code("unsupported_parameter"));
    }
    let wants_tokens = wants_tokens(&fields)?;
    let tools = Tools::read(Words::Responses, &fields)?;
    let chat = input::chat(&fields, tools.told())?;
    let repeated = Repeated::new(&fields, state);
    let mut edits = choices::edits(&mut fields)?;
    thought::of_reasoning(&fields, &mut edits)?;
    of_text(&fields, &mut edits)?;
    edits.extend(tools.edit());
    let ask = Ask {
        wants_tokens,
        ..choices::ask(&fields, ("resp", "input"), Given::Messages(chat), edits, caller, object)
    };
    Ok((ask, delivery, repeated))
}

/// What form the answer's text has.
fn of_text(fields: &Fields, edits: &mut Vec<Edit>) -> Result<(), ApiError> {
    let options = fields.value("text").and_then(Value::as_object).into_iter().flatten();
    for (name, value) in options.filter(|(_, value)| !value.is_null()) {
        if name == "format" {
            form::of_text_format(value, edits)?;
        } else {
            let shown = short(name);
            let param = format!("text.{shown}");
            let text = format!("`{param}` is not supported, only `text.format` is");
            return Err(ApiError::field(param, text).with_code("unsupported_parameter"));
        }
    }
    Ok(())
}

/// How many of the best tokens are told beside each, where tokens are asked for.
fn wants_tokens(fields: &Fields) -> Result<Option<usize>, ApiError> {
    let included = fields.value("include").and_then(Value::as_array).into_iter().flatten();
    let mut has_logprobs = false;
    for name in included.filter_map(Value::as_str) {
        if name != LOGPROBS {
            let shown = short(name);
            let text = format!("`include` has `{shown}`, only `{LOGPROBS}` is supported");
            return Err(ApiError::field("include", text).with_code("unsupported_parameter"));
        }
        has_logprobs = true;
    }
    let top = fields.count("top_logprobs").unwrap_or(0);
    if top > 0 && !has_logprobs {
        let text = format!("`top_logprobs` is given, but `include` does not have `{LOGPROBS}`");
        return Err(ApiError::field("top_logprobs", text));
    }
    Ok(has_logprobs.then(|| usize::try_from(top).unwrap_or(usize::MAX)))
}
