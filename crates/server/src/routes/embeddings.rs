//! `POST /v1/embeddings`: read like any request, and refused, since no model here makes vectors.

use std::sync::Arc;

use axum::extract::{Request, State as Shared};
use axum::http::StatusCode;
use axum::response::Response;

use crate::error::ApiError;
use crate::fields::Fields;
use crate::fields::embeddings::EMBEDDINGS;
use crate::http::body;
use crate::state::State;

/// Says that the model has no embeddings.
///
/// # Errors
/// Always: whatever is wrong with the request, else 501.
pub(crate) async fn refuse(
    Shared(state): Shared<Arc<State>>,
    request: Request,
) -> Result<Response, ApiError> {
    let fields = Fields::read(EMBEDDINGS, &body::object(request, &state.bodies).await?)?;
    if fields.value("input").is_none() {
        return Err(ApiError::field("input", "`input` is missing: a text is needed"));
    }
    let name = state.registry.named(fields.text("model"))?;
    let text = format!("`{name}` has no embeddings: it is a model that writes text");
    Err(ApiError::server(text)
        .with_status(StatusCode::NOT_IMPLEMENTED)
        .with_code("embeddings_not_supported"))
}
