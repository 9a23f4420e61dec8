//! Whether a lowered schema has a finite document: recursion that never ends is refused.

use serde_json::{Map, Value};

/// A schema and the definitions that its references name.
pub(super) struct Definitions<'a> {
    pub(super) map: &'a Map<String, Value>,
}

/// Most rounds until nothing changes; definitions that need more wait for each other in a chain
/// far longer than any in use.
const ROUNDS_MAX: usize = 200;

impl Definitions<'_> {
    /// The definitions that no finite document satisfies, in the order in which they were met.
    pub(super) fn endless(&self) -> Vec<usize> {
        let names: Vec<&String> = self.map.keys().collect();
        let mut finite = vec![false; names.len()];
        for _ in 0..ROUNDS_MAX {
            let mut changed = false;
            // Later definitions stand deeper, so their answers come first.
            for index in (0..names.len()).rev() {
                if !finite[index] && is_finite(&self.map[names[index]], &finite) {
                    finite[index] = true;
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        (0..names.len()).filter(|&index| !finite[index]).collect()
    }
}

/// Whether a finite document is known to satisfy the schema, by what is known of definitions.
fn is_finite(schema: &Value, finite: &[bool]) -> bool {
    let Value::Object(map) = schema else {
        return schema != &Value::Bool(false);
    };
    let all = |keyword: &str| list(map, keyword).iter().all(|part| is_finite(part, finite));
    let any = |keyword: &str| {
        !map.contains_key(keyword) || list(map, keyword).iter().any(|part| is_finite(part, finite))
    };
    let reference = map.get("$ref").and_then(Value::as_str);
    if reference.and_then(super::lower::definition).is_some_and(|index| !finite[index]) {
        return false;
    }
    if !all("allOf") || !any("anyOf") || !any("oneOf") {
        return false;
    }
    match map.get("type") {
        Some(Value::String(kind)) if kind == "object" => object(map, finite),
        Some(Value::String(kind)) if kind == "array" => array(map, finite),
        _ => true,
    }
}

fn object(map: &Map<String, Value>, finite: &[bool]) -> bool {
    let properties = map.get("properties").and_then(Value::as_object);
    let mut required = list(map, "required").iter().filter_map(Value::as_str);
    required.all(|name| {
        let property = properties.and_then(|properties| properties.get(name));
        property.is_none_or(|schema| is_finite(schema, finite))
    })
}

fn array(map: &Map<String, Value>, finite: &[bool]) -> bool {
    let least = map.get("minItems").and_then(Value::as_u64).unwrap_or(0);
    let least = usize::try_from(least).unwrap_or(usize::MAX);
    let prefix = list(map, "prefixItems");
    prefix.iter().take(least).all(|item| is_finite(item, finite))
        && (least <= prefix.len() || map.get("items").is_none_or(|item| is_finite(item, finite)))
}

fn list<'a>(map: &'a Map<String, Value>, keyword: &str) -> &'a [Value] {
    map.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
