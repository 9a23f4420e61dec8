//! How each API asks for an answer of a set form, in its own words: one form of the policy.

use serde_json::{Map, Value, json};

use super::parts::{flag, known, part};
use crate::error::ApiError;
use crate::fields::{Edit, Fields, wrong};
use crate::short::short;

/// OpenAI's `response_format` of a chat: a schema lies in an object of its own.
///
/// # Errors
/// Another type, a schema that is missing, a part that is not known.
pub(super) fn of_response_format(fields: &Fields, edits: &mut Vec<Edit>) -> Result<(), ApiError> {
    let at = "response_format";
    let Some(format) = fields.value(at).and_then(Value::as_object) else { return Ok(()) };
    of_format(at, format, edits, || {
        known(at, format, &["type", "json_schema"])?;
        let inner = format.get("json_schema").and_then(Value::as_object);
        let at = "response_format.json_schema";
        let inner = inner.ok_or_else(|| wrong(at, part(format, "json_schema"), "an object"))?;
        named_schema(at, inner, &["name", "description"])
    })
}

/// OpenAI's `text.format` of a response: a schema stands beside the type.
///
/// # Errors
/// As `of_response_format`.
pub(super) fn of_text_format(format: &Value, edits: &mut Vec<Edit>) -> Result<(), ApiError> {
    let at = "text.format";
    let object = format.as_object().ok_or_else(|| wrong(at, format, "an object"))?;
    of_format(at, object, edits, || named_schema(at, object, &["type", "name", "description"]))
}

/// A format of either API, which differ in where the schema is.
fn of_format(
    at: &'static str,
    format: &Map<String, Value>,
    edits: &mut Vec<Edit>,
    schema: impl FnOnce() -> Result<Value, ApiError>,
) -> Result<(), ApiError> {
    let kinds = "one of `text`, `json_object`, `json_schema`";
    let kind = part(format, "type");
    let kind = kind.as_str().ok_or_else(|| wrong(&format!("{at}.type"), kind, kinds))?;
    let (path, value) = match kind {
        "text" => return known(at, format, &["type"]),
        "json_object" => {
            // Some engines take a schema here too.
            known(at, format, &["type", "schema"])?;
            match part(format, "schema") {
                Value::Null => ("constraints.json_object", json!(true)),
                given => ("constraints.schema", schema_text(&format!("{at}.schema"), given)?),
            }
        }
        "json_schema" => ("constraints.schema", schema()?),
        other => {
            let text = format!("`{at}` has the type `{}`, must be {kinds}", short(other));
            return Err(ApiError::field(at, text).with_code("unsupported_parameter"));
        }
    };
    edits.push(Edit { field: at, path, value });
    Ok(())
}

/// The schemas that other engines' clients send: `guided_json`, `structured_outputs`.
///
/// # Errors
/// A schema that is no object, a part that is not known.
pub(super) fn of_guided(fields: &Fields, edits: &mut Vec<Edit>) -> Result<(), ApiError> {
    if let Some(schema) = fields.value("guided_json") {
        let value = schema_text("guided_json", schema)?;
        edits.push(Edit { field: "guided_json", path: "constraints.schema", value });
    }
    check_choice("guided_choice", fields.value("guided_choice"))?;
    let at = "structured_outputs";
    let Some(asked) = fields.value(at).and_then(Value::as_object) else { return Ok(()) };
    known(at, asked, &["json", "json_object", "regex", "grammar", "choice"])?;
    check_choice("structured_outputs.choice", asked.get("choice"))?;
    for (name, value) in asked.iter().filter(|(_, value)| !value.is_null()) {
        let (path, value) = match name.as_str() {
            "json" => ("constraints.schema", schema_text("structured_outputs.json", value)?),
            "json_object" => ("constraints.json_object", value.clone()),
            "regex" => ("constraints.regex", value.clone()),
            "grammar" => ("constraints.grammar", value.clone()),
            _ => ("constraints.choice", value.clone()),
        };
        edits.push(Edit { field: at, path, value });
    }
    Ok(())
}

/// Refuses a list of nothing, which to a policy is no form at all.
fn check_choice(at: &str, list: Option<&Value>) -> Result<(), ApiError> {
    match list {
        Some(Value::Array(texts)) if texts.is_empty() => {
            Err(wrong(at, &json!([]), "a list of at least one text"))
        }
        _ => Ok(()),
    }
}

/// The schema of a format that has a name for it too.
fn named_schema(at: &str, format: &Map<String, Value>, names: &[&str]) -> Result<Value, ApiError> {
    let all: Vec<&str> = names.iter().copied().chain(["schema", "strict"]).collect();
    known(at, format, &all)?;
    flag(at, format, "strict")?;
    schema_text(&format!("{at}.schema"), part(format, "schema"))
}

/// A schema as text, its properties in their order; some clients send it as text already.
fn schema_text(at: &str, schema: &Value) -> Result<Value, ApiError> {
    match schema {
        Value::Object(_) | Value::Bool(_) => Ok(json!(schema.to_string())),
        Value::String(text) => Ok(json!(text)),
        other => Err(wrong(at, other, "a JSON schema")),
    }
}
