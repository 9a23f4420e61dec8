//! Merges by score, byte fallback and pieces taken apart, on a toy vocabulary.

use super::*;
use crate::toy;

fn check(vocabulary: &Vocabulary, text: &str, spelled: &str) {
    let mut tokens = Vec::new();
    SentencePiece::new(vocabulary).encode(text, &mut tokens);
    let found: Vec<&str> =
        tokens.iter().map(|token| vocabulary.tokens[*token as usize].as_str()).collect();
    assert_eq!(found.join("|"), spelled, "{text:?}");
}

#[test]
fn the_best_score_is_joined_first_then_the_leftmost() {
    let vocabulary = toy::sentence_piece();
    check(&vocabulary, "▁Hello", "▁Hello");
    check(&vocabulary, "Helllo", "Hell|l|o");
    check(&vocabulary, "▁▁▁▁", "▁▁▁|▁");
    check(&vocabulary, "", "");
}

#[test]
fn what_no_piece_spells_becomes_bytes() {
    let mut vocabulary = toy::sentence_piece();
    check(&vocabulary, "H🦙.", "H|<0xF0>|<0x9F>|<0xA6>|<0x99>|.");
    vocabulary.tokens[3 + 0xF0] = "<gone>".to_owned();
    check(&vocabulary, "H🦙.é", "H|<unk>|.|<0xC3>|<0xA9>");
    vocabulary.special.unknown = None;
    check(&vocabulary, "H🦙.", "H|.");
}

#[test]
fn control_unknown_and_byte_tokens_come_from_no_text() {
    let mut vocabulary = toy::sentence_piece();
    for text in ["<", "s", ">", "/", "<s", "/s", "</s"] {
        vocabulary.tokens.push(text.to_owned());
        vocabulary.types.push(TokenType::Normal);
        vocabulary.scores.push(9.0);
    }
    check(&vocabulary, "<s>", "<s|>");
    check(&vocabulary, "</s>", "</s|>");
}

#[test]
fn unused_pieces_are_taken_apart_again() {
    let mut vocabulary = toy::sentence_piece();
    let unused = |vocabulary: &mut Vocabulary, text: &str| {
        let id = vocabulary.tokens.iter().position(|token| token == text).unwrap();
        vocabulary.types[id] = TokenType::Unused;
    };
    check(&vocabulary, "his", "his");
    unused(&mut vocabulary, "his");
    check(&vocabulary, "his", "hi|s");
    unused(&mut vocabulary, "hi");
    check(&vocabulary, "his", "h|i|s");
    unused(&mut vocabulary, "h");
    check(&vocabulary, "h", "h");
}

#[test]
fn equal_scores_have_equal_ranks() {
    assert_eq!(ranks_of(&[1.0, 3.0, -2.0, 3.0, 1.0]), [1, 0, 2, 0, 1]);
    assert_eq!(ranks_of(&[]), Vec::<u32>::new());
}
