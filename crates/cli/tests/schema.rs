//! `causeway schema`: each line is answered, through the mask that decoding uses.

mod support;

use serde_json::{Value, json};
use support::{Ran, causeway, lines, object, smollm2, tree, with_stdin};

fn asked(flags: &[&str], input: &str) -> Ran {
    with_stdin(&[&["schema", "--json"], flags].concat(), input)
}

/// Each case on a line of one run: whether it compiles, is accepted, and the place of a refusal.
fn check(flags: &[&str], cases: &[(Value, (bool, Value, Value))]) {
    let input: String = cases.iter().map(|(line, _)| format!("{line}\n")).collect();
    let ran = asked(flags, &input);
    assert_eq!(ran.code, 0, "{ran:?}");
    let answers = lines(&ran.stdout);
    assert_eq!(answers.len(), cases.len(), "{ran:?}");
    for (answer, (line, (compiled, accepted, path))) in answers.iter().zip(cases) {
        let found = (&answer["compiled"], &answer["accepted"], &answer["path"]);
        assert_eq!(found, (&json!(compiled), accepted, path), "{line}: {answer}");
        let is_refused = accepted == &json!(false);
        assert_eq!(answer["error"].is_string(), is_refused, "{line}: {answer}");
    }
}

fn count() -> Value {
    json!({ "type": "object", "properties": { "n": { "type": "integer", "minimum": 3 } },
        "required": ["n"], "additionalProperties": false })
}

#[test]
fn every_line_gets_its_answer() {
    check(
        &[],
        &[
            (json!({ "schema": count(), "doc": { "n": 3 } }), (true, json!(true), json!(null))),
            (json!({ "schema": count(), "doc": { "n": 2 } }), (true, json!(false), json!(null))),
            (json!({ "schema": count() }), (true, json!(null), json!(null))),
            (json!({ "schema": true, "doc": [1, "a"] }), (true, json!(true), json!(null))),
            (json!({ "schema": false, "doc": 1 }), (false, json!(false), json!("#"))),
            (
                json!({ "schema": { "items": { "not": {} } }, "doc": [] }),
                (false, json!(false), json!("#/items/not")),
            ),
            (json!({ "schema": [], "doc": [] }), (false, json!(false), json!("#"))),
        ],
    );
}

#[test]
fn text_is_fed_as_it_is() {
    let integer = json!({ "type": "integer" });
    check(
        &[],
        &[
            (json!({ "schema": integer, "text": "01" }), (true, json!(false), json!(null))),
            (json!({ "schema": integer, "text": "10" }), (true, json!(true), json!(null))),
            (json!({ "schema": integer, "text": "" }), (true, json!(false), json!(null))),
            (json!({ "schema": count(), "text": "{\"n\": 3}" }), (true, json!(false), json!(null))),
            (json!({ "schema": count(), "text": "{\"n\":3" }), (true, json!(false), json!(null))),
        ],
    );
    check(
        &["--flexible"],
        &[
            (
                json!({ "schema": count(), "text": "{ \"n\":\n3 }" }),
                (true, json!(true), json!(null)),
            ),
            (json!({ "schema": count(), "text": "{\"n\":3}" }), (true, json!(true), json!(null))),
            (
                json!({ "schema": count(), "text": "{ \"n\": 2}" }),
                (true, json!(false), json!(null)),
            ),
        ],
    );
}

#[test]
fn a_real_vocabulary_decides_the_same() {
    let name = json!({ "type": "object", "properties": { "name": { "type": "string" } },
        "required": ["name"], "additionalProperties": false });
    check(
        &["-m", smollm2()],
        &[
            (
                json!({ "schema": name, "doc": { "name": "Zoë 🦙" } }),
                (true, json!(true), json!(null)),
            ),
            (json!({ "schema": name, "doc": { "name": 7 } }), (true, json!(false), json!(null))),
            (json!({ "schema": name, "doc": {} }), (true, json!(false), json!(null))),
        ],
    );
}

#[test]
fn a_line_that_cannot_be_read_does_not_end_the_run() {
    let good = json!({ "schema": {}, "doc": 1 }).to_string();
    let bad = [
        "no JSON",
        "[]",
        "{}",
        r#"{"schema": {}, "doc": 1, "text": "1"}"#,
        r#"{"schema": {}, "document": 1}"#,
        r#"{"schema": {}, "text": 1}"#,
    ];
    let input = format!("{good}\n\n{}\n{good}\n", bad.join("\n"));
    let ran = asked(&[], &input);
    assert_eq!(ran.code, 2, "{ran:?}");
    let answers = lines(&ran.stdout);
    assert_eq!(answers.len(), bad.len() + 2, "{ran:?}");
    for (index, answer) in answers.iter().enumerate() {
        let is_good = index == 0 || index == answers.len() - 1;
        assert_eq!(answer.get("compiled").is_some(), is_good, "line {index}: {answer}");
        assert_eq!(answer["error"].is_string(), !is_good, "line {index}: {answer}");
    }
    assert!(ran.stderr.contains("6 of 8 lines"), "{ran:?}");
}

#[test]
fn unknown_keywords_are_warnings() {
    let schema = json!({ "properties": { "a": { "colour": "red" } } });
    let answer = object(&asked(&[], &json!({ "schema": schema, "doc": {} }).to_string()));
    let want = json!([{ "path": "#/properties/a/colour", "keyword": "colour" }]);
    assert_eq!(answer["warnings"], want, "{answer}");
}

#[test]
fn the_bench_says_what_it_walked_through() {
    let folder = tempfile::tempdir().unwrap();
    let ticket = tree().join("testdata/schemas/ticket_verdict.json");
    std::fs::copy(ticket, folder.path().join("ticket.json")).unwrap();
    std::fs::write(folder.path().join("bad.json"), r#"{"not": {}}"#).unwrap();
    let path = folder.path().display().to_string();
    let ran = causeway(&["schema", "--mask-bench", &path, "-m", smollm2()]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let answers = lines(&ran.stdout);
    assert_eq!(answers.len(), 2, "{ran:?}");
    assert!(answers[0]["error"].as_str().unwrap().contains("`not`"), "{ran:?}");
    let whole = &answers[1];
    let counts = ["schemas", "refused", "answers", "answers_failed"].map(|name| &whole[name]);
    assert_eq!(counts.map(|count| count.as_u64().unwrap()), [1, 1, 3, 0], "{whole}");
    for times in [&whole["environment_ms"], &whole["compile_ms"]["p50"], &whole["mask_us"]["p99"]] {
        assert!(times.as_f64().unwrap() > 0.0, "{whole}");
    }
    let empty = tempfile::tempdir().unwrap().path().display().to_string();
    assert_eq!(causeway(&["schema", "--mask-bench", &empty, "-m", smollm2()]).code, 1);
}
