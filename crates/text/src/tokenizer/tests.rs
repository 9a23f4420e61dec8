//! Encoding by flags, on toy vocabularies with the rules of the large ones.

use proptest::prelude::*;

use super::*;
use crate::detokenizer::DetokenizeOptions;
use crate::toy;

fn spell(vocabulary: &Vocabulary, tokens: &[TokenId]) -> String {
    let spelled = tokens.iter().map(|token| vocabulary.tokens[token.index()].as_str());
    spelled.collect::<Vec<_>>().join("|")
}

/// Tokens of `text` with (parse_special, add_special).
fn check(vocabulary: &Vocabulary, text: &str, flags: (bool, bool), spelled: &str) {
    let tokenizer = Tokenizer::from_vocabulary(vocabulary).unwrap();
    let tokens = tokenizer.encode(text, flags.0, flags.1).unwrap();
    assert_eq!(spell(vocabulary, &tokens), spelled, "{text:?} {flags:?}");
}

#[test]
fn control_tokens_are_parsed_only_when_asked_and_user_defined_ones_always() {
    let vocabulary = toy::byte_level();
    check(&vocabulary, "he<|im_end|>", (true, false), "he|<|im_end|>");
    check(&vocabulary, "he<|im_end|>", (false, false), "he|<|||i|m|_|e|n|d|||>");
    check(&vocabulary, "he<tool>he", (false, false), "he|<tool>|he");
    check(&vocabulary, "", (true, false), "");
}

#[test]
fn bos_and_eos_are_added_as_the_model_says() {
    let mut vocabulary = toy::byte_level();
    check(&vocabulary, "he", (false, true), "he");
    vocabulary.add_bos = true;
    check(&vocabulary, "he", (false, true), "<|im_end|>|he");
    vocabulary.add_eos = true;
    check(&vocabulary, "", (false, true), "<|im_end|>|<|im_end|>");
    check(&vocabulary, "<|im_end|>he", (true, true), "<|im_end|>|<|im_end|>|he|<|im_end|>");
    check(&vocabulary, "he", (false, false), "he");
}

#[test]
fn the_text_gets_one_leading_space_mark() {
    let vocabulary = toy::sentence_piece();
    check(
        &vocabulary,
        "This is 🦙.",
        (false, true),
        "<s>|▁This|▁is|▁|<0xF0>|<0x9F>|<0xA6>|<0x99>|.",
    );
    check(&vocabulary, "Hello", (false, false), "▁Hello");
    check(&vocabulary, " Hello", (false, false), "▁|▁Hello");
    check(&vocabulary, "  Hello", (false, false), "▁▁|▁Hello");
    check(&vocabulary, "   Hello", (false, false), "▁▁▁|▁Hello");
    check(&vocabulary, "<s>This", (true, false), "<s>|▁This");
    check(&vocabulary, "", (false, true), "<s>");
    let without = Vocabulary { add_space_prefix: false, ..vocabulary };
    check(&without, "This is", (false, false), "This|▁is");
}

#[test]
fn user_defined_pieces_match_with_spaces_for_marks() {
    let mut vocabulary = toy::sentence_piece();
    let marks = vocabulary.tokens.iter().position(|token| token == "▁▁▁").unwrap();
    vocabulary.types[marks] = TokenType::UserDefined;
    vocabulary.add_space_prefix = false;
    check(&vocabulary, "This   is", (false, false), "This|▁▁▁|is");
}

#[test]
fn without_a_normaliser_two_spellings_of_a_letter_differ() {
    let tokenizer = Tokenizer::from_vocabulary(&toy::byte_level()).unwrap();
    let tokens = |text| tokenizer.encode(text, false, false).unwrap();
    assert_ne!(tokens("\u{e9}"), tokens("e\u{301}"));
}

#[test]
fn words_span_the_edges_of_a_users_text_and_control_tokens_do_not() {
    let vocabulary = toy::byte_level();
    let tokenizer = Tokenizer::from_vocabulary(&vocabulary).unwrap();
    let text = "hello<|im_end|><|im_end|>";
    for (user, spelled) in [
        (2..5, "hello|<|im_end|>|<|im_end|>"),
        (2..15, "hello|<|||im|_|end|||>|<|im_end|>"),
        (14..15, "hello|<|||im|_|end|||>|<|im_end|>"),
    ] {
        let tokens = tokenizer.encode_guarded(text, &[user]).unwrap();
        let spelled = spelled.replace("im", "i|m").replace("|end|", "|e|n|d|");
        let spelled = spelled.replace("<|i|m_end|>", "<|im_end|>");
        assert_eq!(spell(&vocabulary, &tokens), spelled);
    }
}

#[test]
fn end_tokens_are_gathered_from_ids_and_names() {
    let tokenizer = Tokenizer::from_vocabulary(&toy::byte_level()).unwrap();
    assert_eq!(tokenizer.end_tokens(), [TokenId(261)]);
    let mut vocabulary = toy::byte_level();
    for (text, id) in [("<|end|>", 1), ("<|return|>", 2), ("<|call|>", 3)] {
        vocabulary.tokens[id] = text.to_owned();
        vocabulary.types[id] = TokenType::Control;
    }
    let ends = |vocabulary: &Vocabulary| {
        Tokenizer::from_vocabulary(vocabulary).unwrap().end_tokens().to_vec()
    };
    assert_eq!(ends(&vocabulary), [2, 3, 261].map(TokenId));
    vocabulary.types[3] = TokenType::Normal;
    assert_eq!(ends(&vocabulary), [1, 2, 261].map(TokenId));
}

#[test]
fn ids_outside_the_vocabulary_are_refused() {
    let tokenizer = Tokenizer::from_vocabulary(&toy::byte_level()).unwrap();
    assert_eq!(tokenizer.vocab_size(), 263);
    let options = DetokenizeOptions { show_control: true, continues: false };
    let refusal = tokenizer.decode(&[TokenId(1), TokenId(263)], options).unwrap_err();
    let sentence = "token id 263 is outside the vocabulary of 263 tokens";
    assert_eq!(refusal.to_string(), sentence);
    assert!(refusal.is_callers_mistake());
    assert!(!tokenizer.is_control(TokenId(u32::MAX)));
    assert_eq!(tokenizer.control_token("<|im_end|>"), Some(TokenId(261)));
    assert_eq!(tokenizer.control_token("<tool>"), None);
}

proptest! {
    #[test]
    fn every_text_comes_back(text in ".{0,40}|[ he<|im_end>lo▁]{0,40}", parse: bool) {
        let options = DetokenizeOptions { show_control: true, continues: false };
        let tokenizer = Tokenizer::from_vocabulary(&toy::byte_level()).unwrap();
        let tokens = tokenizer.encode(&text, parse, false).unwrap();
        prop_assert_eq!(tokenizer.decode(&tokens, options).unwrap(), text.as_str());
        prop_assert!(parse || tokens.iter().all(|token| !tokenizer.is_control(*token)));
        let tokenizer = Tokenizer::from_vocabulary(&toy::sentence_piece()).unwrap();
        let tokens = tokenizer.encode(&text, false, false).unwrap();
        // A space mark in the text is a space to this kind of vocabulary.
        let wanted = text.replace(SPACE_MARK, " ");
        prop_assert_eq!(tokenizer.decode(&tokens, options).unwrap(), wanted);
    }
}
