//! `trim` on a real model: three ways to answer, the same draws, and what they took.

mod support;

use std::path::Path;

use serde_json::Value;
use support::{Ran, causeway, object, smollm2};

const POLICY: &str = r#"
schema = 1
[prompt]
system = "You triage support tickets."
[constraints]
schema = '''{"type":"object","properties":{"reasoning":{"type":"string","minLength":1,"maxLength":40},
"verdict":{"enum":["routine","urgent"]}},"required":["reasoning","verdict"],"additionalProperties":false}'''
[shape]
temperature = 0.8
"#;

const EVAL: &str = r#"{"prompt": "The office is on fire.", "expect": {"verdict": "urgent"}}

{"prompt": "How do I print?", "expect": {"verdict": "routine"}}
{"prompt": "Hello."}
"#;

fn written(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("a file can be written");
    path.display().to_string()
}

fn trim(folder: &Path, eval: &str, more: &[&str]) -> Ran {
    let policy = written(folder, "p.toml", POLICY);
    let eval = written(folder, "e.jsonl", eval);
    causeway(&[&["trim", &policy, "-m", smollm2(), "--eval", &eval], more].concat())
}

#[test]
fn three_variants_answer_the_same_inputs_with_the_same_draws() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let told = object(&trim(folder.path(), EVAL, &["--field", "reasoning", "--json"]));
    assert_eq!(told["inputs"], 3);
    let variants = told["variants"].as_array().expect("variants are a list");
    let names: Vec<&Value> = variants.iter().map(|variant| &variant["variant"]).collect();
    assert_eq!(names, ["as it is", "without `reasoning`", "without, reasoned silently"]);
    let number = |variant: usize, name: &str| variants[variant][name].as_f64().expect("a number");
    assert!(number(0, "steps") > number(1, "steps"), "{told}");
    assert!(number(0, "decode_passes") > number(1, "decode_passes"), "{told}");
    assert!((number(1, "prompt_tokens") - number(0, "prompt_tokens")).abs() < 1e-9, "{told}");
    assert!(number(2, "prompt_tokens") > number(1, "prompt_tokens") + 5.0, "{told}");
    assert!((number(0, "cost") - 1.0).abs() < 1e-9, "{told}");
    for (index, variant) in variants.iter().enumerate() {
        let answers = variant["answers"].as_array().expect("answers are a list");
        assert_eq!(answers.len(), 3);
        for answer in answers {
            let text = answer.as_str().expect("an answer is text");
            let answer: Value = serde_json::from_str(text).expect("an answer is JSON");
            assert_eq!(answer.get("reasoning").is_some(), index == 0, "{text}");
        }
        assert_eq!(variant["stops"]["schema_complete"], 3, "{variant}");
        let quality = |name: &str| variant["quality"][name].as_f64().expect("a number");
        let share = quality("right") / 2.0;
        assert!(variant["quality"]["known"] == 2, "one right answer is not known: {variant}");
        assert!(0.0 <= quality("low") && quality("low") <= share, "{variant}");
        assert!(share <= quality("high") && quality("high") <= 1.0, "{variant}");
        let moved = quality("gained") - quality("lost");
        let first = variants[0]["quality"]["right"].as_f64().expect("a number");
        assert!((first + moved - quality("right")).abs() < 1e-9, "{told}");
    }
    let again = object(&trim(folder.path(), EVAL, &["--field", "/reasoning", "--json"]));
    for (index, variant) in variants.iter().enumerate() {
        assert_eq!(again["variants"][index]["answers"], variant["answers"]);
    }
    let table = trim(folder.path(), EVAL, &["--field", "reasoning"]);
    assert_eq!((table.code, table.stderr.as_str(), table.stdout.lines().count()), (0, "", 6));
    assert!(table.stdout.starts_with("3 inputs"), "{}", table.stdout);
    assert!(table.stdout.contains("costs the same, but for the"), "{}", table.stdout);
    assert!(table.stdout.contains("another computation than the first"), "{}", table.stdout);
}

#[test]
fn the_examples_tickets_expect_what_its_policy_can_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ticket");
    let policy = folder.join("policies/verdict.toml").display().to_string();
    assert_eq!(causeway(&["policy", "check", &policy]).code, 0);
    let tickets = std::fs::read_to_string(folder.join("tickets.jsonl")).expect("there are tickets");
    let verdict = |line| -> String {
        let ticket: Value = serde_json::from_str(line).expect("a ticket is JSON");
        assert!(ticket["prompt"].as_str().is_some_and(|prompt| prompt.len() > 20), "{line}");
        ticket["expect"]["verdict"].as_str().expect("a verdict is text").to_owned()
    };
    let verdicts: Vec<String> = tickets.lines().map(verdict).collect();
    for name in ["routine", "urgent"] {
        assert_eq!(verdicts.iter().filter(|verdict| *verdict == name).count(), 12, "{name}");
    }
}

/// A refusal of the caller's mistake, in one sentence that holds `want`.
fn check(eval: &str, more: &[&str], want: &str) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let ran = trim(folder.path(), eval, more);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.lines().count()), (2, "", 1), "{ran:?}");
    assert!(ran.stderr.contains(want), "{ran:?}");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let field = ["--field", "reasoning"];
    check(EVAL, &["--field", "reason"], "the schema declares no field `reason`");
    let long = "f".repeat(5000);
    check(EVAL, &["--field", &long], "ffff…ffff");
    check("", &field, "0 inputs, where at least 1 is needed");
    check("{\"prompt\": 1}", &field, "e.jsonl`, line 1: ");
    check("\n{\"prompt\": \"a\", \"expected\": {}}", &field, "e.jsonl`, line 2: unknown field");
    let other = r#"{"prompt": "a", "expect": {"score": 1}}"#;
    check(other, &field, "line 1: `expect` names `score`, which the schema does not declare");
    let trimmed = r#"{"prompt": "a", "expect": {"reasoning": "b"}}"#;
    check(trimmed, &field, "`expect` names `reasoning`, which is the field to leave out");
    check(&"{\"prompt\": \"a\"}\n".repeat(10_001), &field, "10001 inputs, the limit is 10000");
}

/// What is said where this schema is compared without this field.
fn refused(schema: &str, field: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let policy = format!("schema = 1\n[constraints]\nschema = '''{schema}'''\n");
    let policy = written(folder.path(), "p.toml", &policy);
    let asked = ["trim", &policy, "-m", smollm2(), "--prompt", "a", "--field", field];
    let ran = causeway(&asked);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.lines().count()), (2, "", 1), "{ran:?}");
    ran.stderr
}

#[test]
fn a_schema_that_cannot_be_held_is_told_once_and_as_which() {
    let told = refused(r#"{"properties":{"a":{"not":{}},"b":{}}}"#, "b");
    let want = "causeway: `constraints.schema`: schema, #/properties/a/not: \
                the keyword `not` is not supported\n";
    assert_eq!(told, want);
    let pair = r#"{"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"}},
                   "required":["a","b"],"minProperties":2,"additionalProperties":false}"#;
    let told = refused(pair, "b");
    let want = "causeway: the schema without `b` cannot be held: `constraints.schema`: schema, #";
    assert!(told.starts_with(want), "{told}");
    assert_eq!(told.matches("schema, #").count(), 1, "{told}");
}

#[test]
fn a_field_of_any_name_keeps_to_its_lines() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let name = "f\u{1b}[2J\nwithout `forged`  1".to_owned();
    for name in [name, "n".repeat(5000)] {
        let schema = serde_json::json!({
            "type": "object",
            "properties": { &name: { "type": "null" }, "b": { "type": "null" } },
            "required": [&name, "b"],
            "additionalProperties": false,
        });
        let policy = format!("schema = 1\n[constraints]\nschema = '''{schema}'''\n");
        let policy = written(folder.path(), "p.toml", &policy);
        let base = ["trim", &policy, "-m", smollm2(), "--prompt", "a", "--field", &name];
        let ran = causeway(&base);
        if name.starts_with('n') {
            // Whether so long a name has room in an answer is not the question.
            assert!(ran.stdout.len() + ran.stderr.len() < 2000, "{ran:?}");
            continue;
        }
        assert_eq!((ran.code, ran.stdout.lines().count()), (0, 6), "{ran:?}");
        assert!(!ran.stdout.contains('\u{1b}'), "{ran:?}");
        assert!(ran.stdout.contains("without `f\\u{1b}[2J\\nwithout `forged`  1`"), "{ran:?}");
    }
}
