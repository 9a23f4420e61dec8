//! A budget follows the tokens alone: what is laid, when, and what is refused.

use super::*;
use crate::toy;

const CLOSE: &str = "</t>";

/// The tokens of a greedy reader's answer: those of `text`, one a letter, and what is laid, in
/// brackets.
fn check(toml: &str, prefill: &str, text: &str, want: &str) {
    let side = Arc::new(toy::text());
    let guide = guide_of(&side, toml, prefill).unwrap();
    let mut guide = guide.expect("the policy has a budget");
    let mut chosen = toy::tokens(&side, text).into_iter();
    let mut found = String::new();
    loop {
        // A guide that was copied says the same.
        assert_eq!(guide.laid(), guide.boxed().laid());
        let piece = |token| String::from_utf8_lossy(side.tokenizer.piece(token).unwrap()).into();
        let token = match guide.laid() {
            Some(Laid { token, by }) => {
                assert_eq!(by, LaidBy::Field(THOUGHT_BUDGET));
                let piece: String = piece(token);
                found.push_str(&format!("[{piece}]"));
                token
            }
            None => {
                let Some(token) = chosen.next() else { break };
                found.push_str(&piece(token));
                token
            }
        };
        guide.read(token);
    }
    assert_eq!(found, want, "{toml} {prefill} {text}");
}

fn guide_of(
    side: &Arc<Text>,
    toml: &str,
    prefill: &str,
) -> Result<Option<Box<dyn Guide>>, SessionError> {
    let (policy, _, rules) = toy::begun(side, toml, prefill)?;
    crate::guide(&policy, &rules, None, &[], side)
}

fn budget(tokens: u64) -> String {
    format!("[reasoning]\nopen = \"<t>\"\nclose = \"{CLOSE}\"\ntokens_max = {tokens}\n")
}

#[test]
fn the_marker_is_laid_behind_the_budget() {
    let laid = "[<][/][t][>]";
    check(&budget(3), "", "x<t>abcdef", &format!("x<t>abc{laid}def"));
    check(&budget(0), "", "x<t>ab", &format!("x<t>{laid}ab"));
    // One that ends by itself, on the last token of its budget too, is left alone.
    check(&budget(9), "", "<t>ab</t>cd", "<t>ab</t>cd");
    check(&budget(6), "", "<t>ab</t>cd", "<t>ab</t>cd");
    // A marker that has only begun is text.
    check(&budget(4), "", "<t>ab</cd", &format!("<t>ab</{laid}cd"));
    check(&budget(4), "", "plain", "plain");
}

#[test]
fn the_budget_is_all_thoughts_together() {
    let laid = "[<][/][t][>]";
    check(&budget(7), "", "<t>ab</t>x<t>cdef", &format!("<t>ab</t>x<t>c{laid}def"));
    check(&budget(1), "", "<t>ab<t>c", &format!("<t>a{laid}b<t>{laid}c"));
}

#[test]
fn a_prefill_may_open_the_thought_and_close_it() {
    let laid = "[<][/][t][>]";
    check(&budget(2), "<t>", "abcd", &format!("ab{laid}cd"));
    check(&budget(2), "<t>so", "abcd", &format!("ab{laid}cd"));
    check(&budget(2), "<t>so</t>", "abcd", "abcd");
}

#[test]
fn what_cannot_be_laid_is_refused() {
    let side = Arc::new(toy::text());
    let refused = |toml: &str, want: &str| {
        let error = guide_of(&side, toml, "").unwrap_err();
        assert_eq!(error.to_string(), want);
        assert!(error.is_callers_mistake());
    };
    refused(
        "[reasoning]\ntokens_max = 3\n",
        "`reasoning.tokens_max` is set, but not the markers `reasoning.open` and \
         `reasoning.close`: a thought that has no marks has no end",
    );
    refused(
        "[reasoning]\nopen = \"<t>\"\nclose = \"<|end|>\"\ntokens_max = 3\n",
        "the vocabulary cannot spell `reasoning.close`, \"<|end|>\"",
    );
    assert!(
        guide_of(&side, "[reasoning]\nopen = \"<t>\"\nclose = \"</t>\"\n", "").unwrap().is_none()
    );
}
