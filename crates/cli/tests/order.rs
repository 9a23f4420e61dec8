//! `causeway order`: what a schema's fields are conditioned on, and the better order.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use serde_json::{Value, json};
use support::{causeway, object, tree, with_stdin};

fn schema(name: &str) -> String {
    tree().join("testdata/schemas").join(name).display().to_string()
}

/// Names of a written schema's properties, in their order.
fn names(schema: &Value) -> Vec<&str> {
    schema["properties"].as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn the_verdict_that_comes_first_is_told_and_mended() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("better.json").display().to_string();
    let backward = schema("ticket_verdict_reversed.json");
    let told = object(&causeway(&["order", &backward, "--json", "--write", &file]));
    assert_eq!(
        told["fields"],
        json!([
            { "path": "/risk_score", "role": "verdict", "after": [], "repeats": false },
            { "path": "/reasoning", "role": "reasoning", "after": ["/risk_score"], "repeats": false },
        ]),
    );
    let warning = &told["warnings"][0];
    assert_eq!(
        (&warning["verdict"], &warning["reasoning"]),
        (&json!("/risk_score"), &json!("/reasoning"))
    );
    assert_eq!(names(&told["reordered"]), ["reasoning", "risk_score"]);
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(written, told["reordered"]);
    assert_eq!(names(&written), ["reasoning", "risk_score"]);
    // What was written needs no mending.
    let again = object(&causeway(&["order", &file, "--json"]));
    assert_eq!((&again["warnings"], &again["reordered"]), (&json!([]), &json!(null)));
}

#[test]
fn the_table_is_for_readers() {
    let ran = causeway(&["order", &schema("ticket_verdict_reversed.json")]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for part in [
        "/risk_score  verdict    conditioned on the prompt alone",
        "/reasoning   reasoning  conditioned on 1",
        "warning: `/risk_score` is chosen before `/reasoning` is written",
        "better order: /reasoning, /risk_score",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {ran:?}");
    }
    let good = causeway(&["order", &schema("ticket_verdict.json")]);
    assert!(good.code == 0 && !good.stdout.contains("warning"), "{good:?}");
    let none = with_stdin(&["order", "-"], "true");
    assert_eq!(none.stdout, "The schema declares no fields.\n");
}

#[test]
fn what_is_no_schema_is_refused_in_one_sentence() {
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    for (text, told) in [
        ("{", "no JSON"),
        ("", "no JSON"),
        (r##"{"$ref": "#/$defs/no"}"##, "leads nowhere"),
        (deep.as_str(), "nesting"),
    ] {
        let ran = with_stdin(&["order", "-", "--json"], text);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
        assert!(ran.stderr.contains(told) && ran.stderr.lines().count() == 1, "{ran:?}");
    }
    assert_eq!(causeway(&["order", "/no/such/file"]).code, 2);
    let good = schema("ticket_verdict.json");
    assert_eq!(causeway(&["order", &good, "--write", "/no/such/folder/file"]).code, 1);
}
