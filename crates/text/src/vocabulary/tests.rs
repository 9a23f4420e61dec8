//! Vocabularies that no tokenizer can be built on, each refused in one sentence.

use super::*;
use crate::tokenizer::Tokenizer;
use crate::toy;

/// The refusal of a toy vocabulary after one change.
fn check(mut vocabulary: Vocabulary, spoil: impl FnOnce(&mut Vocabulary), sentence: &str) {
    spoil(&mut vocabulary);
    let refusal = Tokenizer::from_vocabulary(&vocabulary).unwrap_err().to_string();
    assert_eq!(refusal, sentence);
}

#[test]
fn counts_must_agree() {
    let sentence = "the vocabulary has 0 tokens, must be between 1 and 4194304";
    check(toy::byte_level(), |v| v.tokens.clear(), sentence);
    let sentence = "the vocabulary has 1 token types for 263 tokens";
    check(toy::byte_level(), |v| v.types.truncate(1), sentence);
    let sentence = "the vocabulary has 5 scores for 282 tokens";
    check(toy::sentence_piece(), |v| v.scores.truncate(5), sentence);
    check(toy::sentence_piece(), |v| v.scores.clear(), "the vocabulary has no scores");
}

#[test]
fn values_must_be_in_range() {
    let sentence = "token 7 has the score NaN, must be finite";
    check(toy::sentence_piece(), |v| v.scores[7] = f32::NAN, sentence);
    let sentence = "the eos token has the id 263, the vocabulary has 263 tokens";
    check(toy::byte_level(), |v| v.special.eos = Some(263), sentence);
    let sentence = "token 3 is 16385 bytes long, the limit is 16384";
    check(toy::byte_level(), |v| v.tokens[3] = "x".repeat(16_385), sentence);
    let sentence = "token 261 is 1025 bytes long, the limit is 1024";
    check(toy::byte_level(), |v| v.tokens[261] = "x".repeat(1025), sentence);
    let no_bos = |v: &mut Vocabulary| {
        v.add_bos = true;
        v.special.bos = None;
    };
    let sentence = "the vocabulary has no BOS token, which add_bos asks for";
    check(toy::byte_level(), no_bos, sentence);
    let no_eos = |v: &mut Vocabulary| {
        v.add_eos = true;
        v.special.eos = None;
    };
    let sentence = "the vocabulary has no EOS token, which add_eos asks for";
    check(toy::byte_level(), no_eos, sentence);
}

#[test]
fn words_need_merges() {
    let sentence = "the vocabulary has no merges, which put its words together: the model's folder \
                    with its `tokenizer.json` has them";
    check(toy::byte_level(), |v| v.merges.clear(), sentence);
    let mut letters = toy::byte_level();
    letters.merges.clear();
    letters.tokens.truncate(256);
    letters.types.truncate(256);
    letters.special = SpecialIds::default();
    assert!(Tokenizer::from_vocabulary(&letters).is_ok());
}

#[test]
fn merges_must_name_tokens() {
    for merge in ["h ü", "x y", "hello", "", " ", "h e l"] {
        let sentence =
            format!("merge 1 (`{merge}`) is not two tokens of the vocabulary that make a third");
        check(toy::byte_level(), |v| v.merges[1] = merge.to_owned(), &sentence);
    }
}

#[test]
fn pre_tokenizers_must_be_known() {
    let sentence = "`tokenizer.ggml.pre` is `no-such`, which is none of the 89 pre-tokenizers \
                    known here; the model's folder with its `tokenizer.json` needs no such name";
    check(toy::byte_level(), |v| v.pre_tokenizer = "no-such".to_owned(), sentence);
}

#[test]
fn of_equal_tokens_the_first_counts() {
    let mut vocabulary = toy::byte_level();
    vocabulary.tokens.push("hello".to_owned());
    vocabulary.types.push(TokenType::Normal);
    vocabulary.merges.push("hell o".to_owned());
    let tokenizer = Tokenizer::from_vocabulary(&vocabulary).unwrap();
    let tokens = tokenizer.encode("hello", false, false).unwrap();
    assert_eq!(tokens, [causeway_request::TokenId(259)]);
}

#[test]
fn types_have_gguf_numbers() {
    let found: Vec<_> = (0..8).map(TokenType::from_gguf).collect();
    let known = [
        TokenType::Normal,
        TokenType::Unknown,
        TokenType::Control,
        TokenType::UserDefined,
        TokenType::Unused,
        TokenType::Byte,
    ];
    let mut wanted = vec![None];
    wanted.extend(known.map(Some));
    wanted.push(None);
    assert_eq!(found, wanted);
}
