//! A field goes, wherever it stands, and the others keep their order.

use serde_json::json;

use super::delete;

#[test]
fn a_property_is_taken_out_with_its_requirement() {
    let mut schema = json!({
        "type": "object",
        "properties": {
            "a": {}, "b": { "type": "array", "items": { "properties": { "x/y": {}, "z": {} } } },
            "c": {},
        },
        "required": ["a", "b", "c"],
    });
    assert!(delete(&mut schema, "nothing").is_err());
    delete(&mut schema, "/b/*/x~1y").unwrap();
    assert_eq!(schema["properties"]["b"]["items"], json!({ "properties": { "z": {} } }));
    delete(&mut schema, "a").unwrap();
    let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["b", "c"]);
    assert_eq!(schema["required"], json!(["b", "c"]));
}

#[test]
fn a_field_that_is_not_reached_is_told_from_one_that_is_not_there() {
    let inner = json!({ "type": "object", "properties": { "r": {}, "s/t": {} } });
    let deeper = json!({ "properties": { "a": inner, "b": { "items": inner } } });
    let either = json!({ "anyOf": [inner, { "type": "null" }] });
    let referred = json!({ "$ref": "#/$defs/o", "$defs": { "o": inner } });
    let under = json!({ "properties": { "x": either } });
    let many: serde_json::Map<_, _> = (0..6).map(|i| (format!("p{i}"), inner.clone())).collect();
    let many = json!({ "properties": many });
    let long = "f".repeat(5000);
    for (schema, field, want) in [
        (&inner, "q", "the schema declares no field `q`"),
        (&inner, "/r/q", "the schema declares no field `/r/q`"),
        (&inner, "a\u{1b}\nb", "the schema declares no field `a\\u{1b}\\nb`"),
        (&deeper, "r", "declares no field `r` on the outside, but `/a/r`, `/b/*/r`: give one"),
        (&deeper, "s/t", "the schema declares no field `s/t`"),
        (&many, "r", "but `/p0/r`, `/p1/r`, `/p2/r`, `/p3/r` and 2 more: give one of them"),
        (&either, "r", "those behind `anyOf`, which the schema has, are not reached"),
        (&referred, "/r", "those behind `$ref`, which the schema has, are not reached"),
        (&under, "/x/r", "those behind `anyOf`, which `/x` has, are not reached"),
        (&under, "r", "those behind `anyOf`, which `/x` has, are not reached"),
        (&inner, &long, "ffff…ffff"),
    ] {
        let told = delete(&mut schema.clone(), field).unwrap_err().to_string();
        assert!(told.contains(want) && told.len() < 300, "{want}: {told}");
    }
}
