//! Which fields are verdicts and which hold the reasoning for them, by their schemas and names.

use serde_json::Value;

/// What a field is for the fields around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Plain,
    /// A choice among few, a truth, a number, or a text named like one.
    Verdict,
    /// Free text that says why.
    Reasoning,
}

/// Words of a name that hold reasoning.
const REASONING: &[&str] = &[
    "reasoning",
    "reason",
    "reasons",
    "rationale",
    "explanation",
    "explanations",
    "explain",
    "thought",
    "thoughts",
    "thinking",
    "analysis",
    "evidence",
    "justification",
    "deliberation",
    "argument",
    "arguments",
    "why",
];
/// Beginnings of words that a description of reasoning has.
const DESCRIBED: &[&str] =
    &["reason", "rational", "expla", "thought", "thinking", "analy", "evidence", "justif", "why"];
/// Words of a name that hold a verdict, whatever its schema.
const VERDICT: &[&str] = &[
    "score",
    "rating",
    "grade",
    "verdict",
    "decision",
    "label",
    "rank",
    "answer",
    "conclusion",
    "judgement",
    "judgment",
    "category",
    "severity",
    "confidence",
];

/// The role of a property.
pub(super) fn of(name: &str, schema: &Value) -> Role {
    let words = words(name);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    if is_choice(schema) {
        return Role::Verdict;
    }
    if !is_free_text(schema) {
        return Role::Plain;
    }
    if has(REASONING) {
        return Role::Reasoning;
    }
    if has(VERDICT) {
        return Role::Verdict;
    }
    let told = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let is_told =
        self::words(told).iter().any(|word| DESCRIBED.iter().any(|start| word.starts_with(start)));
    if is_told { Role::Reasoning } else { Role::Plain }
}

/// Whether the name of a reasoning says that it is of this verdict: they share a word that is no
/// word for either.
pub(super) fn names(reasoning: &str, verdict: &str) -> bool {
    let verdict = words(verdict);
    let own = words(reasoning).into_iter().filter(|word| !REASONING.contains(&word.as_str()));
    own.into_iter().any(|word| verdict.contains(&word))
}

/// Lower-case words of a text or of a name in any of the usual spellings.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in text.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        if c.is_alphanumeric() {
            words.last_mut().expect("it began with one").extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase() || c.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether a value is one of several that the schema lists, a truth, or a number.
fn is_choice(schema: &Value) -> bool {
    if schema.get("const").is_some() {
        return false;
    }
    if let Some(list) = schema.get("enum").and_then(Value::as_array) {
        return list.len() > 1;
    }
    types(schema).iter().any(|kind| matches!(*kind, "boolean" | "integer" | "number"))
        || any_way(schema, is_choice)
}

/// Whether a value is a text of the model's own words, or a list of such.
fn is_free_text(schema: &Value) -> bool {
    if schema.get("const").is_some() || schema.get("enum").is_some() {
        return false;
    }
    let kinds = types(schema);
    if kinds.contains(&"array") {
        return schema.get("items").is_some_and(|items| types(items) == ["string"]);
    }
    (kinds.contains(&"string") && schema.get("format").is_none()) || any_way(schema, is_free_text)
}

/// Whether one of the alternatives is so; `null` beside it changes nothing.
fn any_way(schema: &Value, is_so: fn(&Value) -> bool) -> bool {
    let ways = ["anyOf", "oneOf"].iter().filter_map(|keyword| schema.get(*keyword)?.as_array());
    ways.flatten().any(|way| way.get("properties").is_none() && is_so(way))
}

fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}
