//! The routes, and what every request passes on its way to one.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};

use crate::error::ApiError;
use crate::http::{cors, door};
use crate::routes::{
    chat, completions, embeddings, health, messages, metrics, models, requests, responses, tokens,
};
use crate::state::State;

/// Every route of the server.
pub(crate) fn app(state: Arc<State>) -> Router {
    Router::new()
        .route("/v1/chat/completions", post(chat::answer))
        .route("/v1/completions", post(completions::answer))
        .route("/v1/responses", post(responses::answer))
        .route("/v1/messages", post(messages::answer))
        .route("/v1/messages/count_tokens", post(messages::count_tokens))
        .route("/v1/embeddings", post(embeddings::refuse))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*name}", get(models::one))
        .route("/v1/requests", get(requests::list))
        .route("/v1/requests/{id}", get(requests::tell).delete(requests::cancel))
        .route("/tokenize", post(tokens::tokenize))
        .route("/detokenize", post(tokens::detokenize))
        .route("/apply-template", post(tokens::apply_template))
        .method_not_allowed_fallback(wrong_method)
        .fallback(unknown)
        .layer(from_fn_with_state(Arc::clone(&state), door::admit_use))
        .merge(for_operators(&state))
        // Whoever watches the process needs no key.
        .route("/health", get(health::health))
        .route("/ready", get(health::ready))
        .layer(from_fn_with_state(Arc::clone(&state), cors::allow))
        .layer(from_fn_with_state(Arc::clone(&state), door::name))
        .layer(from_fn(messages::in_own_words))
        .with_state(state)
}

/// Routes that need the role `operate` where there are keys.
fn for_operators(state: &Arc<State>) -> Router<Arc<State>> {
    Router::new()
        .route("/metrics", get(metrics::tell))
        .layer(from_fn_with_state(Arc::clone(state), door::admit_operate))
}

async fn unknown(request: Request) -> Response {
    let path: String = request.uri().path().chars().take(128).collect();
    ApiError::not_found("unknown_url", format!("there is nothing at `{path}`")).into_response()
}

async fn wrong_method(method: Method, request: Request) -> Response {
    let path: String = request.uri().path().chars().take(128).collect();
    let method: String = method.as_str().chars().take(32).collect();
    ApiError::bad_request(format!("`{path}` does not take {method}"))
        .with_status(StatusCode::METHOD_NOT_ALLOWED)
        .into_response()
}
