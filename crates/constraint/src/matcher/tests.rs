//! Matchers of every kind of constraint.

use crate::{Constraint, ConstraintError, Environment, Limits, MatchError, Whitespace};
use crate::{accepts, compile};
use causeway_request::TokenId;

fn check(constraint: &Constraint, taken: &[&str], refused: &[&str]) {
    let environment = Environment::of_bytes();
    let plan = compile(constraint, &environment, &Limits::default()).unwrap();
    for text in taken {
        let found = accepts(&mut plan.matcher(), &environment, text);
        assert!(found.is_ok(), "{constraint:?} and {text}: {found:?}");
    }
    for text in refused {
        let found = accepts(&mut plan.matcher(), &environment, text);
        assert!(found.is_err(), "{constraint:?} takes {text}");
    }
}

#[test]
fn every_kind_holds_its_answer() {
    check(&Constraint::Regex("[a-c]+/x?".to_owned()), &["a/", "abc/x"], &["/", "ad/", "a"]);
    let choices = ["yes", "no", "a \"b\"/\\\n|é"].map(str::to_owned).to_vec();
    check(&Constraint::Choice(choices), &["yes", "no", "a \"b\"/\\\n|é"], &["ye", "yesno", "a"]);
    let lark = "start: \"a\" b+\nb: /[0-9]/ \",\"".to_owned();
    check(&Constraint::Lark(lark), &["a1,", "a1,2,"], &["a", "a1", "b"]);
    let object = Constraint::JsonObject { whitespace: Whitespace::Compact };
    check(&object, &["{}", r#"{"a":[1,{"b":null}]}"#], &["[]", "1", "{", r#"{"a" :1}"#]);
    let object = Constraint::JsonObject { whitespace: Whitespace::Flexible };
    check(&object, &["{ }", "{\n  \"a\": 1\n}"], &["{          }"]);
}

#[test]
fn what_cannot_be_compiled_is_an_error() {
    let environment = Environment::of_bytes();
    let refused = |constraint: Constraint| {
        compile(&constraint, &environment, &Limits::default()).unwrap_err()
    };
    let is_grammar = |error| matches!(error, ConstraintError::Grammar { .. });
    assert!(is_grammar(refused(Constraint::Regex("(".to_owned()))));
    assert!(is_grammar(refused(Constraint::Lark("start: missing".to_owned()))));
    assert!(matches!(
        refused(Constraint::Lark("start: %json {}".to_owned())),
        ConstraintError::Unsupported { word: "%json" }
    ));
    assert!(matches!(
        refused(Constraint::Choice(Vec::new())),
        ConstraintError::Choices { count: 0, .. }
    ));
    let empty = Constraint::Choice(vec!["a".to_owned(), String::new()]);
    assert!(matches!(refused(empty), ConstraintError::EmptyChoice { index: 1 }));
    let long = Constraint::Regex("a".repeat(300_000));
    assert!(matches!(refused(long), ConstraintError::Bytes { .. }));
}

#[test]
fn a_token_that_is_not_allowed_changes_nothing() {
    let environment = Environment::of_bytes();
    let constraint = Constraint::Choice(vec!["ab".to_owned(), "cd".to_owned()]);
    let plan = compile(&constraint, &environment, &Limits::default()).unwrap();
    let mut matcher = plan.matcher();
    let letter = |byte: u8| TokenId(u32::from(byte) + 3);
    let before = matcher.mask().unwrap().clone();
    let wrong = letter(b'x');
    assert_eq!(matcher.advance(wrong), Err(MatchError::NotAllowed { token: wrong }));
    assert_eq!(matcher.advance(TokenId(1)), Err(MatchError::NotAllowed { token: TokenId(1) }));
    let outside = TokenId(1 << 20);
    assert_eq!(matcher.advance(outside), Err(MatchError::NotAllowed { token: outside }));
    assert_eq!(*matcher.mask().unwrap(), before);
    matcher.advance(letter(b'a')).unwrap();
    assert!(!matcher.is_complete() && !matcher.may_stop().unwrap());
    matcher.advance(letter(b'b')).unwrap();
    assert!(matcher.is_complete() && matcher.may_stop().unwrap());
    assert_eq!(matcher.forced().unwrap(), []);
    matcher.advance(TokenId(1)).unwrap();
    assert!(matcher.is_complete());
}
