//! Pages of other origins, which may ask only where the operator names their origin.
//!
//! The Fetch standard's "CORS protocol"; without, no header is sent and browsers refuse.

use std::sync::Arc;

use axum::extract::{Request, State as Shared};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::state::State;

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
const HEADERS: HeaderValue =
    HeaderValue::from_static("authorization, content-type, traceparent, x-api-key, x-request-id");
const EXPOSED: HeaderValue = HeaderValue::from_static("retry-after, x-request-id");
/// Seconds that a browser may remember what it was told.
const AGE: HeaderValue = HeaderValue::from_static("600");

/// Answers a browser that asks first, and marks what its page may read.
pub(crate) async fn allow(
    Shared(state): Shared<Arc<State>>,
    request: Request,
    next: Next,
) -> Response {
    if state.cors_origins.is_empty() {
        return next.run(request).await;
    }
    let allowed = allowed(&state.cors_origins, request.headers());
    let asks_first = *request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = match (asks_first, &allowed) {
        (true, Some(_)) => {
            let mut response = StatusCode::NO_CONTENT.into_response();
            let headers = response.headers_mut();
            headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
            headers.insert(header::ACCESS_CONTROL_MAX_AGE, AGE);
            response
        }
        _ => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    if let Some(origin) = allowed {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
    response
}

/// The origin that asks, where it is one of those that may.
fn allowed(origins: &[String], headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(header::ORIGIN)?;
    let is_any = origins.iter().any(|one| one == "*");
    let is_named = origins.iter().any(|one| one.as_bytes() == origin.as_bytes());
    if is_any { Some(HeaderValue::from_static("*")) } else { is_named.then(|| origin.clone()) }
}
