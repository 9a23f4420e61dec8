//! Proofs that two lowered schemas have no document in common, so that `oneOf` means `anyOf`.

use serde_json::{Map, Value};

use super::lower::definition;

/// Most comparisons of one `oneOf`; beyond it, nothing counts as proved.
const STEPS_MAX: usize = 200_000;
/// Deepest way through references, `allOf` and properties.
const DEPTH_MAX: usize = 8;

const NULL: u8 = 1;
const BOOLEAN: u8 = 2;
const WHOLE: u8 = 4;
const FRACTION: u8 = 8;
const STRING: u8 = 16;
const ARRAY: u8 = 32;
const OBJECT: u8 = 64;
const ANY: u8 = 127;

/// One proof at work.
pub(super) struct Proof<'a> {
    pub(super) definitions: &'a Map<String, Value>,
    pub(super) steps: usize,
}

impl<'a> Proof<'a> {
    /// The first two of the alternatives that may have a document in common.
    pub(super) fn overlap(&mut self, alternatives: &'a [Value]) -> Option<(usize, usize)> {
        for (first, a) in alternatives.iter().enumerate() {
            for (second, b) in alternatives.iter().enumerate().skip(first + 1) {
                if !self.disjoint(a, b, 0) {
                    return Some((first, second));
                }
            }
        }
        None
    }

    /// Whether it is proved that no document satisfies both.
    pub(super) fn disjoint(&mut self, a: &'a Value, b: &'a Value, depth: usize) -> bool {
        self.steps += 1;
        if depth > DEPTH_MAX || self.steps > STEPS_MAX {
            return false;
        }
        if a == &Value::Bool(false) || b == &Value::Bool(false) {
            return true;
        }
        let (parts_a, parts_b) = (self.parts(a, 0), self.parts(b, 0));
        let (types_a, types_b) = (types(&parts_a), types(&parts_b));
        let shared = types_a & types_b;
        shared == 0
            || self.every_value_is_out(&parts_a, &parts_b, types_b)
            || self.every_value_is_out(&parts_b, &parts_a, types_a)
            || (shared == OBJECT && self.objects_differ(&parts_a, &parts_b, depth))
            || self.every_option_is_out(&parts_a, b, depth)
            || self.every_option_is_out(&parts_b, a, depth)
    }

    /// The maps that a document must satisfy all of: the schema, its reference, its `allOf`.
    fn parts(&self, schema: &'a Value, depth: usize) -> Vec<&'a Map<String, Value>> {
        let Value::Object(map) = schema else {
            return Vec::new();
        };
        let mut parts = vec![map];
        if depth > DEPTH_MAX {
            return parts;
        }
        let reference = map.get("$ref").and_then(Value::as_str).and_then(definition);
        let target = reference.and_then(|index| self.definitions.get(&format!("d{index}")));
        parts.extend(target.into_iter().flat_map(|target| self.parts(target, depth + 1)));
        let all = map.get("allOf").and_then(Value::as_array).into_iter().flatten();
        parts.extend(all.flat_map(|part| self.parts(part, depth + 1)));
        parts
    }

    /// Whether one side lists its values and the other has none of them.
    fn every_value_is_out(
        &self,
        parts: &[&'a Map<String, Value>],
        others: &[&'a Map<String, Value>],
        types: u8,
    ) -> bool {
        parts.iter().filter_map(|part| values(part)).any(|listed| {
            listed.iter().all(|value| {
                type_of(value) & types == 0
                    || others
                        .iter()
                        .filter_map(|other| values(other))
                        .any(|list| !list.iter().any(|other| equal(value, other)))
            })
        })
    }

    fn every_option_is_out(
        &mut self,
        parts: &[&'a Map<String, Value>],
        other: &'a Value,
        depth: usize,
    ) -> bool {
        parts.iter().any(|part| {
            let lists = ["anyOf", "oneOf"].map(|keyword| part.get(keyword));
            lists
                .into_iter()
                .flatten()
                .filter_map(Value::as_array)
                .any(|options| options.iter().all(|option| self.disjoint(option, other, depth + 1)))
        })
    }

    /// Whether a property that one side asks for has no value in common.
    fn objects_differ(
        &mut self,
        a: &[&'a Map<String, Value>],
        b: &[&'a Map<String, Value>],
        depth: usize,
    ) -> bool {
        let required = a.iter().chain(b).filter_map(|part| part.get("required"));
        let names: Vec<&str> =
            required.filter_map(Value::as_array).flatten().filter_map(Value::as_str).collect();
        names.iter().any(|name| {
            let (ours, theirs) = (properties(a, name), properties(b, name));
            ours.iter().any(|one| *one == &Value::Bool(false))
                || theirs.iter().any(|one| *one == &Value::Bool(false))
                || ours.iter().any(|x| theirs.iter().any(|y| self.disjoint(x, y, depth + 1)))
        })
    }
}

static NEVER: Value = Value::Bool(false);

/// What the parts say of the property of this name; `false` where they leave no room for it.
fn properties<'a>(parts: &[&'a Map<String, Value>], name: &str) -> Vec<&'a Value> {
    let of = |part: &&'a Map<String, Value>| {
        let named = part.get("properties").and_then(|properties| properties.get(name));
        let is_closed = part.get("additionalProperties") == Some(&NEVER)
            && !part.contains_key("patternProperties");
        named.or(if is_closed { Some(&NEVER) } else { None })
    };
    parts.iter().filter_map(of).collect()
}

fn types(parts: &[&Map<String, Value>]) -> u8 {
    parts.iter().fold(ANY, |types, part| types & types_of_part(part))
}

fn types_of_part(part: &Map<String, Value>) -> u8 {
    let listed = values(part).map(|list| list.iter().fold(0, |types, v| types | type_of(v)));
    let named = match part.get("type") {
        Some(Value::String(name)) => Some(type_named(name)),
        Some(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str);
            Some(names.fold(0, |types, name| types | type_named(name)))
        }
        _ => None,
    };
    listed.unwrap_or(ANY) & named.unwrap_or(ANY)
}

fn type_named(name: &str) -> u8 {
    match name {
        "null" => NULL,
        "boolean" => BOOLEAN,
        "integer" => WHOLE,
        "number" => WHOLE | FRACTION,
        "string" => STRING,
        "array" => ARRAY,
        "object" => OBJECT,
        _ => ANY,
    }
}

fn type_of(value: &Value) -> u8 {
    match value {
        Value::Null => NULL,
        Value::Bool(_) => BOOLEAN,
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() != 0.0 => FRACTION,
            _ => WHOLE,
        },
        Value::String(_) => STRING,
        Value::Array(_) => ARRAY,
        Value::Object(_) => OBJECT,
    }
}

fn values(part: &Map<String, Value>) -> Option<&[Value]> {
    match (part.get("const"), part.get("enum")) {
        (Some(value), _) => Some(std::slice::from_ref(value)),
        (None, Some(Value::Array(list))) => Some(list),
        _ => None,
    }
}

/// Equality of JSON Schema: numbers by value, however they are written.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| equal(v, w)))
        }
        _ => a == b,
    }
}
