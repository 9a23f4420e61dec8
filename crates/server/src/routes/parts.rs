//! Parts of objects inside a request: each is known and of its type, or refused by its path.

use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::fields::{Plain, wrong};
use crate::short::short;

/// A part of an object; null where it is absent.
pub(super) fn part<'g>(given: &'g Map<String, Value>, name: &str) -> &'g Value {
    given.get(name).unwrap_or(&Value::Null)
}

/// A value that must be an object.
///
/// # Errors
/// Another one.
pub(super) fn object<'v>(at: &str, value: &'v Value) -> Result<&'v Map<String, Value>, ApiError> {
    value.as_object().ok_or_else(|| wrong(at, value, "an object"))
}

/// A part that must be a text.
///
/// # Errors
/// Another one, or none.
pub(super) fn text<'g>(
    at: &str,
    given: &'g Map<String, Value>,
    name: &str,
) -> Result<&'g str, ApiError> {
    let value = part(given, name);
    value.as_str().ok_or_else(|| wrong(&format!("{at}.{name}"), value, "a text"))
}

/// A part that may be true or false.
///
/// # Errors
/// Another value.
pub(super) fn flag(
    at: &str,
    given: &Map<String, Value>,
    name: &str,
) -> Result<Option<bool>, ApiError> {
    match part(given, name) {
        Value::Null => Ok(None),
        Value::Bool(flag) => Ok(Some(*flag)),
        other => Err(wrong(&format!("{at}.{name}"), other, "true or false")),
    }
}

/// Refuses a part that nothing would heed, unless it asks for what happens anyway.
///
/// # Errors
/// The first part that is not among `names`.
pub(super) fn known(at: &str, given: &Map<String, Value>, names: &[&str]) -> Result<(), ApiError> {
    let is_other = |(name, value): &(&String, &Value)| {
        !names.contains(&name.as_str()) && !value.is_null() && !asks_nothing(name, value)
    };
    match given.iter().find(is_other) {
        None => Ok(()),
        Some((name, _)) => {
            let shown = short(name);
            let text = format!("`{at}.{shown}` is not known here, only `{}`", names.join("`, `"));
            Err(ApiError::field(format!("{at}.{shown}"), text).with_code("unsupported_parameter"))
        }
    }
}

/// What clients spell out of tools, calls and blocks: prefixes are cached anyway, nothing is
/// cited, and calls are the model's own, each whole.
fn asks_nothing(name: &str, value: &Value) -> bool {
    match name {
        "async" | "defer_loading" | "eager_input_streaming" => Plain::Flag(false).is(value),
        "cache_control" => Plain::Typed("ephemeral").is(value),
        "caller" => Plain::Typed("direct").is(value),
        "allowed_callers" => *value == json!(["direct"]),
        "citations" => Plain::EmptyList.is(value),
        _ => false,
    }
}

/// What is said of a type that is not known at this path, or of none.
pub(super) fn other_type(at: &str, kind: &Value, wanted: &[&str]) -> ApiError {
    let Some(kind) = kind.as_str() else {
        let wanted = format!("`{}`", wanted.join("`, `"));
        return wrong(&format!("{at}.type"), kind, &wanted);
    };
    let shown = short(kind);
    let text =
        format!("`{at}` has the type `{shown}`, only `{}` is supported", wanted.join("`, `"));
    ApiError::field(at, text).with_code("unsupported_parameter")
}
