//! `oneOf` made `anyOf` where no document can satisfy two of its alternatives, refused elsewhere.

use serde_json::{Map, Value, json};

use super::lower::insert;
use super::{Path, SchemaError, SchemaProblem, disjoint};

/// Proves the schema and its definitions, which come back with nothing left to prove.
pub(super) fn all(
    schema: &mut Value,
    mut definitions: Map<String, Value>,
    start: &Path,
    origins: &[Path],
) -> Result<Map<String, Value>, SchemaError> {
    // Proofs read the definitions as they were, whose `oneOf` count as `anyOf`, which holds more.
    let lowered = definitions.clone();
    proved(schema, &lowered, &mut start.clone())?;
    for (definition, origin) in definitions.values_mut().zip(origins) {
        proved(definition, &lowered, &mut origin.clone())?;
    }
    Ok(definitions)
}

/// Replaces each `oneOf` by an `anyOf` once its alternatives are proved disjoint.
fn proved(
    schema: &mut Value,
    definitions: &Map<String, Value>,
    path: &mut Path,
) -> Result<(), SchemaError> {
    let Value::Object(map) = schema else {
        return Ok(());
    };
    for (keyword, value) in map.iter_mut() {
        path.at(keyword, |path| match (keyword.as_str(), value) {
            ("oneOf" | "anyOf" | "allOf" | "prefixItems", Value::Array(list)) => {
                if keyword == "oneOf" {
                    let mut proof = disjoint::Proof { definitions, steps: 0 };
                    if let Some((first, second)) = proof.overlap(list) {
                        return path.refuse(SchemaProblem::OneOf { first, second });
                    }
                }
                let mut parts = list.iter_mut().enumerate();
                parts.try_for_each(|(i, part)| path.at(i, |path| proved(part, definitions, path)))
            }
            ("properties" | "patternProperties", Value::Object(parts)) => {
                let mut parts = parts.iter_mut();
                parts.try_for_each(|(k, part)| path.at(k, |path| proved(part, definitions, path)))
            }
            ("items" | "additionalProperties", part) => proved(part, definitions, path),
            _ => Ok(()),
        })?;
    }
    if let Some(alternatives) = map.shift_remove("oneOf") {
        match map.contains_key("anyOf") {
            true => insert(map, "allOf", json!([{ "anyOf": alternatives }])),
            false => insert(map, "anyOf", alternatives),
        }
    }
    Ok(())
}
