//! Which part of a schema the engine refuses, since its errors do not say.

use serde_json::Value;

use crate::schema::{Path, SchemaError, SchemaProblem};

/// Most parts that are tried by themselves.
const TRIES_MAX: usize = 64;
/// Keywords whose value is a schema, a list of schemas, or a map of them.
const ONE: &[&str] = &["items", "additionalProperties"];
const LISTS: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];
const MAPS: &[&str] = &["properties", "patternProperties", "$defs", "definitions"];

/// Names the deepest part of the schema that is refused by itself too.
///
/// `fails` compiles the part at a path and says why it cannot be.
pub(super) fn blame(
    schema: &Value,
    reason: String,
    fails: impl Fn(&Path) -> Option<String>,
) -> SchemaError {
    let mut blamed = (Path::default(), schema, reason);
    let mut tries = 0;
    'deeper: loop {
        let (path, part, _) = &blamed;
        for (child, value) in children(path, part) {
            tries += 1;
            if tries > TRIES_MAX {
                break 'deeper;
            }
            if let Some(reason) = fails(&child) {
                blamed = (child, value, reason);
                continue 'deeper;
            }
        }
        break;
    }
    let (path, _, reason) = blamed;
    SchemaError { path: path.told(), problem: SchemaProblem::Engine { reason } }
}

fn children<'a>(path: &Path, part: &'a Value) -> Vec<(Path, &'a Value)> {
    let below = |steps: &[&str]| {
        let all = path.steps().iter().cloned();
        Path::of(all.chain(steps.iter().map(|&step| step.to_owned())).collect())
    };
    let mut children = Vec::new();
    for (keyword, value) in part.as_object().into_iter().flatten() {
        let keyword = keyword.as_str();
        match value {
            Value::Array(list) if LISTS.contains(&keyword) => {
                let items = list.iter().enumerate();
                children.extend(items.map(|(i, item)| (below(&[keyword, &i.to_string()]), item)));
            }
            Value::Object(map) if MAPS.contains(&keyword) => {
                children.extend(map.iter().map(|(name, item)| (below(&[keyword, name]), item)));
            }
            Value::Object(_) if ONE.contains(&keyword) => {
                children.push((below(&[keyword]), value));
            }
            _ => {}
        }
    }
    children
}
