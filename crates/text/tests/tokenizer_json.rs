//! Small `tokenizer.json` files of every kind against the `tokenizers` package's own answers.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::path::Path;

use causeway_request::TokenId;
use causeway_text::{DetokenizeOptions, Text};
use serde_json::Value;

/// Every string of the folder: its ids with and without control tokens, and the text they give.
fn check(name: &str) {
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
            let is_unknown =
                |id| tokenizer.piece(id).is_ok_and(|piece| matches!(piece, b"<unk>" | b"[UNK]"));
            let is_control =
                |id: &u32| tokenizer.is_control(TokenId(*id)) && !is_unknown(TokenId(*id));
            if !parse && wanted.iter().any(is_control) {
                // The library itself lets a text spell what its model takes whole.
                assert!(!found.iter().any(is_control), "{name}: {input:?} is {found:?}");
                continue;
            }
            if found != wanted {
                wrong.push(format!("{key} {input:?}: {found:?}, wanted {wanted:?}"));
            }
            let options = DetokenizeOptions { show_control: false, continues: false };
            let told =
                [("shown", &tokens[..], true), ("tail", tokens.get(1..).unwrap_or(&[]), false)];
            for (key, tokens, show_control) in told {
                let text = tokenizer.decode(tokens, DetokenizeOptions { show_control, ..options });
                let (text, wanted) = (text.unwrap(), case[key].as_str());
                if parse && wanted.is_some_and(|wanted| text != wanted) {
                    wrong.push(format!("{key} {input:?} becomes {text:?}, wanted {}", case[key]));
                }
            }
            let text = tokenizer.decode(&tokens, options).unwrap();
            if parse && text != case["decoded"].as_str().unwrap() {
                wrong.push(format!("{input:?} becomes {text:?}, wanted {}", case["decoded"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{name}: {} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn byte_pairs_with_byte_fallback() {
    check("llama");
    check("metaspace_first");
    check("metaspace_never");
}

#[test]
fn unigram() {
    check("unigram");
    check("unigram_unknown");
}

#[test]
fn word_piece() {
    check("word_piece");
    check("word_piece_cleaned");
    check("word_piece_spaced");
}

#[test]
fn words_and_letters() {
    check("word_level");
    check("ctc");
}

#[test]
fn a_table_of_characters() {
    check("precompiled");
}

#[test]
fn byte_level() {
    check("byte_level");
    check("prefixed");
    check("behaviours");
}
