//! JSON as text: schemas with their limits and places, documents in the form that is decoded.

use serde_json::Value;

use crate::schema::{Path, SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX, SchemaError};

/// Deepest nesting of a document.
pub const DOCUMENT_DEPTH_MAX: usize = 127;

/// Why a text is no JSON that can be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Schema(#[from] SchemaError),
    #[error("the text is no JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl ReadError {
    /// The text is always the caller's.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        true
    }
}

/// Reads the text of a schema, its keys in their order.
///
/// # Errors
/// A text beyond the limits of a schema, or one that is no JSON. A text that is too deep is not
/// read to its end, and the error has the place.
pub fn read_schema(text: &str) -> Result<Value, ReadError> {
    if text.trim().len() > 2 * SCHEMA_BYTES_MAX {
        Path::default().at_most("the length in bytes", text.len(), SCHEMA_BYTES_MAX)?;
    }
    if let Some(steps) = too_deep(text) {
        Path::of(steps).check_depth()?;
    }
    Ok(serde_json::from_str(text)?)
}

/// The first place of a JSON text that is nested deeper than a schema may be.
fn too_deep(text: &str) -> Option<Vec<String>> {
    let bytes = text.as_bytes();
    let mut steps: Vec<String> = Vec::new();
    let mut kinds: Vec<u8> = Vec::new();
    let mut name = String::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => {
                if kinds.len() > SCHEMA_DEPTH_MAX {
                    return Some(steps);
                }
                kinds.push(byte);
                steps.push(if byte == b'[' { "0".to_owned() } else { String::new() });
            }
            b'}' | b']' => {
                kinds.pop();
                steps.pop();
            }
            b':' => {
                if let Some(step) = steps.last_mut() {
                    *step = std::mem::take(&mut name);
                }
            }
            b',' if kinds.last() == Some(&b'[') => {
                if let Some(step) = steps.last_mut() {
                    *step = (step.parse::<usize>().unwrap_or(0) + 1).to_string();
                }
            }
            b'"' => {
                let end = string_end(bytes, at);
                if kinds.last() == Some(&b'{') {
                    name = serde_json::from_str(text.get(at..end)?).unwrap_or_default();
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Just past the string that begins at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// A JSON text as it is decoded: no white space, strings with the escapes that they need, numbers
/// and the order of names as they are.
///
/// # Errors
/// A text that is no JSON, or one nested deeper than `DOCUMENT_DEPTH_MAX`.
pub fn compact_json(text: &str) -> Result<String, serde_json::Error> {
    serde_json::from_str::<Value>(text)?;
    let bytes = text.as_bytes();
    let mut written = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => at += 1,
            b'"' => {
                let end = string_end(bytes, at);
                let string: String = serde_json::from_str(&text[at..end])?;
                written.push_str(&serde_json::to_string(&string)?);
                at = end;
            }
            _ => {
                written.push(char::from(byte));
                at += 1;
            }
        }
    }
    Ok(written)
}

#[cfg(test)]
mod tests;
