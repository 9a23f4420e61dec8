//! Orders of schemas, as data.

use serde_json::{Value, json};

use super::order;

const TEXT: &str = "string";

fn object(fields: &[(&str, Value)]) -> Value {
    let names = fields.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone()));
    json!({ "type": "object", "properties": serde_json::Map::from_iter(names) })
}

fn of(kind: &str) -> Value {
    json!({ "type": kind })
}

/// The paths in their order, `verdict < reasoning` for each warning, and the paths of the
/// reordered schema where there is one.
fn check(schema: &Value, paths: &str, warnings: &[&str], reordered: Option<&str>) {
    let listed = |schema: &Value| {
        let found = order(schema).unwrap();
        found.fields.iter().map(|field| field.path.clone()).collect::<Vec<_>>().join(" ")
    };
    let found = order(schema).unwrap();
    assert_eq!(listed(schema), paths, "{schema}");
    let told: Vec<String> =
        found.warnings.iter().map(|w| format!("{} < {}", w.verdict, w.reasoning)).collect();
    assert_eq!(told, warnings, "{schema}");
    assert_eq!(found.reordered.as_ref().map(listed).as_deref(), reordered, "{schema}");
    if let Some(schema) = &found.reordered {
        assert_eq!(order(schema).unwrap().warnings, [], "{schema}");
    }
}

#[test]
fn a_verdict_before_its_reasoning_is_told() {
    let score = || of("integer");
    check(&object(&[("reasoning", of(TEXT)), ("score", score())]), "/reasoning /score", &[], None);
    check(
        &object(&[("score", score()), ("reasoning", of(TEXT))]),
        "/score /reasoning",
        &["/score < /reasoning"],
        Some("/reasoning /score"),
    );
    let described = json!({ "type": "string", "description": "Why the ticket is urgent." });
    check(
        &object(&[("id", of(TEXT)), ("urgent", of("boolean")), ("notes", described)]),
        "/id /urgent /notes",
        &["/urgent < /notes"],
        Some("/id /notes /urgent"),
    );
    let choice = json!({ "enum": ["a", "b"] });
    check(
        &object(&[("label", choice), ("x", of(TEXT)), ("chainOfThought", of(TEXT))]),
        "/label /x /chainOfThought",
        &["/label < /chainOfThought"],
        Some("/chainOfThought /label /x"),
    );
}

#[test]
fn no_choice_is_no_verdict_and_no_free_text_no_reasoning() {
    for first in [json!({ "const": 1 }), json!({ "enum": ["only"] }), of(TEXT)] {
        check(&object(&[("kind", first), ("reason", of(TEXT))]), "/kind /reason", &[], None);
    }
    for reason in [json!({ "enum": ["late", "broken"] }), of("integer")] {
        check(&object(&[("ok", of("boolean")), ("reason", reason)]), "/ok /reason", &[], None);
    }
}

#[test]
fn reasoning_belongs_to_the_verdict_that_it_names() {
    let fields = ["reasoning_a", "score_a", "score_b", "reasoning_b"];
    let fields = fields.map(|name| {
        let kind = if name.starts_with('s') { "number" } else { TEXT };
        (name, of(kind))
    });
    check(
        &object(&fields),
        "/reasoning_a /score_a /score_b /reasoning_b",
        &["/score_b < /reasoning_b"],
        Some("/reasoning_a /score_a /reasoning_b /score_b"),
    );
}

#[test]
fn nested_fields_move_with_what_holds_them() {
    let inner = object(&[("ok", of("boolean")), ("why", of(TEXT))]);
    check(
        &object(&[("steps", json!({ "type": "array", "items": inner.clone() }))]),
        "/steps /steps/*/ok /steps/*/why",
        &["/steps/*/ok < /steps/*/why"],
        Some("/steps /steps/*/why /steps/*/ok"),
    );
    let verdict = object(&[("score", of("integer"))]);
    let basis = object(&[("analysis", of(TEXT))]);
    check(
        &object(&[("verdict", verdict), ("basis", basis)]),
        "/verdict /verdict/score /basis /basis/analysis",
        &["/verdict/score < /basis/analysis"],
        Some("/basis /basis/analysis /verdict /verdict/score"),
    );
    let shared = json!({ "$ref": "#/$defs/v", "$defs": { "v": inner } });
    check(&shared, "/ok /why", &["/ok < /why"], Some("/why /ok"));
}

#[test]
fn alternatives_do_not_condition_each_other() {
    let ways = json!({ "anyOf": [
        object(&[("score", of("integer"))]),
        object(&[("reasoning", of(TEXT))]),
    ] });
    check(&ways, "/score /reasoning", &[], None);
    assert_eq!(order(&ways).unwrap().fields[1].after, Vec::<usize>::new());
    let both = object(&[("a", of(TEXT)), ("b", ways), ("c", of(TEXT))]);
    let found = order(&both).unwrap();
    let after: Vec<&[usize]> = found.fields.iter().map(|field| field.after.as_slice()).collect();
    assert_eq!(after, [&[][..], &[0], &[0, 1], &[0, 1], &[0, 1, 2, 3]]);
}

#[test]
fn parts_that_cannot_be_moved_are_told_all_the_same() {
    let parts = json!({ "allOf": [
        object(&[("score", of("integer"))]),
        object(&[("reasoning", of(TEXT))]),
    ] });
    check(&parts, "/score /reasoning", &["/score < /reasoning"], None);
}

#[test]
fn endless_and_broken_schemas_end() {
    let node = json!({ "properties": { "name": { "type": "string" }, "next": { "$ref": "#" } } });
    check(&node, "/name /next", &[], None);
    let told = order(&json!({ "$ref": "#/$defs/no" })).unwrap_err();
    assert_eq!(told.path, "#/$ref");
    let names = (0..2000).map(|i| (format!("p{i}"), of(TEXT)));
    let wide = json!({ "properties": serde_json::Map::from_iter(names) });
    assert!(order(&wide).unwrap_err().to_string().contains("limit is 1000"));
}
