//! Words to tokens by ranked merges, on a toy vocabulary.

use super::*;
use crate::toy;

fn check(vocabulary: &Vocabulary, text: &str, spelled: &str) {
    let model = ByteLevel::new(vocabulary).unwrap();
    let mut tokens = Vec::new();
    model.encode(text, &mut tokens);
    let found: Vec<&str> =
        tokens.iter().map(|token| vocabulary.tokens[*token as usize].as_str()).collect();
    assert_eq!(found.join("|"), spelled, "{text:?}");
}

#[test]
fn the_best_pair_is_joined_first() {
    let vocabulary = toy::byte_level();
    check(&vocabulary, "hello hello", "hello|Ġhello");
    check(&vocabulary, "helllo", "hell|l|o");
    check(&vocabulary, "llll", "ll|ll");
    check(&vocabulary, "é", "Ã|©");
}

#[test]
fn bytes_without_a_token_vanish() {
    let mut vocabulary = toy::byte_level();
    vocabulary.tokens[usize::from(b'x')] = "<hole>".to_owned();
    vocabulary.types[usize::from(b'x')] = TokenType::Unused;
    check(&vocabulary, "axhex", "a|he");
}

#[test]
fn no_merge_makes_a_control_token() {
    let mut vocabulary = toy::byte_level();
    vocabulary.types[259] = TokenType::Control;
    check(&vocabulary, "hello", "hell|o");
}

#[test]
fn whole_words_go_before_merges_where_the_pre_tokenizer_says() {
    let mut vocabulary = toy::byte_level();
    vocabulary.tokens.push("oeh".to_owned());
    vocabulary.types.push(TokenType::Normal);
    check(&vocabulary, "oeh", "o|e|h");
    vocabulary.pre_tokenizer = "llama-bpe".to_owned();
    check(&vocabulary, "oeh", "oeh");
}

#[test]
fn a_long_word_takes_no_square_of_time() {
    let (vocabulary, text) = (toy::byte_level(), "l".repeat(1 << 18));
    let mut tokens = Vec::new();
    ByteLevel::new(&vocabulary).unwrap().encode(&text, &mut tokens);
    assert_eq!(tokens, vec![257; 1 << 17]);
}
