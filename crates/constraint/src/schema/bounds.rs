//! Bounds that leave nothing between them, found where they are written.

use serde_json::{Map, Value};

use super::{Path, SchemaError, SchemaProblem, values};

/// Pairs of counts, the lower one first.
const COUNTS: &[(&str, &str)] =
    &[("minLength", "maxLength"), ("minItems", "maxItems"), ("minProperties", "maxProperties")];

/// Refuses a lowered schema whose own bounds contradict each other.
pub(super) fn check(map: &Map<String, Value>, path: &mut Path) -> Result<(), SchemaError> {
    wide(map, path)?;
    for &(low, high) in COUNTS {
        if let (Some(least), Some(most)) = (number(map, low), number(map, high))
            && least > most
        {
            return contradiction(map, low, high, path);
        }
    }
    for low in ["minimum", "exclusiveMinimum"] {
        for high in ["maximum", "exclusiveMaximum"] {
            if let (Some(least), Some(most)) = (number(map, low), number(map, high)) {
                let is_open = low.starts_with('e') || high.starts_with('e');
                if least > most || (is_open && least >= most) || misses_whole(map, low, high) {
                    return contradiction(map, low, high, path);
                }
            }
        }
    }
    let required = map.get("required").and_then(Value::as_array).map_or(0, Vec::len);
    let most = map.get("maxProperties").and_then(Value::as_u64);
    if most.is_some_and(|most| most < required as u64) {
        return path.refuse_at(
            "maxProperties",
            SchemaProblem::Contradiction {
                low: "required",
                low_value: format!("{required} names"),
                high: "maxProperties",
                high_value: told(map, "maxProperties"),
            },
        );
    }
    Ok(())
}

/// Refuses bounds beyond 2^53 that the engine does not keep as whole numbers.
fn wide(map: &Map<String, Value>, path: &mut Path) -> Result<(), SchemaError> {
    let is_whole = match map.get("type") {
        Some(Value::Array(kinds)) => {
            kinds.iter().any(|kind| kind == "integer") && kinds.iter().all(|kind| kind != "number")
        }
        kind => kind.is_some_and(|kind| kind == "integer"),
    };
    for keyword in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
        let Some(Value::Number(bound)) = map.get(keyword) else {
            continue;
        };
        // One more than an exclusive bound may be rounded back to it.
        if values::is_wide(bound) && (!is_whole || keyword.starts_with('e')) {
            return path.at(keyword, |path| values::inexact(bound, path));
        }
    }
    Ok(())
}

/// Whether the schema asks for a whole number and none lies between the bounds.
fn misses_whole(map: &Map<String, Value>, low: &str, high: &str) -> bool {
    let (Some(least), Some(most)) = (number(map, low), number(map, high)) else {
        return false;
    };
    if map.get("type").is_none_or(|kind| kind != "integer") {
        return false;
    }
    let first = if low.starts_with('e') { least.floor() + 1.0 } else { least.ceil() };
    let last = if high.starts_with('e') { most.ceil() - 1.0 } else { most.floor() };
    first > last
}

fn contradiction(
    map: &Map<String, Value>,
    low: &'static str,
    high: &'static str,
    path: &mut Path,
) -> Result<(), SchemaError> {
    path.refuse_at(
        high,
        SchemaProblem::Contradiction {
            low,
            low_value: told(map, low),
            high,
            high_value: told(map, high),
        },
    )
}

fn number(map: &Map<String, Value>, keyword: &str) -> Option<f64> {
    map.get(keyword).and_then(Value::as_f64)
}

fn told(map: &Map<String, Value>, keyword: &str) -> String {
    map.get(keyword).map(Value::to_string).unwrap_or_default()
}
