//! `GET /health`: the process answers. `GET /ready`: it would answer a request now.

use std::sync::Arc;

use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use crate::error::json_response;
use crate::state::State;

/// 200 as long as the process can say so.
pub(crate) async fn health() -> Response {
    json_response(StatusCode::OK, &json!({ "status": "ok" }))
}

/// 200 where a model is loaded and every step loop came round lately, else 503 with the reason.
pub(crate) async fn ready(Shared(state): Shared<Arc<State>>) -> Response {
    match state.unready().await {
        None => json_response(StatusCode::OK, &json!({ "status": "ready" })),
        Some(reason) => {
            let body = json!({ "status": "not ready", "reason": reason });
            json_response(StatusCode::SERVICE_UNAVAILABLE, &body)
        }
    }
}
