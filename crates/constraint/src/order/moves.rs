//! The moves of properties that put each reasoning before its verdict.

use serde_json::{Map, Value};

use super::{Found, Step, found, pairs};
use crate::schema::SchemaError;

/// Rounds of moves; a pair that is still the wrong way round after so many goes in a circle.
const ROUNDS_MAX: usize = 16;

/// The schema with its reasoning first, if moving changes something and helps.
pub(super) fn reordered(
    schema: &Value,
    fields: &[Found],
    wrong: &[(usize, usize)],
) -> Result<Option<Value>, SchemaError> {
    let mut fields = fields.to_vec();
    let mut wrong = wrong.to_vec();
    let before = wrong.len();
    let mut best: Option<(usize, Value)> = None;
    let mut schema = schema.clone();
    for _ in 0..ROUNDS_MAX {
        let mut moved = false;
        for &(verdict, reasoning) in &wrong {
            moved |= moved_before(&mut schema, &fields[verdict], &fields[reasoning]);
        }
        if !moved {
            break;
        }
        fields = found(&schema)?;
        wrong = pairs(&fields);
        let least = best.as_ref().map_or(before, |(count, _)| *count);
        if wrong.len() < least {
            best = Some((wrong.len(), schema.clone()));
        }
    }
    Ok(best.map(|(_, schema)| schema))
}

/// Moves the property that holds the reasoning to just before the one that holds the verdict.
fn moved_before(schema: &mut Value, verdict: &Found, reasoning: &Found) -> bool {
    let at = verdict.parting(reasoning);
    let (Some(Step::Name { map, name }), Some(Step::Name { map: other, name: moving })) =
        (verdict.steps.get(at), reasoning.steps.get(at))
    else {
        return false;
    };
    let place = map.iter().try_fold(schema, |value, step| match value {
        Value::Object(map) => map.get_mut(step),
        Value::Array(list) => list.get_mut(step.parse::<usize>().ok()?),
        _ => None,
    });
    match place {
        Some(Value::Object(properties)) if map == other => before(properties, name, moving),
        _ => false,
    }
}

/// Whether `moving` stood after `name`; it stands before it afterwards.
fn before(properties: &mut Map<String, Value>, name: &str, moving: &str) -> bool {
    let place = |wanted: &str| properties.keys().position(|key| key == wanted);
    match (place(name), place(moving)) {
        (Some(first), Some(second)) if first < second => {}
        _ => return false,
    }
    let mut moved = Map::new();
    let fields = std::mem::take(properties);
    let value = fields.get(moving).cloned().expect("it was found above");
    for (key, field) in fields {
        if key == name {
            moved.insert(moving.to_owned(), value.clone());
        }
        if key != moving {
            moved.insert(key, field);
        }
    }
    *properties = moved;
    true
}
