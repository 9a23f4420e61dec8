//! What a record says before the first pass, and whether an answer begins inside a thought.

use std::sync::Arc;

use super::*;
use crate::{Given, compile, prompt, toy};

fn policy(toml: &str) -> Policy {
    compile(&toy::file(toml), &toy::about(), &|_| None).unwrap()
}

fn started(given: Given, toml: &str, seed: Option<u64>) -> Start {
    let side = crate::with_template(toy::text(), &toy::file(toml)).unwrap();
    let prompt = prompt(given, &toy::file(toml), &toy::about(), Some(&side), None).unwrap();
    let asked = Asked { id: RequestId(7), received: Value::Null, seed, choice: 2 };
    start(&toy::about(), &policy(toml), prompt, asked, &Place::alone(16))
}

fn chat(message: &str) -> Given {
    Given::Chat(message.to_owned())
}

#[test]
fn the_effective_request_has_nothing_implicit() {
    let effective = started(chat("go"), "", Some(5)).request.effective;
    // A context of 64, and the prompt's marks, its two letters and the end of the turn.
    assert_eq!((effective.prompt_tokens.len(), effective.tokens_max), (5, 59));
    assert_eq!((effective.seed, effective.choice, effective.context_len), (5, 2, 64));
    let tokens = |tokens: &[u32]| tokens.to_vec();
    assert_eq!(tokens(&effective.eos_tokens), [1]);
    let ignoring = "[stop]\nignore_eos = true\ntokens = [9]\ntokens_max = 3\nstrings = [\"x\"]";
    let effective = started(chat("go"), ignoring, None).request.effective;
    assert_eq!(tokens(&effective.eos_tokens), [0; 0]);
    assert_eq!((tokens(&effective.stop_tokens), effective.tokens_max), (vec![9], 3));
    assert!(effective.seed < SEEDS, "one was drawn");
}

#[test]
fn the_policys_seed_goes_before_the_requests() {
    let seed = |toml, seed| started(chat("go"), toml, seed).request.effective.seed;
    assert_eq!(seed("[choose]\nseed = 3", Some(5)), 3);
    assert_eq!(seed("[choose]\nseed = 3", None), 3);
}

/// Whether the answer begins inside, and whether it goes on from other text.
fn check(given: Given, toml: &str, inside: bool, continues: bool) {
    let shown = format!("{given:?} {toml}");
    let toml = format!("{toml}\n[reasoning]\nopen = \"<t>\"\nclose = \"</t>\"");
    let start = started(given, &toml, None);
    let side = Arc::new(toy::text());
    let rules = answer_rules(&policy(&toml), &start, Some(&side));
    assert_eq!((rules.starts_inside, rules.continues), (inside, continues), "{shown}");
    assert_eq!(rules.markers, Some(("<t>".to_owned(), "</t>".to_owned())));
}

#[test]
fn a_thought_may_be_open_before_the_first_token() {
    let ids =
        |text: &str| Given::Ids(toy::tokens(&toy::text(), text).iter().map(|t| t.0).collect());
    let opening =
        "[prompt]\ntemplate = \"{% for m in messages %}{{ m.content }}{% endfor %}<t>\\n\"";
    check(chat("go"), "", false, false);
    check(chat("go"), opening, true, false);
    check(Given::Raw("go <t>\n".to_owned()), "", true, true);
    check(Given::Raw("<t> go".to_owned()), "", false, true);
    check(ids("go<t>\n"), "", true, true);
    check(ids("go"), "", false, true);
    check(chat("go"), "[prompt]\nprefill = \"<t>\\n\"", true, true);
    check(chat("go"), "[prompt]\nprefill = \"<t>so far\"", true, true);
    check(chat("go"), "[prompt]\nprefill = \"<t>so</t>Yes\"", false, true);
    check(chat("go"), "[prompt]\nprefill = \"{\"", false, true);
}

#[test]
fn without_markers_nothing_is_inside() {
    let start = started(chat("<t>"), "", None);
    let rules = answer_rules(&policy(""), &start, Some(&toy::text()));
    assert_eq!(rules, AnswerRules::default());
}

#[test]
fn seeds_are_drawn_that_every_reader_of_json_keeps() {
    let seeds: std::collections::BTreeSet<u64> = (0..8).map(|_| drawn_seed()).collect();
    assert!(seeds.len() > 1 && seeds.iter().all(|seed| *seed < SEEDS), "{seeds:?}");
}
