//! A request's body: bounded in size and time, JSON, an object.

use std::error::Error as _;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use hyper::body::Bytes;
use serde_json::{Map, Value};

use super::json::Once;
use crate::error::ApiError;
use crate::options::WireLimits;

/// Reads the JSON object in a request's body.
///
/// # Errors
/// A body that is too large, too slow, not JSON by its header or by its bytes, or no object.
pub(crate) async fn object(
    request: Request,
    limits: &WireLimits,
) -> Result<Map<String, Value>, ApiError> {
    let (parts, body) = request.into_parts();
    check_type(&parts.headers)?;
    check_coding(&parts.headers)?;
    let bytes = read(&parts.headers, body, limits).await?;
    if bytes.is_empty() {
        return Err(ApiError::bad_request("the body is empty: a JSON object is needed"));
    }
    match serde_json::from_slice(&bytes) {
        Ok(Once(Value::Object(fields))) => Ok(fields),
        Ok(_) => Err(ApiError::bad_request("the body is not a JSON object")),
        Err(error) => Err(ApiError::bad_request(format!("the body is not valid JSON: {error}"))),
    }
}

/// A page of another site may send text, but only JSON with the server's consent.
fn check_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let essence = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let found: String = essence.chars().take(64).collect();
    let text = format!("the content type is `{found}`, must be `application/json`");
    Err(ApiError::bad_request(text).with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE))
}

/// A body is read as it comes: nothing is unpacked.
fn check_coding(headers: &HeaderMap) -> Result<(), ApiError> {
    for (name, plain) in
        [(header::CONTENT_ENCODING, "identity"), (header::TRANSFER_ENCODING, "chunked")]
    {
        for coding in headers.get_all(&name) {
            if coding.as_bytes().eq_ignore_ascii_case(plain.as_bytes()) {
                continue;
            }
            let found = String::from_utf8_lossy(coding.as_bytes());
            let found: String = found.chars().take(64).collect();
            let text = format!("the `{name}` is `{found}`, must be `{plain}` or absent");
            let error = ApiError::bad_request(text);
            return Err(error.with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
    }
    Ok(())
}

/// Whether a body ended as the connection or its framing did, not at the limit.
fn is_broken(error: &axum::Error) -> bool {
    let mut causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.any(|cause| cause.is::<hyper::Error>())
}

async fn read(headers: &HeaderMap, body: Body, limits: &WireLimits) -> Result<Bytes, ApiError> {
    let bytes_max = limits.body_bytes_max;
    let too_large = |found: &str| {
        ApiError::bad_request(format!("the body is {found}, the limit is {bytes_max} bytes"))
            .with_status(StatusCode::PAYLOAD_TOO_LARGE)
    };
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let length = length.and_then(|length| length.parse::<u64>().ok());
    if let Some(length) = length.filter(|&length| length > bytes_max as u64) {
        return Err(too_large(&format!("{length} bytes long")));
    }
    let reading = axum::body::to_bytes(body, bytes_max);
    match tokio::time::timeout(limits.body_time_max, reading).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_broken(&error) => {
            Err(ApiError::bad_request("the body breaks off, or is not framed as its header says"))
        }
        Ok(Err(_)) => Err(too_large("too long")),
        Err(_) => {
            let seconds = limits.body_time_max.as_secs();
            let text = format!("the body took longer than the limit of {seconds} seconds");
            Err(ApiError::bad_request(text).with_status(StatusCode::REQUEST_TIMEOUT))
        }
    }
}
