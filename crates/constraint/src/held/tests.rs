//! A run that is held to a constraint, token by token.

use std::sync::Arc;

use causeway_policy::{Guide, Laid, LaidBy};
use causeway_request::TokenId;
use serde_json::json;

use crate::{Constraint, Environment, Held, Limits, Whitespace, compile};

fn held(constraint: &Constraint) -> (Held, Environment) {
    let environment = Environment::of_bytes();
    let plan = compile(constraint, &environment, &Limits::default()).unwrap();
    (Held::new(&Arc::new(plan)), environment)
}

fn schema() -> Constraint {
    let schema = json!({
        "type": "object",
        "properties": { "verdict": { "enum": ["yes", "no"] }, "n": { "const": 7 } },
        "required": ["verdict", "n"],
        "additionalProperties": false,
    });
    Constraint::JsonSchema { schema, whitespace: Whitespace::Compact }
}

/// Lays what is forced, and takes the bytes of `choices` where there is a choice.
fn written(mut held: Held, environment: &Environment, choices: &str) -> (String, usize, Held) {
    let (mut text, mut laid_count, mut choices) = (Vec::new(), 0, choices.bytes());
    let byte = |byte: u8| {
        (0..u32::try_from(environment.rows()).unwrap())
            .map(TokenId)
            .find(|token| environment.bytes(*token) == [byte])
            .unwrap()
    };
    while !held.is_complete() {
        let token = if let Some(Laid { token, by }) = held.laid() {
            assert_eq!(by, LaidBy::Form);
            laid_count += 1;
            token
        } else {
            held.prepare();
            let Some(next) = choices.next() else { break };
            let token = byte(next);
            assert!(held.mask().unwrap().unwrap().allows(token), "{}", char::from(next));
            token
        };
        text.extend_from_slice(environment.bytes(token));
        held.read(token);
    }
    (String::from_utf8(text).unwrap(), laid_count, held)
}

#[test]
fn what_is_certain_is_laid_and_the_rest_is_masked() {
    let (held, environment) = held(&schema());
    let (text, laid, held) = written(held, &environment, "n");
    assert_eq!(text, r#"{"verdict":"no","n":7}"#);
    // All but the one letter that decides.
    assert_eq!(laid, text.len() - 1);
    assert!(held.is_complete() && held.fault().is_none());
}

#[test]
fn a_copy_goes_its_own_way() {
    let (mut first, environment) = held(&schema());
    while let Some(laid) = first.laid() {
        first.read(laid.token);
    }
    let second = first.clone();
    assert!(written(first, &environment, "y").0.starts_with("yes"));
    assert!(written(second, &environment, "n").0.starts_with("no"));
}

#[test]
fn a_token_that_is_not_allowed_is_a_fault_from_then_on() {
    let (mut held, environment) = held(&schema());
    let brace = held.laid().unwrap().token;
    held.read(brace);
    // The same once more is no JSON.
    held.read(brace);
    assert!(held.fault().is_some());
    assert_eq!(held.laid(), None);
    assert!(!held.is_complete());
    let said = held.mask().unwrap_err();
    assert!(said.contains("is not what the constraint allows"), "{said}");
    let _ = environment;
}
