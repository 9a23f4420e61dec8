//! A thought is followed as the answer shows it, and markers are spelled as answers show them.

use causeway_request::TokenId;

use super::*;
use crate::answer::Answer;
use crate::toy;

fn byte_level() -> Tokenizer {
    Tokenizer::from_vocabulary(&toy::byte_level()).unwrap()
}

fn rules(open: &str, close: &str, starts_inside: bool) -> AnswerRules {
    let markers = Some((open.to_owned(), close.to_owned()));
    AnswerRules { markers, starts_inside, ..AnswerRules::default() }
}

/// One letter for each token: `t` where it is thought, `.` where it is not; after each token the
/// thought says the same as the answer.
fn check(rules: &AnswerRules, text: &str, want: &str) {
    let tokenizer = byte_level();
    let mut thought = Thought::new(&tokenizer, rules).unwrap();
    let mut answer = Answer::new(&tokenizer, rules).unwrap();
    let mut found = String::new();
    for token in tokenizer.encode(text, true, false).unwrap() {
        found.push(if thought.is_inside() { 't' } else { '.' });
        thought.read(&tokenizer, token).unwrap();
        answer.push(token).unwrap();
        assert_eq!(thought.is_inside(), answer.is_inside(), "{text}");
    }
    assert_eq!(found, want, "{text}");
}

#[test]
fn a_thought_is_followed_as_the_answer_shows_it() {
    check(&rules("<a>", "</a>", false), "x<a>yz</a>w", "....tttttt.");
    check(&rules("<a>", "</a>", true), "yz</a>w<a>", "tttttt....");
    check(&rules("<tool>", "!", false), "x<tool>y!<tool>", "..tt.");
    check(&rules("<a>", "</a>", false), "<a<a>é", ".....tt");
    check(&rules("", "</a>", false), "<a>y", "....");
}

#[test]
fn without_markers_there_is_no_thought() {
    assert!(Thought::new(&byte_level(), &AnswerRules::default()).is_none());
}

#[test]
fn an_unknown_id_is_refused() {
    let tokenizer = byte_level();
    let mut thought = Thought::new(&tokenizer, &rules("a", "b", false)).unwrap();
    let error = thought.read(&tokenizer, TokenId(9_999)).unwrap_err();
    assert!(matches!(error, TextError::TokenId { id: 9_999, .. }), "{error}");
}

#[test]
fn a_marker_is_spelled_by_the_tokens_that_show_it() {
    let spell = |vocabulary: &crate::vocabulary::Vocabulary, marker: &str| {
        let tokenizer = Tokenizer::from_vocabulary(vocabulary).unwrap();
        let tokens = tokenizer.spell(marker).unwrap()?;
        let pieces = tokens.iter().map(|token| tokenizer.piece(*token).unwrap().to_vec());
        Some(pieces.map(|piece| String::from_utf8(piece).unwrap()).collect::<Vec<_>>())
    };
    let texts = |texts: &[&str]| Some(texts.iter().map(|&text| text.to_owned()).collect());
    let byte_level = toy::byte_level();
    assert_eq!(spell(&byte_level, "<tool>"), texts(&["<tool>"]));
    assert_eq!(spell(&byte_level, "</a>"), texts(&["<", "/", "a", ">"]));
    // A control token's text is never shown, so that it could close nothing.
    assert_eq!(spell(&byte_level, "<|im_end|>"), None);
    // The vocabulary's own space comes first.
    assert_eq!(spell(&toy::sentence_piece(), "Hello"), texts(&[" Hello"]));
}
