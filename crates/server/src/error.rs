//! A refusal or a failure as the wire says it, in the shape that OpenAI's clients read.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use causeway_engine::Refusal;
use causeway_session::SessionError;
use serde_json::{Value, json};

/// What went wrong: a status, one sentence, and the field it is about.
///
/// Rooms have typed errors; this is where they become words on the wire, and nothing reads it.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiError {
    pub status: StatusCode,
    /// OpenAI's `type`.
    pub kind: &'static str,
    /// OpenAI's `code`, where one is known.
    pub code: Option<&'static str>,
    /// The field that is wrong.
    pub param: Option<String>,
    pub message: String,
    /// Seconds after which another try makes sense.
    pub retry_after_s: Option<u64>,
}

impl ApiError {
    fn of(status: StatusCode, kind: &'static str, message: String) -> Self {
        Self { status, kind, code: None, param: None, message, retry_after_s: None }
    }

    /// The caller's mistake, without one field to name.
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::of(StatusCode::BAD_REQUEST, "invalid_request_error", message.into())
    }

    /// The caller's mistake in one field.
    #[must_use]
    pub fn field(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self { param: Some(name.into()), ..Self::bad_request(message) }
    }

    /// Nothing of that name.
    #[must_use]
    pub fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        let error = Self::of(StatusCode::NOT_FOUND, "invalid_request_error", message.into());
        Self { code: Some(code), ..error }
    }

    /// Our failure, or the world's.
    #[must_use]
    pub fn server(message: impl Into<String>) -> Self {
        Self::of(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message.into())
    }

    /// No room: another try may succeed.
    #[must_use]
    pub fn busy(message: impl Into<String>, retry_after_s: u64) -> Self {
        let error = Self::of(StatusCode::SERVICE_UNAVAILABLE, "server_error", message.into());
        Self { code: Some("overloaded"), retry_after_s: Some(retry_after_s), ..error }
    }

    /// The same error under another status.
    #[must_use]
    pub fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// The same error with a code.
    #[must_use]
    pub fn with_code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    /// The object under `error`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Self { kind, code, param, message, .. } = self;
        json!({ "error": { "message": message, "type": kind, "param": param, "code": code } })
    }
}

/// An error and its causes in one sentence; some causes draw a picture below their first line.
#[must_use]
pub fn sentence(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string().lines().next().unwrap_or_default().to_owned();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        let line = cause_text.lines().next().unwrap_or_default();
        // A transparent error says what its cause says.
        if !text.ends_with(line) {
            text.push_str(": ");
            text.push_str(line);
        }
        source = cause.source();
    }
    text
}

impl From<SessionError> for ApiError {
    fn from(error: SessionError) -> Self {
        let text = sentence(&error);
        if error.is_callers_mistake() { Self::bad_request(text) } else { Self::server(text) }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let text = sentence(&refusal);
        if refusal.is_callers_mistake() { Self::bad_request(text) } else { Self::busy(text, 1) }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = json_response(self.status, &self.to_json());
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        // Those who watch read it on its way out.
        response.extensions_mut().insert(self);
        response
    }
}

/// A response of JSON.
#[must_use]
pub fn json_response(status: StatusCode, body: &Value) -> Response {
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (status, kind, body.to_string()).into_response()
}
