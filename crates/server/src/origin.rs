//! What a request brings with it beside its body: its id, and the trace that it is a part of.

use std::sync::{Arc, OnceLock};

use axum::http::HeaderMap;

use crate::error::ApiError;

/// The header that names a request, both ways.
pub(crate) const REQUEST_ID: &str = "x-request-id";
/// Longest id that a client may give, in bytes.
pub(crate) const REQUEST_ID_BYTES_MAX: usize = 128;

/// Where a request comes from.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// The id that the client gave it.
    pub given_id: Option<String>,
    /// The span that it was sent from, as W3C Trace Context writes it (`traceparent`).
    pub traceparent: Option<String>,
    /// The id under which it is known here, once it has one.
    id: Arc<OnceLock<String>>,
}

impl Origin {
    /// Reads the headers of a request.
    ///
    /// # Errors
    /// An `X-Request-Id` that cannot be one.
    pub(crate) fn read(headers: &HeaderMap) -> Result<Self, ApiError> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let given_id = match headers.get(REQUEST_ID) {
            None => None,
            Some(value) => {
                let bytes = value.as_bytes();
                let is_visible = bytes.iter().all(u8::is_ascii_graphic);
                if bytes.is_empty() || bytes.len() > REQUEST_ID_BYTES_MAX || !is_visible {
                    let text = format!(
                        "`X-Request-Id` has {} bytes, must be 1 to {REQUEST_ID_BYTES_MAX} \
                         visible ASCII characters",
                        bytes.len()
                    );
                    return Err(ApiError::field("X-Request-Id", text).with_code("invalid_value"));
                }
                text(REQUEST_ID).map(str::to_owned)
            }
        };
        // A broken trace is no reason to refuse anything: the standard says to begin a new one.
        let traceparent = text("traceparent").filter(|text| text.len() == 55).map(str::to_owned);
        Ok(Self { given_id, traceparent, id: Arc::default() })
    }

    /// Says under which id the request is known; the first word stands.
    pub(crate) fn set_id(&self, id: &str) {
        let _ = self.id.set(id.to_owned());
    }

    /// The id to answer with: the one that was given, else the one it got here.
    #[must_use]
    pub(crate) fn answer_id(&self) -> Option<&str> {
        self.given_id.as_deref().or_else(|| self.id.get().map(String::as_str))
    }
}
