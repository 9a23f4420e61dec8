//! How each API asks for reasoning, or for none, in its own words: one budget of the policy.

use causeway_policy::THOUGHT_BUDGET;
use serde_json::{Map, Value, json};

use crate::effective::Base;
use crate::error::ApiError;
use crate::fields::{Edit, Fields};
use crate::short::short;

/// What is said of an effort that is no number.
const EFFORT: &str = "only `none` has a meaning here: give a budget as `reasoning_tokens_max`";

/// Anthropic's `thinking`: a budget, or none at all.
///
/// `disabled` is what happens anyway where no markers tell reasoning from text; where they do, a
/// thought is closed as it opens. Gives whether the reasoning may be shown.
///
/// # Errors
/// Another type, a budget that leaves no room for text, two budgets that differ.
pub(super) fn of_thinking(
    fields: &Fields,
    base: &Base,
    edits: &mut Vec<Edit>,
) -> Result<bool, ApiError> {
    let Some(thinking) = fields.value("thinking").and_then(Value::as_object) else {
        return Ok(true);
    };
    let refused = |name: &str, why: &str| refused("thinking", name, why);
    let kind = thinking.get("type").and_then(Value::as_str).unwrap_or_default();
    let known: &[&str] = match kind {
        "enabled" => &["type", "budget_tokens", "display"],
        "disabled" => &["type"],
        _ => return Err(refused("type", "it is `enabled` or `disabled`")),
    };
    if let Some(name) = thinking.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(refused(name, "no such thing is known of a thought"));
    }
    if kind == "disabled" {
        if has_markers(base, edits) {
            put(edits, "thinking", json!(0))?;
        }
        return Ok(true);
    }
    let budget = budget(thinking, fields)?;
    if !has_markers(base, edits) {
        let text = "`thinking` is not supported: neither `reasoning_markers` nor the server's \
                    policy says what opens a thought here and what closes it";
        return Err(ApiError::field("thinking", text).with_code("unsupported_parameter"));
    }
    put(edits, "thinking", budget)?;
    match thinking.get("display").filter(|display| !display.is_null()).map(Value::as_str) {
        None => Ok(true),
        Some(Some("omitted")) => Ok(false),
        Some(_) => Err(refused("display", "reasoning comes as it is, or is `omitted`")),
    }
}

fn budget(thinking: &Map<String, Value>, fields: &Fields) -> Result<Value, ApiError> {
    let field = "thinking.budget_tokens";
    let value = thinking.get("budget_tokens").unwrap_or(&Value::Null);
    let Some(tokens) = value.as_u64().filter(|tokens| *tokens > 0) else {
        let text = format!("`{field}` is {value}, must be a whole number from 1");
        return Err(ApiError::field(field, text).with_code("invalid_value"));
    };
    match fields.count("max_tokens") {
        Some(most) if tokens >= most => {
            let text =
                format!("`{field}` is {tokens}, must be less than `max_tokens`, which is {most}");
            Err(ApiError::field(field, text).with_code("invalid_value"))
        }
        _ => Ok(value.clone()),
    }
}

/// OpenAI's `reasoning_effort`: no model here knows degrees of it, but any can be kept from
/// reasoning.
///
/// # Errors
/// Two budgets that differ.
pub(super) fn of_effort(fields: &Fields, edits: &mut Vec<Edit>) -> Result<(), ApiError> {
    match fields.text("reasoning_effort") {
        Some(_) => put(edits, "reasoning_effort", json!(0)),
        None => Ok(()),
    }
}

/// OpenAI's `reasoning` of a response: an effort, and no summary.
///
/// # Errors
/// Anything but the effort `none`, two budgets that differ.
pub(super) fn of_reasoning(fields: &Fields, edits: &mut Vec<Edit>) -> Result<(), ApiError> {
    let given = fields.value("reasoning").and_then(Value::as_object).into_iter().flatten();
    for (name, value) in given.filter(|(_, value)| !value.is_null()) {
        let why = match (name.as_str(), value.as_str()) {
            ("effort", Some("none")) => {
                put(edits, "reasoning", json!(0))?;
                continue;
            }
            ("effort", _) => EFFORT,
            _ => "reasoning is text here, and comes as it is",
        };
        return Err(refused("reasoning", name, why));
    }
    Ok(())
}

/// What is said of a part of `field` that means nothing here.
fn refused(field: &str, name: &str, why: &str) -> ApiError {
    let shown = short(name);
    let param = format!("{field}.{shown}");
    let text = format!("`{param}` is not supported: {why}");
    ApiError::field(param, text).with_code("unsupported_parameter")
}

fn has_markers(base: &Base, edits: &[Edit]) -> bool {
    base.own("reasoning.open").is_some() || edits.iter().any(|edit| edit.path == "reasoning.open")
}

/// One more budget, which must be the one that another field gave.
fn put(edits: &mut Vec<Edit>, field: &'static str, value: Value) -> Result<(), ApiError> {
    if let Some(other) =
        edits.iter().find(|edit| edit.path == THOUGHT_BUDGET && edit.value != value)
    {
        let text = format!(
            "`{}` is {}, but `{field}` makes it {value}: give one of them",
            other.field, other.value
        );
        return Err(ApiError::field(field, text));
    }
    edits.push(Edit { field, path: THOUGHT_BUDGET, value });
    Ok(())
}
