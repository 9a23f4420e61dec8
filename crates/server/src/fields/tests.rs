//! Cases of reading fields: types, ranges, names, and what tables may not do.

use serde_json::json;

use super::chat::CHAT;
use super::completions::COMPLETIONS;
use super::embeddings::EMBEDDINGS;
use super::messages::{COUNT_TOKENS, MESSAGES};
use super::responses::RESPONSES;
use super::tokens::{APPLY_TEMPLATE, DETOKENIZE, TOKENIZE};
use super::*;

/// The sentence that a body gets; empty where it is read.
fn check(body: Value, want: &str) {
    let found = Fields::read(CHAT, body.as_object().unwrap());
    let text = found.map_or_else(|error| error.message, |_| String::new());
    assert_eq!(text, want, "{body}");
}

#[test]
fn a_field_is_read_or_refused_by_its_name() {
    check(json!({ "temperature": 1.5, "user": "u", "store": false, "n": null }), "");
    check(json!({ "temprature": 1 }), "unknown field `temprature`: did you mean `temperature`?");
    check(json!({ "zzzzzz": 1 }), "unknown field `zzzzzz`");
    check(
        json!({ "temperature": "hot" }),
        "`temperature` is the text \"hot\", must be a number between 0 and 2",
    );
    check(json!({ "top_p": 0 }), "`top_p` is 0, must be a number above 0 and at most 1");
    check(json!({ "n": 1.5 }), "`n` is 1.5, must be a whole number between 1 and 16");
    check(json!({ "stream": 1 }), "`stream` is 1, must be true or false");
    check(
        json!({ "priority": "high" }),
        "`priority` is the text \"high\", must be one of `interactive`, `batch`",
    );
    check(
        json!({ "store": true }),
        "`store` is not supported: answers are not stored for retrieval",
    );
    check(json!({ "audio": {} }), "`audio` is not supported: answers are text");
    let long = "x".repeat(600);
    check(
        json!({ "user": long }),
        "`user` is a text of 600 bytes, must be a text of at most 512 bytes",
    );
}

#[test]
fn a_value_goes_over_as_the_policy_spells_it() {
    let body = json!({ "stop": "x", "temperature": 0.5, "seed": 4 });
    let fields = Fields::read(CHAT, body.as_object().unwrap()).unwrap();
    let edits: Vec<(&str, Value)> =
        fields.edits.iter().map(|edit| (edit.path, edit.value.clone())).collect();
    assert_eq!(edits, [("stop.strings", json!(["x"])), ("shape.temperature", json!(0.5))]);
    assert_eq!(fields.count("seed"), Some(4));
}

#[test]
fn every_table_has_a_name_once_and_every_path_is_the_policys() {
    for table in [
        CHAT,
        COMPLETIONS,
        RESPONSES,
        MESSAGES,
        COUNT_TOKENS,
        EMBEDDINGS,
        TOKENIZE,
        DETOKENIZE,
        APPLY_TEMPLATE,
    ] {
        let mut names: Vec<&str> =
            table.iter().copied().flatten().map(|field| field.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count, "a name stands twice");
    }
    let known = causeway_policy::PolicyFile::default().to_json();
    for field in CHAT.iter().copied().flatten() {
        if let Rule::Policy(path, _) = field.rule {
            let section = path.split('.').next().unwrap();
            // A field without a value has no place in the tree of defaults.
            let is_there = known.get(section).is_some() || path == "like";
            assert!(is_there, "{path}");
        }
    }
}
