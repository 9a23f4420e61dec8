//! Hostile schemas, and what has no effect.

use serde_json::{Value, json};

use super::{Path, SchemaProblem, lower};

#[test]
fn what_the_draft_does_not_know_is_a_warning() {
    let schema = json!({
        "type": "object",
        "nullable": true,
        "title": "t",
        "properties": {
            "x": { "type": "string", "format": "int32", "enumNames": [] },
            "uniqueItems": { "type": "integer", "uniqueItems": false },
        },
    });
    let lowered = lower(&schema, &Path::default()).unwrap();
    let told: Vec<_> =
        lowered.warnings.iter().map(|w| (w.path.as_str(), w.keyword().unwrap())).collect();
    assert_eq!(
        told,
        [
            ("#/nullable", "nullable"),
            ("#/properties/x/format", "format: int32"),
            ("#/properties/x/enumNames", "enumNames"),
        ]
    );
}

#[test]
fn size_and_depth_are_bounded() {
    let check = |schema: &Value, want: &str| {
        let error = lower(schema, &Path::default()).unwrap_err();
        assert!(error.to_string().contains(want), "{error}");
        assert!(matches!(error.problem, SchemaProblem::TooLarge { .. }));
    };
    check(&json!({ "enum": ["x".repeat(1 << 20)] }), "the length in bytes");
    let deep = (0..200).fold(json!(true), |inner, _| json!({ "items": inner }));
    check(&deep, "the nesting");
    let many: Vec<Value> = (0..2000).map(|i| json!({ "required": [format!("a{i}")] })).collect();
    let names = |count: u32| -> Value {
        let names = (0..count).map(|i| (format!("a{i}"), json!({ "type": "string" })));
        Value::Object(names.collect())
    };
    check(&json!({ "properties": names(2000) }), "the number of names");
    check(&json!({ "properties": names(1000), "anyOf": many }), "multiplied out");
}
