//! How much a lowered schema grows where its parts are multiplied out, before they are.

use serde_json::{Map, Value};

use super::lower::definition;

/// Most nodes that intersections may make of a schema: some 200 bytes each.
pub(super) const NODES_MAX: u64 = 1_000_000;

/// What a schema stands for.
#[derive(Debug, Clone, Copy)]
struct Cost {
    /// Alternatives, where they are most.
    ways: u64,
    nodes: u64,
}

impl Cost {
    const ONE: Self = Self { ways: 1, nodes: 1 };

    /// Beside each other: neither changes the other.
    fn beside(self, other: Self) -> Self {
        Self { ways: self.ways.max(other.ways), nodes: self.nodes.saturating_add(other.nodes) }
    }

    /// Either of them.
    fn or(self, other: Self) -> Self {
        Self {
            ways: self.ways.saturating_add(other.ways),
            nodes: self.nodes.saturating_add(other.nodes),
        }
    }

    /// Both of them at once: each way of one meets each way of the other.
    fn and(self, other: Self) -> Self {
        let ours = self.nodes.saturating_mul(other.ways);
        let theirs = other.nodes.saturating_mul(self.ways);
        Self { ways: self.ways.saturating_mul(other.ways), nodes: ours.saturating_add(theirs) }
    }
}

/// Costs of definitions, each worked out once.
struct Costs<'a> {
    definitions: &'a Map<String, Value>,
    known: Vec<Option<Cost>>,
}

/// How many nodes the engine may come to hold.
///
/// Definitions are worked out last first, since they were met in the order of the walk; one that
/// is not known yet where it is multiplied counts as a node, and the engine's own count of
/// intersections ends what that hides.
pub(super) fn nodes(root: &Value, definitions: &Map<String, Value>) -> u64 {
    let mut costs = Costs { definitions, known: vec![None; definitions.len()] };
    let names: Vec<&String> = definitions.keys().collect();
    let mut total = 0_u64;
    for index in (0..names.len()).rev() {
        let cost = costs.of(&costs.definitions[names[index]]);
        costs.known[index] = Some(cost);
        total = total.saturating_add(cost.nodes);
    }
    total.saturating_add(costs.of(root).nodes)
}

impl Costs<'_> {
    fn of(&self, schema: &Value) -> Cost {
        let Value::Object(map) = schema else {
            return Cost::ONE;
        };
        let mut cost = Cost::ONE;
        let mut own = 0_u64;
        for (keyword, value) in map {
            let part = match (keyword.as_str(), value) {
                ("allOf", Value::Array(list)) => {
                    list.iter().map(|part| self.of(part)).reduce(Cost::and)
                }
                ("anyOf" | "oneOf", Value::Array(list)) => {
                    list.iter().map(|part| self.of(part)).reduce(Cost::or)
                }
                ("enum", Value::Array(list)) => {
                    let count = list.len() as u64;
                    Some(Cost { ways: count, nodes: count })
                }
                ("$ref", Value::String(name)) => Some(self.reference(name, map.len() > 1)),
                ("properties" | "patternProperties", Value::Object(map)) => {
                    map.values().map(|part| self.of(part)).reduce(Cost::beside)
                }
                ("prefixItems", Value::Array(list)) => {
                    list.iter().map(|part| self.of(part)).reduce(Cost::beside)
                }
                ("items" | "additionalProperties", part) => Some(self.of(part)),
                _ => None,
            };
            own += 1;
            cost = match (keyword.as_str(), part) {
                (_, None) => cost,
                ("allOf" | "anyOf" | "oneOf" | "enum" | "$ref", Some(part)) => cost.and(part),
                (_, Some(part)) => cost.beside(part),
            };
        }
        Cost { ways: cost.ways, nodes: cost.nodes.saturating_add(own) }
    }

    /// A reference by itself stays one; beside other keywords its target is multiplied out.
    fn reference(&self, name: &str, has_siblings: bool) -> Cost {
        let known = definition(name).and_then(|index| self.known.get(index).copied().flatten());
        if has_siblings { known.unwrap_or(Cost::ONE) } else { Cost::ONE }
    }
}
