//! The field that is left out: found in a schema, and taken out of it.

use anyhow::anyhow;
use causeway_ledger::shown_name;
use serde_json::Value;

/// Keywords behind which properties may be declared, and which are not followed.
const NOT_FOLLOWED: &[&str] =
    &["$ref", "anyOf", "oneOf", "allOf", "patternProperties", "prefixItems"];
/// Most fields that a sentence names.
const NAMED_MAX: usize = 4;

/// Takes a property out of an object's schema.
///
/// # Errors
/// A field that is not declared under `properties` and `items`, and where it may be.
pub(super) fn delete(schema: &mut Value, field: &str) -> anyhow::Result<()> {
    let (parents, name) = steps(field);
    let mut place = String::new();
    let mut at = &mut *schema;
    let mut reached = true;
    for parent in &parents {
        let inner = match parent.as_str() {
            "*" => at.get("items").is_some(),
            name => at.get("properties").is_some_and(|fields| fields.get(name).is_some()),
        };
        if !inner {
            reached = false;
            break;
        }
        place = format!("{place}/{}", pointer_token(parent));
        at = match parent.as_str() {
            "*" => &mut at["items"],
            name => &mut at["properties"][name],
        };
    }
    let fields = at.get_mut("properties").and_then(Value::as_object_mut).filter(|_| reached);
    // What stands behind it keeps its order.
    if fields.and_then(|fields| fields.shift_remove(&name)).is_none() {
        let behind = keyword_of(at).map(|keyword| (keyword, place));
        return Err(missing(schema, field, behind));
    }
    if let Some(required) = at.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|other| other.as_str() != Some(&name));
    }
    Ok(())
}

/// The name of the field itself.
pub(super) fn name(field: &str) -> String {
    steps(field).1
}

/// The names on the way to a field, and its own.
fn steps(field: &str) -> (Vec<String>, String) {
    let path = field.strip_prefix('/').unwrap_or(field);
    let mut steps: Vec<String> = path.split('/').map(unescaped).collect();
    let name = steps.pop().unwrap_or_default();
    (steps, name)
}

fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

fn pointer_token(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn keyword_of(schema: &Value) -> Option<&'static str> {
    NOT_FOLLOWED.iter().find(|keyword| schema.get(**keyword).is_some()).copied()
}

/// What is said of a field that was looked for and not found.
fn missing(schema: &Value, field: &str, behind: Option<(&'static str, String)>) -> anyhow::Error {
    let shown = shown_name(field);
    let mut found = Found::default();
    let is_bare = !field.contains('/');
    if is_bare {
        found.look(schema, &name(field), String::new());
    }
    let Found { pointers, behind: elsewhere } = found;
    if !pointers.is_empty() {
        let named: Vec<String> =
            pointers.iter().take(NAMED_MAX).map(|path| format!("`{}`", shown_name(path))).collect();
        let more = match pointers.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let named = named.join(", ") + &more;
        return anyhow!(
            "the schema declares no field `{shown}` on the outside, but {named}: give one of them"
        );
    }
    match behind.or(elsewhere) {
        None => anyhow!("the schema declares no field `{shown}`"),
        Some((keyword, place)) => {
            let place = match place.as_str() {
                "" => "the schema".to_owned(),
                place => format!("`{}`", shown_name(place)),
            };
            anyhow!(
                "`{shown}` is no field that can be left out: those behind `{keyword}`, which \
                 {place} has, are not reached"
            )
        }
    }
}

/// Where fields of a name are declared, and the first place behind which more may be.
#[derive(Default)]
struct Found {
    pointers: Vec<String>,
    behind: Option<(&'static str, String)>,
}

impl Found {
    /// Looks as deep as `delete` can reach; a schema was read with a limit to its nesting.
    fn look(&mut self, schema: &Value, wanted: &str, place: String) {
        if let Some(keyword) = keyword_of(schema) {
            self.behind.get_or_insert_with(|| (keyword, place.clone()));
        }
        let fields = schema.get("properties").and_then(Value::as_object);
        for (name, field) in fields.into_iter().flatten() {
            let pointer = format!("{place}/{}", pointer_token(name));
            if name == wanted {
                self.pointers.push(pointer.clone());
            }
            self.look(field, wanted, pointer);
        }
        if let Some(items) = schema.get("items") {
            self.look(items, wanted, format!("{place}/*"));
        }
    }
}

#[cfg(test)]
mod tests;
