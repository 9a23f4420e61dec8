//! The fixtures of `tokenizer.json` as GGUF files: the same ids, by the same library's own word.

use std::path::PathBuf;

use causeway_request::TokenId;
use serde_json::Value;

use super::super::tokenizer;
use super::{Entry, MODEL, TOKENS, opened};
use crate::json::charsmap::decoded;
use crate::tokenizer::Tokenizer;

fn folder(name: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tokenization/json");
    root.join(name)
}

fn json(name: &str) -> Value {
    let text = std::fs::read_to_string(folder(name).join("tokenizer.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Each case's ids and text, where `counts` says that the file can know them.
fn check(name: &str, tokenizer: &Tokenizer, counts: impl Fn(&str) -> bool) {
    let cases = std::fs::read_to_string(folder(name).join("cases.jsonl")).unwrap();
    let mut seen = 0;
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let text = case["text"].as_str().unwrap();
        if !counts(text) {
            continue;
        }
        seen += 1;
        let wanted: Vec<u32> = serde_json::from_value(case["ids"]["special"].clone()).unwrap();
        let found: Vec<u32> =
            tokenizer.encode(text, true, false).unwrap().iter().map(|token| token.0).collect();
        assert_eq!(found, wanted, "{name} {text:?}");
        let full = tokenizer.encode(text, true, true).unwrap();
        assert_eq!(full.last(), Some(&TokenId(2)), "{name} {text:?}");
    }
    assert!(seen > 80, "{name}: {seen} cases");
}

#[test]
fn unigram_of_a_gguf_file_is_that_of_its_folder() {
    let file = json("precompiled");
    let pieces = file["model"]["vocab"].as_array().unwrap();
    let texts: Vec<&str> = pieces.iter().map(|piece| piece[0].as_str().unwrap()).collect();
    let scores: Vec<f32> =
        pieces.iter().map(|piece| piece[1].to_string().parse().unwrap()).collect();
    let types: Vec<i32> =
        (0..texts.len()).map(|id| [2, 3, 3].get(id).copied().unwrap_or(1)).collect();
    let table = &file["normalizer"]["normalizers"][0]["precompiled_charsmap"];
    let table = decoded(table.as_str().unwrap()).unwrap();
    let entries = [
        (MODEL, Entry::String("t5")),
        (TOKENS, Entry::Strings(&texts)),
        ("tokenizer.ggml.scores", Entry::F32s(&scores)),
        ("tokenizer.ggml.token_type", Entry::I32s(&types)),
        ("tokenizer.ggml.precompiled_charsmap", Entry::U8s(&table)),
        ("tokenizer.ggml.unknown_token_id", Entry::U32(0)),
        ("tokenizer.ggml.eos_token_id", Entry::U32(2)),
    ];
    let found = tokenizer(opened("t5", &entries).metadata()).unwrap();
    // The folder's normaliser takes white space off the end, which a key of its own asks for here.
    // Its scores are 64 bits wide, so that ways through a long run tie there and not here.
    let is_whole = |text: &str| {
        let is_white = |c: char| c.is_whitespace() || c == '\u{200d}';
        !text.ends_with(is_white) && !text.contains("éééé") && text != "[CLS] a [SEP]"
    };
    check("precompiled", &found, is_whole);
}

#[test]
fn word_pieces_of_a_gguf_file_are_those_of_its_folder() {
    let file = json("word_piece_cleaned");
    let words = file["model"]["vocab"].as_object().unwrap();
    let mut texts = vec![String::new(); words.len()];
    for (text, id) in words {
        let id = usize::try_from(id.as_u64().unwrap()).unwrap();
        texts[id] = match text.strip_prefix("##") {
            Some(rest) => rest.to_owned(),
            None if id < 3 => text.clone(),
            None => format!("\u{2581}{text}"),
        };
    }
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let types: Vec<i32> =
        (0..texts.len()).map(|id| [2, 3, 3].get(id).copied().unwrap_or(1)).collect();
    let entries = [
        (MODEL, Entry::String("bert")),
        (TOKENS, Entry::Strings(&texts)),
        ("tokenizer.ggml.token_type", Entry::I32s(&types)),
        ("tokenizer.ggml.unknown_token_id", Entry::U32(0)),
        ("tokenizer.ggml.cls_token_id", Entry::U32(1)),
        ("tokenizer.ggml.seperator_token_id", Entry::U32(2)),
    ];
    let found = tokenizer(opened("bert-words", &entries).metadata()).unwrap();
    // Where one word is longer than BERT's hundred letters, the folder's own limit of 40 counts.
    let is_short = |text: &str| text.split_whitespace().all(|word| word.chars().count() <= 40);
    check("word_piece_cleaned", &found, is_short);
}

#[test]
fn what_such_a_file_lacks_is_named() {
    let check = |model: &str, want: &str| {
        let entries = [(MODEL, Entry::String(model)), (TOKENS, Entry::Strings(&["a", "b"]))];
        let name = format!("lacks-{model}");
        let refusal = tokenizer(opened(&name, &entries).metadata()).unwrap_err();
        assert_eq!(refusal.to_string(), want);
    };
    check("t5", "the vocabulary has no scores");
    check("bert", "the vocabulary has no unknown token");
}
