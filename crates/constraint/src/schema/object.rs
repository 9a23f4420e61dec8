//! A schema of which only objects count, as of the arguments of a call.

use serde_json::{Map, Value, json};

use super::disjoint::Proof;
use super::{Lowered, Path, SchemaError, SchemaProblem, lower};

/// Reads a schema, and holds it to objects.
///
/// # Errors
/// As `lower`, and a schema that is proved to allow no object; what is not proved here, the
/// grammar engine refuses.
pub(crate) fn lower_object(root: &Value) -> Result<Lowered, SchemaError> {
    let mut lowered = lower(root, &Path::default())?;
    let none = Map::new();
    let definitions = lowered.schema.get("$defs").and_then(Value::as_object).unwrap_or(&none);
    let (schema, object) = (Value::Object(lowered.schema.clone()), json!({ "type": "object" }));
    if (Proof { definitions, steps: 0 }).disjoint(&schema, &object, 0) {
        let want = "a schema that some object satisfies";
        return Path::default().refuse(SchemaProblem::Malformed { want });
    }
    lowered.schema.insert("type".to_owned(), json!("object"));
    Ok(lowered)
}
