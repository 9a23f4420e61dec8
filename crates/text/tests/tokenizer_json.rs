//! Small `tokenizer.json` files of every kind against the `tokenizers` package's own answers.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::path::Path;

use causeway_text::{DetokenizeOptions, Text};
use serde_json::Value;

/// Every string of the folder: its ids with and without control tokens, and the text they give.
fn check(name: &str, decodes: bool) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tokenization/json");
    let folder = folder.join(name);
    let tokenizer = Text::from_folder(&folder).unwrap().tokenizer;
    let cases = std::fs::read_to_string(folder.join("cases.jsonl")).unwrap();
    let mut wrong = Vec::new();
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let input = case["text"].as_str().unwrap();
        for (key, parse) in [("special", true), ("plain", false)] {
            let wanted: Vec<u32> = serde_json::from_value(case["ids"][key].clone()).unwrap();
            let tokens = tokenizer.encode(input, parse, false).unwrap();
            let found: Vec<u32> = tokens.iter().map(|token| token.0).collect();
            if found != wanted {
                wrong.push(format!("{key} {input:?}: {found:?}, wanted {wanted:?}"));
            }
            let options = DetokenizeOptions { show_control: false, continues: false };
            let text = tokenizer.decode(&tokens, options).unwrap();
            if decodes && parse && text != case["decoded"].as_str().unwrap() {
                wrong.push(format!("{input:?} becomes {text:?}, wanted {}", case["decoded"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{name}: {} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn byte_pairs_with_byte_fallback() {
    check("llama", true);
    check("metaspace_first", true);
    check("metaspace_never", true);
}

#[test]
fn unigram() {
    check("unigram", true);
    check("unigram_unknown", true);
}

#[test]
fn word_piece() {
    check("word_piece", false);
}

#[test]
fn byte_level() {
    check("byte_level", true);
    check("prefixed", true);
    check("behaviours", true);
}
