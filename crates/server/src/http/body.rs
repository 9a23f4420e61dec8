//! A request's body: bounded in size and time, JSON, an object.

use std::future::poll_fn;
use std::pin::Pin;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use hyper::body::Body as _;
use serde_json::{Map, Value};

use super::bodies::{Bodies, Share};
use super::json::Once;
use crate::error::ApiError;
use crate::options::WireLimits;
use crate::short::short;

/// Reads the JSON object in a request's body.
///
/// # Errors
/// A body that is too large, alone or with all that are being read, too slow, not JSON by its
/// header or by its bytes, or no object.
pub(crate) async fn object(
    request: Request,
    bodies: &Bodies,
) -> Result<Map<String, Value>, ApiError> {
    let (parts, body) = request.into_parts();
    check_type(&parts.headers)?;
    check_coding(&parts.headers)?;
    // Held until the bytes have been read as JSON.
    let mut share = bodies.share();
    let bytes = read(&parts.headers, body, &bodies.limits, &mut share).await?;
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
    let found = short(essence);
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
            let found = short(&found);
            let text = format!("the `{name}` is `{found}`, must be `{plain}` or absent");
            let error = ApiError::bad_request(text);
            return Err(error.with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
    }
    Ok(())
}

/// Why the rest of a body is not read.
enum Cut {
    /// The connection or the body's framing broke.
    Broken,
    TooLarge,
    /// All bodies together are; how large.
    AllTooLarge(usize),
}

/// Joins the pieces of a body as they come.
async fn join(mut body: Body, bytes_max: usize, share: &mut Share<'_>) -> Result<Vec<u8>, Cut> {
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        // What is no data is a trailer, in which nothing is looked for.
        let Ok(piece) = frame.map_err(|_| Cut::Broken)?.into_data() else { continue };
        if bytes.len() + piece.len() > bytes_max {
            return Err(Cut::TooLarge);
        }
        share.grow(piece.len()).map_err(Cut::AllTooLarge)?;
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

async fn read(
    headers: &HeaderMap,
    body: Body,
    limits: &WireLimits,
    share: &mut Share<'_>,
) -> Result<Vec<u8>, ApiError> {
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
    let reading = join(body, bytes_max, share);
    match tokio::time::timeout(limits.body_time_max, reading).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(Cut::Broken)) => {
            Err(ApiError::bad_request("the body breaks off, or is not framed as its header says"))
        }
        Ok(Err(Cut::TooLarge)) => Err(too_large("too long")),
        Ok(Err(Cut::AllTooLarge(bytes))) => {
            let most = limits.bodies_bytes_max;
            let text = format!(
                "the bodies being read are {bytes} bytes together, the limit is {most} bytes"
            );
            Err(ApiError::busy(text, 1))
        }
        Err(_) => {
            let seconds = limits.body_time_max.as_secs();
            let text = format!("the body took longer than the limit of {seconds} seconds");
            Err(ApiError::bad_request(text).with_status(StatusCode::REQUEST_TIMEOUT))
        }
    }
}
