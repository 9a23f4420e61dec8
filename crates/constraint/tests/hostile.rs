//! Schemas that ask for too much: each is compiled or refused in bounded time, with its path.
#![expect(clippy::print_stdout, reason = "a failure is read beside what was found")]

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use causeway_constraint::{Constraint, Environment, Limits, Whitespace, accepts, compile};
use serde_json::{Map, Value, json};

/// Far above what any of them takes on one slow core; what hangs takes longer.
const LONGEST: Duration = Duration::from_secs(8);

#[expect(clippy::disallowed_methods, reason = "the time taken is what is tested")]
fn check(name: &str, schema: Value, document: &str) {
    let environment = Environment::of_bytes();
    let start = Instant::now();
    let constraint = Constraint::JsonSchema { schema, whitespace: Whitespace::Compact };
    let plan = compile(&constraint, &environment, &Limits::default());
    let compiled = start.elapsed();
    let told = match &plan {
        Ok(plan) => {
            let found = accepts(&mut plan.matcher(), &environment, document);
            format!("compiled; {}", found.err().map_or("accepted".to_owned(), |e| e.to_string()))
        }
        Err(error) => {
            assert!(error.path().is_some_and(|path| path.starts_with('#')), "{name}: {error}");
            error.to_string()
        }
    };
    let whole = start.elapsed();
    println!("{name}: {compiled:?}, {whole:?}: {told}");
    assert!(whole < LONGEST, "{name} took {whole:?}");
}

fn chain(length: usize, link: impl Fn(String) -> Value) -> Value {
    let mut definitions = Map::new();
    for index in 0..length {
        let next = format!("#/$defs/n{}", index + 1);
        definitions.insert(format!("n{index}"), link(next));
    }
    definitions.insert(format!("n{length}"), json!({ "type": "integer" }));
    json!({ "$ref": "#/$defs/n0", "$defs": definitions })
}

#[test]
fn long_chains_of_references() {
    check("too long", chain(5000, |next| json!({ "$ref": next })), "1");
    check("plain", chain(1500, |next| json!({ "$ref": next })), "1");
    check("arrays", chain(1500, |next| json!({ "items": { "$ref": next } })), "[]");
    check("siblings", chain(500, |next| json!({ "$ref": next, "minimum": 0 })), "1");
    let twice = |next: String| json!({ "allOf": [{ "$ref": next }, { "$ref": next }] });
    check("twice", chain(60, twice), "1");
    let either =
        |next: String| json!({ "anyOf": [{ "$ref": next }, { "$ref": next, "minimum": 1 }] });
    check("either", chain(60, either), "1");
}

#[test]
fn parts_that_multiply() {
    let options = |i: usize| {
        json!({ "anyOf": [
            { "properties": { format!("a{i}"): { "const": 1 } } },
            { "properties": { format!("b{i}"): { "const": 2 } } },
        ] })
    };
    let all: Vec<Value> = (0..24).map(options).collect();
    check("ways", json!({ "allOf": all }), "{}");
    let names: Map<String, Value> =
        (0..3000).map(|i| (format!("p{i}"), json!({ "type": "integer" }))).collect();
    check("too many names", json!({ "type": "object", "properties": names }), "{}");
    let names: Map<String, Value> = names.into_iter().take(1000).collect();
    check("names", json!({ "type": "object", "properties": names }), "{}");
    let words: Vec<Value> = (0..20_000).map(|i| json!(format!("word number {i}"))).collect();
    check("words", json!({ "enum": words }), "\"word number 7\"");
    let shapes: Vec<Value> = (0..600)
        .map(|i| json!({ "type": "object", "properties": { "k": { "const": i } }, "required": ["k"] }))
        .collect();
    check("shapes", json!({ "oneOf": shapes }), "{\"k\":5}");
}

#[test]
fn patterns_and_counts() {
    for pattern in [
        "(a|b)*a(a|b){60}",
        "^(a+)+$",
        "^((a{0,50}){0,50}){0,30}$",
        "(x+x+)+y",
        "^(\\p{L}{1,200}[0-9]?){1,200}$",
    ] {
        let mut text = String::from("\"");
        for _ in 0..60 {
            text.push_str("ab");
        }
        let _ = write!(text, "\"");
        check(pattern, json!({ "type": "string", "pattern": pattern }), &text);
    }
    check("long", json!({ "type": "string", "minLength": 100_000_000 }), "\"a\"");
    check("items", json!({ "type": "array", "minItems": 100_000_000 }), "[1]");
    check("most", json!({ "type": "array", "maxItems": 2_000_000_000 }), "[1]");
    check("multiple", json!({ "type": "integer", "multipleOf": 123_456_789 }), "246913578");
    check("thousand", json!({ "type": "integer", "multipleOf": 1000 }), "246913000");
    check("thousandth", json!({ "multipleOf": 0.001 }), "2.469");
}
