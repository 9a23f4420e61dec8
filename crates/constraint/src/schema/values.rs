//! Keywords' values that are no schemas: counts, numbers, lists of names, documents.

use serde_json::{Map, Number, Value};

use super::{Path, SchemaError, SchemaProblem};

/// Counts from here on are out of any answer's reach: no context holds so many tokens.
const COUNT_MAX: u64 = 1 << 31;
/// Whole numbers up to here are exact in the engine, which counts in f64.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
/// Most decimals and digits of a number that is compared exactly.
const MAGNITUDE_MAX: f64 = 1e18;
const MAGNITUDE_MIN: f64 = 1e-12;
/// Most remainders of `multipleOf`.
const REMAINDERS_MAX: u64 = 1000;
/// Most names of one object; the time to compile grows with their square.
const NAMES_MAX: usize = 1000;
/// Most values of one `enum`.
const ENUM_MAX: usize = 20_000;

/// A count: a whole number that is not negative; nothing where it is beyond reach.
pub(super) fn count(value: &Value, path: &Path) -> Result<Option<u64>, SchemaError> {
    let whole = value.as_u64().or_else(|| {
        let float = value.as_f64()?;
        let is_whole = float >= 0.0 && float.fract() == 0.0;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole and not negative; `as` saturates, and what saturates is out of reach"
        )]
        is_whole.then_some(float as u64)
    });
    match whole {
        Some(count) => Ok(Some(count).filter(|count| *count < COUNT_MAX)),
        None => path.refuse(SchemaProblem::Malformed { want: "a whole number from 0" }),
    }
}

/// A number that the engine compares exactly.
pub(super) fn number(value: &Value, path: &Path) -> Result<f64, SchemaError> {
    let Value::Number(number) = value else {
        return path.refuse(SchemaProblem::Malformed { want: "a number" });
    };
    exact(number, path)
}

fn exact(number: &Number, path: &Path) -> Result<f64, SchemaError> {
    let value = number.as_f64().unwrap_or(f64::INFINITY);
    let size = value.abs();
    let is_exact = match (number.as_i64(), value.fract() == 0.0) {
        (Some(whole), _) => is_exact(whole),
        (None, true) => number.is_f64() && size <= WHOLE_MAX,
        (None, false) => (MAGNITUDE_MIN..MAGNITUDE_MAX).contains(&size),
    };
    if is_exact { Ok(value) } else { inexact(number, path) }
}

/// Refuses a number that the engine would round.
pub(super) fn inexact<T>(number: &Number, path: &Path) -> Result<T, SchemaError> {
    let keywords = path.steps().iter().rev();
    let keyword = keywords.into_iter().find(|step| !step.bytes().all(|b| b.is_ascii_digit()));
    path.refuse(SchemaProblem::Inexact {
        keyword: keyword.cloned().unwrap_or_default(),
        value: number.to_string(),
    })
}

/// Whether the engine, which keeps numbers in f64 and bounds of whole numbers in i64, keeps this
/// one: the largest is rounded up and comes back cut to itself, the smallest has no opposite.
fn is_exact(whole: i64) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "whether precision is lost is the question")]
    let kept = whole as f64;
    #[expect(clippy::cast_possible_truncation, reason = "within i64, or cut to its largest")]
    let back = kept as i64;
    back == whole && whole != i64::MIN
}

/// Whether a number is beyond what every kind of bound keeps exactly.
pub(super) fn is_wide(number: &Number) -> bool {
    number.as_f64().is_some_and(|value| value.fract() == 0.0 && value.abs() > WHOLE_MAX)
}

/// What a number must be a multiple of: its digits without the point are few, since the engine
/// has a state for each remainder.
pub(super) fn divisor(value: &Value, path: &Path) -> Result<(), SchemaError> {
    if number(value, path)? <= 0.0 {
        return path.refuse(SchemaProblem::Malformed { want: "a number above 0" });
    }
    let told = value.as_f64().unwrap_or_default().to_string();
    let digits: String = told.chars().filter(char::is_ascii_digit).collect();
    let remainders = digits.parse::<u64>().unwrap_or(u64::MAX);
    if remainders > REMAINDERS_MAX || told.contains('e') {
        let (count, limit) = (remainders, REMAINDERS_MAX);
        let what = "the number of remainders";
        return path.refuse(SchemaProblem::TooLarge { what, count, limit });
    }
    Ok(())
}

/// Refuses more names than one object may declare.
pub(super) fn name_count(count: usize, path: &Path) -> Result<(), SchemaError> {
    path.at_most("the number of names", count, NAMES_MAX)
}

/// A text.
pub(super) fn text<'a>(value: &'a Value, path: &Path) -> Result<&'a str, SchemaError> {
    match value {
        Value::String(text) => Ok(text),
        _ => path.refuse(SchemaProblem::Malformed { want: "a string" }),
    }
}

/// A list that is not empty.
pub(super) fn list<'a>(value: &'a Value, path: &Path) -> Result<&'a Vec<Value>, SchemaError> {
    match value {
        Value::Array(list) if !list.is_empty() => Ok(list),
        _ => path.refuse(SchemaProblem::Malformed { want: "a list of at least one" }),
    }
}

/// A map.
pub(super) fn map<'a>(
    value: &'a Value,
    path: &Path,
) -> Result<&'a Map<String, Value>, SchemaError> {
    match value {
        Value::Object(map) => Ok(map),
        _ => path.refuse(SchemaProblem::Malformed { want: "an object" }),
    }
}

/// A list of names, each once.
pub(super) fn names(value: &Value, path: &mut Path) -> Result<Vec<Value>, SchemaError> {
    let Value::Array(list) = value else {
        return path.refuse(SchemaProblem::Malformed { want: "a list of strings" });
    };
    let mut names: Vec<Value> = Vec::with_capacity(list.len());
    let mut seen = std::collections::BTreeSet::new();
    for (index, name) in list.iter().enumerate() {
        let text = path.at(index, |path| text(name, path))?;
        if seen.insert(text) {
            names.push(name.clone());
        }
    }
    Ok(names)
}

/// One type, or several.
pub(super) fn types(value: &Value, path: &mut Path) -> Result<Value, SchemaError> {
    const WANT: &str = "one or more of null, boolean, integer, number, string, array, object";
    let is_type = |value: &Value| {
        matches!(
            value.as_str(),
            Some("null" | "boolean" | "integer" | "number" | "string" | "array" | "object")
        )
    };
    match value {
        Value::String(_) if is_type(value) => Ok(value.clone()),
        Value::Array(list) if !list.is_empty() && list.iter().all(is_type) => {
            // `number` holds every integer; the two side by side would be ambiguous.
            let has = |name: &str| list.iter().any(|value| value == name);
            let mut kept: Vec<Value> = Vec::new();
            for value in list {
                let is_held = value == "integer" && has("number");
                if !is_held && !kept.contains(value) {
                    kept.push(value.clone());
                }
            }
            Ok(Value::Array(kept))
        }
        _ => path.refuse(SchemaProblem::Malformed { want: WANT }),
    }
}

/// The values of an `enum`, each once.
pub(super) fn values(value: &Value, path: &mut Path) -> Result<Vec<Value>, SchemaError> {
    let list = list(value, path)?;
    path.at_most("the number of values", list.len(), ENUM_MAX)?;
    let mut seen = std::collections::BTreeSet::new();
    let mut kept = Vec::with_capacity(list.len());
    for (index, value) in list.iter().enumerate() {
        path.at(index, |path| document(value, path))?;
        if seen.insert(value.to_string()) {
            kept.push(value.clone());
        }
    }
    Ok(kept)
}

/// A document that an answer may have to equal: its numbers must be exact.
pub(super) fn document(value: &Value, path: &mut Path) -> Result<(), SchemaError> {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
        Value::Number(number) => exact(number, path).map(|_| ()),
        Value::Array(list) => {
            let mut items = list.iter().enumerate();
            items.try_for_each(|(index, item)| path.at(index, |path| document(item, path)))
        }
        Value::Object(map) => {
            let mut fields = map.iter();
            fields.try_for_each(|(name, field)| path.at(name, |path| document(field, path)))
        }
    }
}
