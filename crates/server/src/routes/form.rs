//! How each API asks for an answer of a set form, in its own words: one form of the policy.

use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::fields::{Edit, Fields, wrong};

/// OpenAI's `response_format` of a chat.
///
/// # Errors
/// Another type, a schema that is missing, a part that is not known.
pub(super) fn of_response_format(fields: &Fields, edits: &mut Vec<Edit>) -> Result<(), ApiError> {
    let at = "response_format";
    let Some(format) = fields.value(at).and_then(Value::as_object) else { return Ok(()) };
    let edit = match kind_of(format) {
        "text" => {
            known(at, format, &["type"])?;
            None
        }
        "json_object" => {
            // Some engines take a schema here too.
            known(at, format, &["type", "schema"])?;
            let given = format.get("schema").filter(|schema| !schema.is_null());
            Some(match given {
                Some(schema) => {
                    ("constraints.schema", schema_text("response_format.schema", schema)?)
                }
                None => ("constraints.json_object", json!(true)),
            })
        }
        "json_schema" => {
            known(at, format, &["type", "json_schema"])?;
            let inner = format.get("json_schema").and_then(Value::as_object);
            let at = "response_format.json_schema";
            let inner = inner.ok_or_else(|| wrong(at, part(format, "json_schema"), "an object"))?;
            Some(("constraints.schema", named_schema(at, inner, &["name", "description"])?))
        }
        other => return Err(unknown_type(at, other)),
    };
    edits.extend(edit.map(|(path, value)| Edit { field: at, path, value }));
    Ok(())
}

/// OpenAI's `text.format` of a response.
///
/// # Errors
/// As `of_response_format`.
pub(super) fn of_text_format(format: &Value, edits: &mut Vec<Edit>) -> Result<(), ApiError> {
    let at = "text.format";
    let object = format.as_object().ok_or_else(|| wrong(at, format, "an object"))?;
    let edit = match kind_of(object) {
        "text" => {
            known(at, object, &["type"])?;
            None
        }
        "json_object" => {
            known(at, object, &["type"])?;
            Some(("constraints.json_object", json!(true)))
        }
        "json_schema" => {
            let value = named_schema(at, object, &["type", "name", "description"])?;
            Some(("constraints.schema", value))
        }
        other => return Err(unknown_type(at, other)),
    };
    edits.extend(edit.map(|(path, value)| Edit { field: at, path, value }));
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

/// OpenAI's `tools` with `tool_choice`: calls that the answer may be, or must be.
///
/// # Errors
/// A choice without tools.
pub(super) fn of_tools(fields: &Fields, edits: &mut Vec<Edit>) -> Result<(), ApiError> {
    let choice = fields.value("tool_choice");
    if !has_tools(fields) {
        let is_free =
            choice.is_none_or(|choice| *choice == json!("none") || *choice == json!("auto"));
        if is_free {
            return Ok(());
        }
        let text = "`tool_choice` asks for a call, but there are no `tools`";
        return Err(ApiError::field("tool_choice", text).with_code("invalid_value"));
    }
    let mut asked = Map::new();
    for name in ["tools", "tool_choice", "parallel_tool_calls"] {
        if let Some(value) = fields.value(name) {
            asked.insert(name.to_owned(), value.clone());
        }
    }
    let value = json!(Value::Object(asked).to_string());
    edits.push(Edit { field: "tools", path: "constraints.tools", value });
    Ok(())
}

/// Whether tools are given that may be called.
pub(super) fn has_tools(fields: &Fields) -> bool {
    let given = fields.value("tools").and_then(Value::as_array);
    let may = fields.value("tool_choice").is_none_or(|choice| *choice != json!("none"));
    may && given.is_some_and(|tools| !tools.is_empty())
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

fn kind_of(format: &Map<String, Value>) -> &str {
    part(format, "type").as_str().unwrap_or_default()
}

/// A part of a format; null where it is absent.
fn part<'f>(format: &'f Map<String, Value>, name: &str) -> &'f Value {
    format.get(name).unwrap_or(&Value::Null)
}

/// The schema of a format that has a name for it too.
fn named_schema(at: &str, format: &Map<String, Value>, names: &[&str]) -> Result<Value, ApiError> {
    let all: Vec<&str> = names.iter().copied().chain(["schema", "strict"]).collect();
    known(at, format, &all)?;
    let strict = part(format, "strict");
    if !strict.is_null() && !strict.is_boolean() {
        return Err(wrong(&format!("{at}.strict"), strict, "true or false"));
    }
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

/// Refuses a part of a format that nothing would heed.
fn known(at: &str, format: &Map<String, Value>, names: &[&str]) -> Result<(), ApiError> {
    match format.keys().find(|name| !names.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let shown: String = name.chars().take(64).collect();
            let text = format!("`{at}.{shown}` is not known here, only `{}`", names.join("`, `"));
            Err(ApiError::field(format!("{at}.{shown}"), text).with_code("unsupported_parameter"))
        }
    }
}

fn unknown_type(at: &str, kind: &str) -> ApiError {
    let shown: String = kind.chars().take(64).collect();
    let text = format!(
        "`{at}` has the type `{shown}`, must be one of `text`, `json_object`, `json_schema`"
    );
    ApiError::field(at, text).with_code("unsupported_parameter")
}
