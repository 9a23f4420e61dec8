//! Every setting and every condition that can differ, by its name and both values.

use super::*;
use crate::tests::start;
use crate::{CacheState, Sha256};

#[test]
fn every_setting_that_may_reach_the_answer_is_named() {
    check(|_| {}, &[]);
    check(|start| start.model.name = "m".to_owned(), &["model: smollm2:135m | m"]);
    check(|start| start.model.quantisation = "F16".to_owned(), &["quantisation: Q4_1 | F16"]);
    check(|start| start.model.settings.clear(), &["model.rope_factors: short | absent"]);
    check(|start| start.numerics.version = 2, &["numerics version: 1 | 2"]);
    check(|start| start.numerics.kv_type = "f32".to_owned(), &["KV type: f16 | f32"]);
    check_effective(|asked| asked.tokens_max = 5, "tokens_max: 64 | 5");
    check_effective(|asked| asked.stop_tokens = vec![1, 2], "stop tokens: [7] | [1, 2]");
    check_effective(|asked| asked.eos_tokens.clear(), "eos tokens: [2] | []");
    check_effective(|asked| asked.stop_strings.clear(), r#"stop strings: ["\n\n"] | []"#);
    check_effective(|asked| asked.context_len = 4096, "context_len: 2048 | 4096");
    check_effective(|asked| asked.seed = 7, "seed: 18446744073709551615 | 7");
    check_effective(|asked| asked.choice = 0, "choice: 1 | 0");
    check_effective(
        |asked| asked.prompt_tokens[1] = 5,
        "prompt: 3 tokens, token 9690 at position 1 | 3 tokens, token 5 at position 1",
    );
    check_effective(
        |asked| asked.prompt_tokens.push(5),
        "prompt: 3 tokens, none at position 3 | 4 tokens, token 5 at position 3",
    );
    check_effective(
        |asked| asked.prefilled_tokens.clear(),
        "response prefill: 1 token, token 504 at position 0 | 0 tokens, none at position 0",
    );
}

/// A seed that nothing draws with is no difference; where one of two runs draws, it is.
#[test]
fn seed_and_choice_are_no_settings_where_nothing_is_drawn() {
    let key = |start: &mut Start| {
        start.request.effective.seed = 7;
        start.request.effective.choice = 0;
    };
    let (mut a, mut b) = (start(), start());
    a.policy.greedy = true;
    b.policy.greedy = true;
    key(&mut b);
    assert_eq!(settings(&a, &b), []);
    b.policy.greedy = false;
    let names: Vec<String> = settings(&a, &b).into_iter().map(|setting| setting.name).collect();
    assert_eq!(names, ["seed", "choice", "greedy"]);
}

#[test]
fn hashes_are_named_in_full() {
    let (other, none) = (Sha256::of(b"other"), "none".to_owned());
    let was = |bytes: &[u8]| Sha256::of(bytes);
    check(
        |start| start.model.sha256 = other,
        &[&format!("weights: {} | {other}", was(b"weights"))],
    );
    check(
        |start| start.model.tokenizer_sha256 = None,
        &[&format!("tokenizer: {} | {none}", was(b"tokenizer"))],
    );
    let template = start().template.unwrap().sha256;
    check(|start| start.template = None, &[&format!("template: {template} | none")]);
}

#[test]
fn a_policy_is_compared_leaf_by_leaf() {
    let policy = |canonical: &str| {
        let canonical = canonical.to_owned();
        move |start: &mut Start| {
            start.policy.sha256 = Sha256::of(canonical.as_bytes());
            start.policy.canonical.clone_from(&canonical);
        }
    };
    let hashes = |canonical: &str| {
        let was = start().policy.sha256;
        format!("policy: {was} | {}", Sha256::of(canonical.as_bytes()))
    };
    let canonical = r#"{"choose":"sample","shape":[{"temperature":0.8},{"top_k":40}]}"#;
    check(
        policy(canonical),
        &[
            &hashes(canonical),
            "policy.shape.0.temperature: 0.7 | 0.8",
            "policy.shape.1.top_k: absent | 40",
        ],
    );
    let canonical = r#"{"choose":"greedy","shape":[]}"#;
    check(
        policy(canonical),
        &[
            &hashes(canonical),
            r#"policy.choose: "sample" | "greedy""#,
            "policy.shape: absent | []",
            "policy.shape.0.temperature: 0.7 | absent",
        ],
    );
    check(|start| start.policy.greedy = true, &["greedy: false | true"]);
}

fn check_effective(change: impl Fn(&mut Effective), want: &str) {
    check(|start| change(&mut start.request.effective), &[want]);
}

fn check(change: impl Fn(&mut Start), want: &[&str]) {
    let mut other = start();
    change(&mut other);
    assert_eq!(words(settings(&start(), &other)), want);
    assert_eq!(conditions(&start().conditions, &other.conditions), []);
}

fn words(settings: Vec<Setting>) -> Vec<String> {
    settings.into_iter().map(|Setting { name, a, b }| format!("{name}: {a} | {b}")).collect()
}

#[test]
fn a_request_that_came_otherwise_is_no_setting() {
    check(|start| start.request.id = 9, &[]);
    check(|start| start.request.received = serde_json::Value::Null, &[]);
    check(|start| start.request.effective.prompt = None, &[]);
}

#[test]
fn every_condition_is_named() {
    let mut other = start().conditions;
    other.engine = "0.2.0".to_owned();
    other.cpu = "another".to_owned();
    other.isa = "scalar".to_owned();
    other.threads = 1;
    other.batch_occupancy = 8;
    other.queue = 3;
    other.concurrency = 4;
    other.cache = CacheState::Warm;
    other.chunk = 7;
    let want = [
        "engine: 0.1.0 | 0.2.0",
        "cpu: a CPU | another",
        "isa: avx2 | scalar",
        "threads: 2 | 1",
        "batch occupancy: 1 | 8",
        "queue: 0 | 3",
        "concurrency: 1 | 4",
        "cache: cold | warm",
        "chunk: 512 | 7",
    ];
    assert_eq!(words(conditions(&start().conditions, &other)), want);
    other.cache = CacheState::Off;
    assert_eq!(conditions(&start().conditions, &other)[7].b, "off");
}
