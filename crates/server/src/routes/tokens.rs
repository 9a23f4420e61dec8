//! `POST /tokenize`, `/detokenize` and `/apply-template`.

use std::sync::Arc;

use axum::extract::{Request, State as Shared};
use axum::http::StatusCode;
use axum::response::Response;
use causeway_request::TokenId;
use causeway_text::{CivilTime, DetokenizeOptions, TextError};
use serde_json::{Value, json};

use super::messages_in;
use crate::error::{ApiError, json_response, sentence};
use crate::fields::Fields;
use crate::fields::tokens::{APPLY_TEMPLATE, DETOKENIZE, TOKENIZE};
use crate::http::body;
use crate::served::Served;
use crate::state::State;

/// Text or messages to token ids.
///
/// # Errors
/// Whatever is wrong with the request.
pub(crate) async fn tokenize(
    Shared(state): Shared<Arc<State>>,
    request: Request,
) -> Result<Response, ApiError> {
    let fields = Fields::read(TOKENIZE, &body::object(request, &state.bodies).await?)?;
    let model = state.registry.model(fields.text("model")).await?;
    let now = CivilTime::from_unix(state.clock.unix_s());
    off_thread(move || {
        let tokens = tokens_of(&fields, &model, now)?;
        let ids: Vec<u32> = tokens.iter().map(|token| token.0).collect();
        let mut answer = json!({
            "tokens": ids,
            "count": ids.len(),
            "max_model_len": model.about.context_len,
        });
        if fields.flag("with_pieces") {
            let piece = |token: &TokenId| {
                let bytes = model.text.tokenizer.piece(*token).unwrap_or_default();
                match std::str::from_utf8(bytes) {
                    Ok(text) => json!({ "id": token.0, "piece": text }),
                    Err(_) => json!({ "id": token.0, "piece": bytes }),
                }
            };
            answer["pieces"] = tokens.iter().map(piece).collect();
        }
        Ok(answer)
    })
    .await
}

fn tokens_of(
    fields: &Fields,
    model: &Served,
    now: Option<CivilTime>,
) -> Result<Vec<TokenId>, ApiError> {
    let text = fields.text("content").or(fields.text("prompt"));
    if fields.value("messages").is_some() {
        if text.is_some() {
            return Err(ApiError::bad_request("give `messages` or a text, not both"));
        }
        let mut chat = messages_in::chat(fields, None)?;
        chat.now = now;
        chat.add_generation_prompt =
            fields.flag_or("add_generation_prompt", !chat.continue_final_message);
        return model.text.chat(&chat).map_err(of_text);
    }
    let Some(text) = text else {
        return Err(ApiError::field("content", "`content`, a text, or `messages` is needed"));
    };
    let adds = fields.flag("add_special") || fields.flag("add_special_tokens");
    model.text.tokenizer.encode(text, fields.flag("parse_special"), adds).map_err(of_text)
}

/// Token ids to text.
///
/// # Errors
/// Whatever is wrong with the request.
pub(crate) async fn detokenize(
    Shared(state): Shared<Arc<State>>,
    request: Request,
) -> Result<Response, ApiError> {
    let fields = Fields::read(DETOKENIZE, &body::object(request, &state.bodies).await?)?;
    let model = state.registry.model(fields.text("model")).await?;
    off_thread(move || {
        let Some(list) = fields.value("tokens").and_then(Value::as_array) else {
            return Err(ApiError::field("tokens", "`tokens` is missing: a list of ids is needed"));
        };
        let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok()).map(TokenId);
        let tokens: Vec<TokenId> = list.iter().filter_map(id).collect();
        let show_control = !fields.flag("skip_special_tokens");
        let options = DetokenizeOptions { show_control, continues: false };
        let text = model.text.tokenizer.decode(&tokens, options);
        let text =
            text.map_err(|error| ApiError { param: Some("tokens".to_owned()), ..of_text(error) })?;
        Ok(json!({ "content": text, "prompt": text }))
    })
    .await
}

/// Messages to the text of a prompt.
///
/// # Errors
/// Whatever is wrong with the request, or what the template refuses.
pub(crate) async fn apply_template(
    Shared(state): Shared<Arc<State>>,
    request: Request,
) -> Result<Response, ApiError> {
    let fields = Fields::read(APPLY_TEMPLATE, &body::object(request, &state.bodies).await?)?;
    let model = state.registry.model(fields.text("model")).await?;
    let now = CivilTime::from_unix(state.clock.unix_s());
    off_thread(move || {
        let mut chat = messages_in::chat(&fields, None)?;
        chat.now = now;
        chat.add_generation_prompt =
            fields.flag_or("add_generation_prompt", !chat.continue_final_message);
        let text = model.text.render(&chat).map_err(of_text)?.text;
        Ok(json!({ "prompt": text }))
    })
    .await
}

/// Runs what takes its time where it keeps nobody waiting; a panic ends this request alone.
pub(super) async fn off_thread(
    work: impl FnOnce() -> Result<Value, ApiError> + Send + 'static,
) -> Result<Response, ApiError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(answer) => Ok(json_response(StatusCode::OK, &answer?)),
        Err(_) => Err(ApiError::server("reading the request panicked; other requests go on")),
    }
}

fn of_text(error: TextError) -> ApiError {
    let text = sentence(&error);
    if error.is_callers_mistake() { ApiError::bad_request(text) } else { ApiError::server(text) }
}
