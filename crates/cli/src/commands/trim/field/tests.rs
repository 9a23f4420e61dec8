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
    assert_eq!(delete(&mut schema, "nothing"), None);
    assert_eq!(delete(&mut schema, "/b/*/x~1y"), Some(()));
    assert_eq!(schema["properties"]["b"]["items"], json!({ "properties": { "z": {} } }));
    assert_eq!(delete(&mut schema, "a"), Some(()));
    let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["b", "c"]);
    assert_eq!(schema["required"], json!(["b", "c"]));
}
