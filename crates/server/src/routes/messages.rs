//! `POST /v1/messages` and `/v1/messages/count_tokens`: Anthropic's words for a chat.

mod input;
mod object;
mod stream;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State as Shared};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use causeway_session::Given;
use causeway_text::CivilTime;
use serde_json::{Map, Value, json};

use super::choices::{self, Delivery};
use super::models::ANTHROPIC_VERSION;
use super::segments::{self, Segments};
use super::tools::{Tools, Words};
use super::{thought, tokens};
use crate::ask::Ask;
use crate::auth::Caller;
use crate::effective::in_words_of;
use crate::error::{ApiError, json_response};
use crate::fields::messages::{COUNT_TOKENS, MESSAGES};
use crate::fields::{Edit, Fields};
use crate::http::{body, sse};
use crate::origin::REQUEST_ID;
use crate::state::State;

/// What the ids of calls begin with.
const CALL: &str = "toolu";

/// Answers messages, whole or as a stream.
///
/// # Errors
/// Whatever is wrong with the request, or has no room.
pub(crate) async fn answer(
    Shared(state): Shared<Arc<State>>,
    request: Request,
) -> Result<Response, ApiError> {
    let caller = choices::caller(&request)?;
    let object = body::object(request, &state.bodies).await?;
    let (ask, delivery) = read(object, caller, &state)?;
    let mut answering = Words::Messages.begin(&state, ask).await?;
    if delivery.streams {
        let (sse, response) = sse::stream();
        let segments = Segments::new(CALL, &answering);
        tokio::spawn(async move {
            let events = stream::Events { answering, delivery, sse, state, segments };
            // A reader that is gone needs no last word.
            let _ = events.write().await;
        });
        return Ok(response);
    }
    let (segments, ended) =
        segments::whole(CALL, &mut answering, delivery.include_reasoning).await?;
    let message = object::ended(&answering, &segments, &ended, delivery.extends);
    Ok(json_response(StatusCode::OK, &message))
}

/// Counts the tokens of the prompt that messages would be.
///
/// # Errors
/// Whatever is wrong with the request.
pub(crate) async fn count_tokens(
    Shared(state): Shared<Arc<State>>,
    request: Request,
) -> Result<Response, ApiError> {
    let fields = Fields::read(COUNT_TOKENS, &body::object(request, &state.bodies).await?)?;
    // A thought has no part in the prompt, but what is said of it must be right.
    let base = state.registry.base(fields.text("model"));
    thought::of_thinking(&fields, base, &mut Vec::new())?;
    let tools = Tools::read(Words::Messages, &fields)?;
    let model = state.registry.model(fields.text("model")).await?;
    let now = CivilTime::from_unix(state.clock.unix_s());
    let edits: Vec<Edit> = tools.edit().into_iter().collect();
    let file = state.registry.base(fields.text("model")).with(&edits)?;
    tokens::off_thread(move || {
        // Tools that no message could have are in no prompt.
        let form = model.compile(&file).and_then(|policy| model.form(&policy));
        form.map_err(|error| Words::Messages.error(in_words_of(&edits, error)))?;
        let given = Given::Messages(input::chat(&fields, tools.told())?);
        let prompt = model.prompt(given, &file, now)?;
        Ok(json!({ "input_tokens": prompt.tokens.len() }))
    })
    .await
}

/// Gives errors of these endpoints Anthropic's form, whoever made them, and a request's id the
/// header that Anthropic's clients read.
pub(crate) async fn in_own_words(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_below = |root: &str| path == root || path.starts_with(&format!("{root}/"));
    let is_own = is_below("/v1/messages")
        || (is_below("/v1/models") && request.headers().contains_key(ANTHROPIC_VERSION));
    let mut response = next.run(request).await;
    if !is_own {
        return response;
    }
    if let Some(error) = response.extensions().get::<ApiError>() {
        let words = object::error(error).to_string();
        *response.body_mut() = Body::from(words);
        response.headers_mut().remove(header::CONTENT_LENGTH);
    }
    if let Some(id) = response.headers().get(REQUEST_ID).cloned() {
        response.headers_mut().insert("request-id", id);
    }
    response
}

/// Reads a body into what every API asks for.
fn read(
    object: Map<String, Value>,
    caller: Caller,
    state: &State,
) -> Result<(Ask, Delivery), ApiError> {
    let mut fields = Fields::read(MESSAGES, &object)?;
    let delivery = choices::delivery(&fields)?;
    let tools = Tools::read(Words::Messages, &fields)?;
    let chat = input::chat(&fields, tools.told())?;
    let base = state.registry.base(fields.text("model"));
    if fields.value("max_tokens").is_none() && !base.limits_tokens() {
        let text = "`max_tokens` is missing: a whole number from 1 is needed";
        return Err(ApiError::field("max_tokens", text));
    }
    let mut edits = choices::edits(&mut fields)?;
    let shows = thought::of_thinking(&fields, base, &mut edits)?;
    edits.extend(tools.edit());
    let include_reasoning = delivery.include_reasoning && shows;
    let delivery = Delivery { include_reasoning, ..delivery };
    let ask =
        choices::ask(&fields, ("msg", "messages"), Given::Messages(chat), edits, caller, object);
    Ok((ask, delivery))
}
