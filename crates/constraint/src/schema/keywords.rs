//! The keywords of draft 2020-12 and what becomes of each.

use serde_json::{Map, Value};

use super::{Path, SchemaError, SchemaProblem, values};

/// What is done with a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyword {
    /// Says something about a value that no value can break, or names a place.
    Annotation,
    /// Holds the answer, and is lowered.
    Held,
    /// Would hold the answer, and cannot be held.
    Unsupported,
    /// The draft does not know it: it has no effect, and the response says so.
    Unknown,
}

/// The keyword's treatment.
pub(super) fn keyword(name: &str) -> Keyword {
    match name {
        "$anchor" | "$comment" | "$defs" | "$dynamicAnchor" | "$id" | "$schema" | "$vocabulary"
        | "contentEncoding" | "contentMediaType" | "contentSchema" | "default" | "definitions"
        | "deprecated" | "description" | "examples" | "readOnly" | "title" | "writeOnly" => {
            Keyword::Annotation
        }
        "$ref"
        | "additionalProperties"
        | "allOf"
        | "anyOf"
        | "const"
        | "enum"
        | "exclusiveMaximum"
        | "exclusiveMinimum"
        | "format"
        | "items"
        | "maxItems"
        | "maxLength"
        | "maxProperties"
        | "maximum"
        | "minItems"
        | "minLength"
        | "minProperties"
        | "minimum"
        | "multipleOf"
        | "oneOf"
        | "pattern"
        | "patternProperties"
        | "prefixItems"
        | "properties"
        | "required"
        | "type" => Keyword::Held,
        // The last four are of older drafts, or of the engine, which would obey it.
        "$dynamicRef"
        | "contains"
        | "dependentRequired"
        | "dependentSchemas"
        | "else"
        | "if"
        | "maxContains"
        | "minContains"
        | "not"
        | "propertyNames"
        | "then"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "uniqueItems"
        | "$recursiveRef"
        | "additionalItems"
        | "dependencies"
        | "x-guidance" => Keyword::Unsupported,
        _ => Keyword::Unknown,
    }
}

/// Keywords whose value is a map from free names to schemas.
pub(super) const MAPS: &[&str] =
    &["$defs", "definitions", "properties", "patternProperties", "dependentSchemas"];

/// Keywords whose value is a document, not a schema.
pub(super) const DOCUMENTS: &[&str] = &["const", "enum", "default", "examples"];

/// The drafts whose `$schema` may be named; all are read as 2020-12.
pub(super) const DRAFTS: &[&str] = &[
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-04/schema",
    "http://json-schema.org/schema",
];

/// Refuses an annotation whose value would change the meaning of others.
pub(super) fn annotation(name: &str, value: &Value, path: &Path) -> Result<(), SchemaError> {
    if name != "$schema" {
        return Ok(());
    }
    let text = values::text(value, path)?;
    if DRAFTS.contains(&text.trim_end_matches('#')) {
        return Ok(());
    }
    path.refuse(SchemaProblem::UnsupportedValue { what: "draft", value: text.to_owned() })
}

/// Whether a keyword that cannot be held says nothing in this place.
pub(super) fn is_idle(name: &str, value: &Value, map: &Map<String, Value>) -> bool {
    match name {
        "uniqueItems" => value == &Value::Bool(false),
        "then" | "else" => !map.contains_key("if"),
        "if" => !map.contains_key("then") && !map.contains_key("else"),
        "minContains" | "maxContains" => !map.contains_key("contains"),
        "not" => value == &Value::Bool(false),
        "unevaluatedProperties" | "unevaluatedItems" | "propertyNames" => {
            value == &Value::Bool(true) || value.as_object().is_some_and(Map::is_empty)
        }
        "dependentSchemas" | "dependentRequired" => value.as_object().is_some_and(Map::is_empty),
        _ => false,
    }
}
