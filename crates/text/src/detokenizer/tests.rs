//! Streams of tokens to text: characters split over tokens, leading spaces, the end.

use proptest::prelude::*;

use super::*;
use crate::toy;
use crate::vocabulary::Vocabulary;

/// The text after each token and at the end; tokens by their spelling.
fn run(vocabulary: &Vocabulary, spelled: &[&str], continues: bool) -> Vec<String> {
    let tokenizer = Tokenizer::from_vocabulary(vocabulary).unwrap();
    let options = DetokenizeOptions { show_control: false, continues };
    let mut detokenizer = Detokenizer::new(&tokenizer, options);
    let mut shown = Vec::new();
    for text in spelled {
        let id = vocabulary.tokens.iter().position(|token| token == text).unwrap();
        shown.push(detokenizer.push(TokenId(u32::try_from(id).unwrap())).unwrap());
    }
    shown.push(detokenizer.finish());
    shown
}

#[test]
fn a_character_waits_for_its_last_byte() {
    let vocabulary = toy::sentence_piece();
    let shown = run(&vocabulary, &["<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "o"], true);
    assert_eq!(shown, ["", "", "", "😀", "o", ""]);
}

#[test]
fn what_never_becomes_a_character_is_replaced_once() {
    let vocabulary = toy::sentence_piece();
    let shown = run(&vocabulary, &["<0xF0>", "<0x9F>", "<0x98>"], true);
    assert_eq!(shown, ["", "", "", "\u{fffd}"]);
    let shown = run(&vocabulary, &["<0xF0>", "<0x9F>", "H", "<0x80>", "<0xFF>"], true);
    assert_eq!(shown, ["", "", "\u{fffd}H", "\u{fffd}", "\u{fffd}", ""]);
    let shown = run(&vocabulary, &["<0xE0>", "<0x80>", "<0xED>", "<0xA0>"], true);
    assert_eq!(shown, ["", "\u{fffd}\u{fffd}", "", "\u{fffd}\u{fffd}", ""]);
}

#[test]
fn one_leading_space_of_the_whole_text_is_the_vocabularys() {
    let vocabulary = toy::sentence_piece();
    let spelled = ["▁Hello", "▁Hello", "▁▁▁", "."];
    assert_eq!(run(&vocabulary, &spelled, false).concat(), "Hello Hello   .");
    assert_eq!(run(&vocabulary, &spelled, true).concat(), " Hello Hello   .");
    assert_eq!(run(&vocabulary, &["<s>", "▁▁", "▁Hello"], false).concat(), "  Hello");
    assert_eq!(run(&vocabulary, &["▁", "▁Hello"], false), ["", " Hello", ""]);
    let without = Vocabulary { add_space_prefix: false, ..vocabulary };
    assert_eq!(run(&without, &["▁Hello"], false).concat(), " Hello");
}

#[test]
fn control_tokens_leave_text_only_when_asked() {
    let vocabulary = toy::byte_level();
    assert_eq!(run(&vocabulary, &["hello", "<|im_end|>", "<tool>"], false).concat(), "hello<tool>");
    let tokenizer = Tokenizer::from_vocabulary(&vocabulary).unwrap();
    let options = DetokenizeOptions { show_control: true, continues: false };
    assert_eq!(tokenizer.decode(&[TokenId(261)], options).unwrap(), "<|im_end|>");
}

proptest! {
    #[test]
    fn pieces_joined_are_the_whole_text(
        ids in prop::collection::vec(0u32..282, 0..40),
        continues: bool,
    ) {
        let vocabulary = toy::sentence_piece();
        let tokenizer = Tokenizer::from_vocabulary(&vocabulary).unwrap();
        let mut bytes = Vec::new();
        let mut strips = !continues;
        for id in &ids {
            let piece = tokenizer.piece(TokenId(*id)).unwrap();
            if tokenizer.is_control(TokenId(*id)) {
                continue;
            }
            let stripped = if strips { piece.strip_prefix(b" ") } else { None };
            strips = false;
            bytes.extend_from_slice(stripped.unwrap_or(piece));
        }
        let options = DetokenizeOptions { show_control: false, continues };
        let mut detokenizer = Detokenizer::new(&tokenizer, options);
        let mut text = String::new();
        for id in ids {
            text.push_str(&detokenizer.push(TokenId(id)).unwrap());
        }
        text.push_str(&detokenizer.finish());
        prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
    }
}
