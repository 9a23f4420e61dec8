//! What every request passes: it gets an id, its caller a name, and those who watch are told.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State as Shared};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::listen::HEADER_BYTES_MAX;
use crate::auth::Role;
use crate::error::ApiError;
use crate::observe::Exchange;
use crate::origin::{Origin, REQUEST_ID};
use crate::state::State;

/// Names a request, and tells those who watch how it was answered.
pub(crate) async fn name(
    Shared(state): Shared<Arc<State>>,
    mut request: Request,
    next: Next,
) -> Response {
    let began_ns = state.clock.now_ns();
    let method = known(request.method());
    let path: String = request.uri().path().chars().take(128).collect();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let read = check_header(&request).and_then(|()| Origin::read(request.headers()));
    let (origin, mut response) = match read {
        Ok(origin) => {
            request.extensions_mut().insert(origin.clone());
            (origin, next.run(request).await)
        }
        Err(error) => (Origin::default(), error.into_response()),
    };
    let id = origin.answer_id().map_or_else(|| state.wire_id("req"), str::to_owned);
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(HeaderName::from_static(REQUEST_ID), value);
    }
    if let Some(error) = response.extensions().get::<ApiError>() {
        state.observer.refused(&id, &path, error);
    }
    state.observer.answered(&Exchange {
        id: &id,
        method: &method,
        route: route.as_ref().map_or("", MatchedPath::as_str),
        status: response.status(),
        took: Duration::from_nanos(state.clock.now_ns().saturating_sub(began_ns)),
    });
    response
}

/// Refuses a header above the limit that came all at once: the reader of HTTP looks at its buffer
/// only where the header is not whole yet.
fn check_header(request: &Request) -> Result<(), ApiError> {
    let uri = request.uri().path_and_query().map_or(0, |uri| uri.as_str().len());
    // A colon, a space and the end of the line are beside each.
    let lines = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    let bytes = uri + lines.sum::<usize>();
    if bytes <= HEADER_BYTES_MAX {
        return Ok(());
    }
    let text = format!("the header has {bytes} bytes, the limit is {HEADER_BYTES_MAX}");
    let error = ApiError::bad_request(text);
    Err(error.with_status(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE))
}

/// The method, where HTTP has it: a client may make up any number of others.
fn known(method: &Method) -> Method {
    let all = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::DELETE,
        Method::CONNECT,
        Method::OPTIONS,
        Method::TRACE,
        Method::PATCH,
    ];
    all.into_iter().find(|one| one == method).unwrap_or_else(|| {
        // The word of OpenTelemetry's conventions for HTTP.
        Method::from_bytes(b"_OTHER").expect("invariant: letters are a method")
    })
}

/// Lets a caller with any key in.
pub(crate) async fn admit_use(
    shared: Shared<Arc<State>>,
    request: Request,
    next: Next,
) -> Response {
    admit(shared, request, next, Role::Use).await
}

/// Lets an operator in.
pub(crate) async fn admit_operate(
    shared: Shared<Arc<State>>,
    request: Request,
    next: Next,
) -> Response {
    admit(shared, request, next, Role::Operate).await
}

/// Lets a request in, with its caller beside it.
async fn admit(
    Shared(state): Shared<Arc<State>>,
    mut request: Request,
    next: Next,
    role: Role,
) -> Response {
    let admitted = state.auth.admit(request.headers(), role).and_then(|caller| {
        if *request.method() == Method::POST {
            caller.count_request(&state.clock)?;
        }
        Ok(caller)
    });
    match admitted {
        Ok(mut caller) => {
            if let Some(origin) = request.extensions().get::<Origin>() {
                caller.origin = origin.clone();
            }
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}
