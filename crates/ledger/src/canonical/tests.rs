//! The canonical form, and which changes each hash must see.

use causeway_request::{Cause, StopReason};

use proptest::prelude::*;

use super::*;
use crate::tests::any_record::records;
use crate::tests::{run, sample};
use crate::{CacheState, Shown, to_json};

#[test]
fn keys_are_sorted_and_nothing_is_spaced() {
    check(
        r#" { "b" : 1 , "a" : [ true , null ] , "é" : {} , "Z" : "" } "#,
        r#"{"Z":"","a":[true,null],"b":1,"é":{}}"#,
    );
    check(r#"{"a":{"d":1,"c":2}}"#, r#"{"a":{"c":2,"d":1}}"#);
    check("[]", "[]");
}

#[test]
fn strings_keep_all_that_json_need_not_escape() {
    check(r#""\u00e9\/\u001f\n\"\\🦀<""#, r#""é/\u001f\n\"\\🦀<""#);
}

#[test]
fn numbers_have_one_form() {
    check("[0, 1, -1]", "[0,1,-1]");
    check(
        "[18446744073709551615, -9223372036854775808]",
        "[18446744073709551615,-9223372036854775808]",
    );
    check("[1.0, 100e-2]", r#"["f64:3ff0000000000000","f64:3ff0000000000000"]"#);
    check("[-0.0, 5e-324]", r#"["f64:8000000000000000","f64:0000000000000001"]"#);
    check("[0.1, 1e23]", r#"["f64:3fb999999999999a","f64:44b52d02c7e14af6"]"#);
    // Above 64 bits a whole number is a fraction's kind, too.
    check("[18446744073709551616]", r#"["f64:43f0000000000000"]"#);
}

fn check(json: &str, want: &str) {
    assert_eq!(sort_keys(&serde_json::from_str(json).unwrap()), want);
}

/// Conditions, times and passes are no part of the answer; the id sees them all the same.
#[test]
fn the_answer_does_not_depend_on_where_and_when_it_was_computed() {
    check_hashes("same", |_| {}, "id same, answer same");
    let only_id = "id other, answer same";
    check_hashes("request id", |record| record.start.request.id = 4, only_id);
    check_hashes("received", |record| record.start.request.received = "x".into(), only_id);
    check_hashes("model name", |record| record.start.model.name.push('x'), only_id);
    check_hashes("threads", |record| record.start.conditions.threads = 1, only_id);
    check_hashes("isa", |record| record.start.conditions.isa = "scalar".to_owned(), only_id);
    check_hashes("cache", |record| record.start.conditions.cache = CacheState::Warm, only_id);
    check_hashes("pass", |record| record.steps[1].pass += 1, only_id);
    check_hashes("rows", |record| record.steps[1].rows += 1, only_id);
    check_hashes("time", |record| record.steps[4].since_arrival_ns += 1, only_id);
    check_hashes("shown", |record| record.steps[1].shown = Shown::Hidden, only_id);
    check_hashes("total", |record| record.end.account.times.total_ns += 1, only_id);
}

#[test]
fn the_answer_depends_on_all_that_exactness_promises() {
    let both = "id other, answer other";
    let other = Sha256::of(b"other");
    check_hashes("weights", |record| record.start.model.sha256 = other, both);
    check_hashes("load settings", |record| record.start.model.settings.clear(), both);
    check_hashes("KV type", |record| record.start.numerics.kv_type = "f32".to_owned(), both);
    check_hashes("numerics", |record| record.start.numerics.version = 2, both);
    check_hashes("policy", |record| record.start.policy.sha256 = other, both);
    check_effective("prompt", |asked| asked.prompt_tokens[0] = 0);
    check_effective("prefill", |asked| {
        asked.prompt_tokens.append(&mut asked.prefilled_tokens);
    });
    check_effective("tokens_max", |asked| asked.tokens_max = 1);
    check_effective("stop tokens", |asked| asked.stop_tokens.clear());
    check_effective("eos tokens", |asked| asked.eos_tokens.clear());
    check_effective("stop strings", |asked| asked.stop_strings.clear());
    check_effective("context_len", |asked| asked.context_len = 1);
    check_effective("seed", |asked| asked.seed = 1);
    check_effective("choice", |asked| asked.choice = 0);
    check_hashes("token", |record| record.steps[1].token = 0, both);
    check_hashes("digest", |record| record.steps[1].digest.0 ^= 1, both);
    check_hashes("cause", |record| record.steps[1].cause = Cause::Forced.into(), both);
    check_hashes("step", |record| record.steps[4].step = 9, both);
    let next = |value: f64| f64::from_bits(value.to_bits() + 1);
    check_hashes(
        "entropy",
        |record| {
            record.steps[1].reasons.entropy = next(record.steps[1].reasons.entropy);
        },
        both,
    );
    check_hashes("fewer steps", |record| record.steps.truncate(4), both);
    check_hashes("stop", |record| record.end.stop = Stop::SchemaComplete {}, both);
    check_hashes("text", |record| record.end.text.clear(), both);
}

fn check_effective(what: &str, change: impl Fn(&mut Effective)) {
    check_hashes(
        what,
        |record| change(&mut record.start.request.effective),
        "id other, answer other",
    );
}

fn check_hashes(what: &str, change: impl Fn(&mut Record), want: &str) {
    let (before, mut after) = (sample(), sample());
    change(&mut after);
    let word = |same| if same { "same" } else { "other" };
    let (id, answer) = (before.id() == after.id(), before.answer_hash() == after.answer_hash());
    assert_eq!(format!("id {}, answer {}", word(id), word(answer)), want, "{what}");
}

#[test]
fn two_runs_at_other_times_are_one_answer() {
    let stop = StopReason::MaxTokens { tokens_max: 5 };
    let later = run(5, &stop, |output| output.since_arrival_ns += 77);
    assert_eq!(later.answer_hash(), sample().answer_hash());
    assert_ne!(later.id(), sample().id());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The file's own JSON, sorted as a tree, is the definition of what is written straight away.
    #[test]
    fn what_is_hashed_is_the_sorted_tree_of_the_file(record in records()) {
        let mut tree: Value = serde_json::from_str(&to_json(&record).unwrap()).unwrap();
        let fields = tree.as_object_mut().unwrap();
        fields.remove("id");
        fields.remove("answer_hash");
        prop_assert_eq!(record_json(&record), sort_keys(&tree));
        // Its fractions are text already, so that sorting it again changes nothing.
        let mut answer: Value = serde_json::from_str(&answer_json(&record)).unwrap();
        prop_assert_eq!(answer_json(&record), sort_keys(&answer));
        let kept = ["step", "token", "cause", "reasons", "digest"];
        let mut steps = tree["steps"].take();
        for step in steps.as_array_mut().unwrap() {
            step.as_object_mut().unwrap().retain(|key, _| kept.contains(&key.as_str()));
        }
        let hashed = sort_keys(&answer["steps"].take());
        prop_assert_eq!(hashed, sort_keys(&steps));
    }
}
