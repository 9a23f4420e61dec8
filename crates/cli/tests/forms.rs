//! Answers of a set form on a real model: held, laid ahead, recorded, played again.

mod support;

use serde_json::Value;
use support::{Ran, causeway, lines, object, smollm2};

const TICKET: &str = "Since Monday the export button does nothing. I lost two hours of work.";

fn example(name: &str) -> String {
    format!("{}/../../examples/ticket/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn run(more: &[&str]) -> Ran {
    causeway(&[&["run", "-m", smollm2(), "--json", "--tokens-max", "250", TICKET], more].concat())
}

/// The run's steps without times, pass numbers and rows, which differ from run to run.
fn steps(record: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(record).expect("the record was written");
    let record: Value = serde_json::from_str(&text).expect("a record is JSON");
    let mut steps = record["steps"].as_array().expect("a record has steps").clone();
    for step in &mut steps {
        for name in ["pass", "rows", "since_arrival_ns"] {
            step.as_object_mut().expect("a step is an object").remove(name);
        }
    }
    steps
}

#[test]
fn a_schema_is_held_in_its_order_and_every_way_of_computing_it_gives_the_same_record() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let schema = example("schema-reasoning-first.json");
    let store = folder.path().join("l.sqlite").display().to_string();
    let mut all = Vec::new();
    for (index, more) in
        [&["--chunk", "512"][..], &["--chunk", "3"], &["--no-fast-forward"]].into_iter().enumerate()
    {
        let record = folder.path().join(format!("{index}.json")).display().to_string();
        let asked = ["--schema", &schema, "--record", &record, "--store", &store, "--fields"];
        let asked = [&asked[..], more].concat();
        let answer = object(&run(&asked));
        let text = answer["text"].as_str().expect("an answer has text");
        let parsed: Value = serde_json::from_str(text).expect("the answer is JSON");
        let names: Vec<&String> = parsed.as_object().expect("an object").keys().collect();
        assert_eq!(names[0], "reasoning", "{text}");
        assert_eq!(answer["stop"]["reason"], "schema_complete", "{answer}");
        let forced = answer["account"]["tokens"]["forced"].as_u64().expect("a count");
        assert!(forced > 4, "{answer}");
        let passes = answer["account"]["passes"]["decode"].as_u64().expect("a count");
        let tokens = answer["account"]["tokens"]["prefix"].as_u64().expect("a count");
        let fast = !more.contains(&"--no-fast-forward");
        assert_eq!(passes + 1 < tokens, fast, "{answer}");
        let of_fields = |name: &str| {
            let fields = answer["fields"].as_array().expect("JSON has fields").iter();
            fields.map(|field| field[name].as_u64().expect("a count")).sum::<u64>()
        };
        assert_eq!(of_fields("chosen") + of_fields("forced"), tokens, "{answer}");
        assert_eq!(of_fields("decode_passes"), passes, "{answer}");
        let replayed = causeway(&["replay", &record, "--json"]);
        assert_eq!(replayed.code, 0, "{replayed:?}");
        assert_eq!(lines(&replayed.stdout)[0]["equal_steps"], tokens, "{replayed:?}");
        let file = std::fs::read_to_string(&record).expect("the record was written");
        let kept: Value = serde_json::from_str(&file).expect("a record is JSON");
        assert_eq!(kept["end"]["fields"], answer["fields"], "{kept}");
        assert_eq!(kept["end"].get("open_field"), None, "{kept}");
        let id = kept["id"].as_str().expect("a record has an id");
        let show =
            |more: &[&str]| causeway(&[&["ledger", "show", id, "--store", &store], more].concat());
        assert_eq!(show(&["--json"]).stdout, file);
        assert!(show(&[]).stdout.contains("\nfields\nfield "), "{:?}", show(&[]));
        all.push(steps(&record));
    }
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{all:?}");
}

#[test]
fn other_forms_are_held_too() {
    let said = |more: &[&str]| object(&run(more))["text"].as_str().expect("text").to_owned();
    let choice = said(&["--choice", "refund", "--choice", "escalate"]);
    assert!(["refund", "escalate"].contains(&choice.as_str()), "{choice}");
    let digits = said(&["--regex", "[0-9]{4}"]);
    assert!(digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit()), "{digits}");
}

#[test]
fn a_policy_that_leaves_no_token_is_the_callers_mistake() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let record = folder.path().join("r.json").display().to_string();
    let asked = ["--regex", "[0-9]{2}", "--allowed-tokens", "51", "--record", &record];
    let ran = run(&asked);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(
        ran.stderr.contains("the run ended early: `allowed_tokens` leaves no token"),
        "{ran:?}"
    );
    let kept = std::fs::read_to_string(&record).expect("the record was written");
    let kept: Value = serde_json::from_str(&kept).expect("a record is JSON");
    assert_eq!(kept["end"]["stop"]["is_callers_mistake"], true, "{kept}");
    assert_eq!(kept["end"]["account"]["masks"]["passes"], 1, "{kept}");
    let replayed = causeway(&["replay", &record, "--json"]);
    assert_eq!((replayed.code, &object(&replayed)["outcome"]), (0, &"equal_so_far".into()));
}

#[test]
fn a_form_that_cannot_be_held_is_refused_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("schema.json");
    std::fs::write(&path, r#"{"type":"object","properties":{"a":{"not":{}}}}"#).expect("written");
    let ran = run(&["--schema", &path.display().to_string()]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("`constraints.schema`: schema, #/properties/a/not"), "{ran:?}");
    let ran = run(&["--schema", "no-such-file.json"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("cannot read the file `no-such-file.json`"), "{ran:?}");
    let ran = run(&["--schema", &example("schema-score-first.json"), "--regex", "a"]);
    assert_eq!(ran.code, 2, "{ran:?}");
}

#[test]
fn a_schema_that_cannot_be_held_is_refused_in_one_sentence_that_says_it_once() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("s.json");
    std::fs::write(&path, r#"{"properties":{"a":{"not":{}}}}"#).expect("a file can be written");
    let ran = run(&["--schema", &path.display().to_string()]);
    let want = "causeway: `constraints.schema`: schema, #/properties/a/not: \
                the keyword `not` is not supported\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (2, want));
}
