//! Cases of the effective policy: what a request adds, and what it may not.

use super::*;

fn edit(field: &'static str, path: &'static str, value: Value) -> Edit {
    Edit { field, path, value }
}

/// The canonical policy of these edits over this file, or the sentence and the field of a refusal.
fn check(policy: Option<&str>, edits: &[Edit], want: Result<&str, (&str, &str)>) {
    let file = policy.map(|toml| PolicyFile::from_toml(toml).unwrap());
    let base = file.as_ref().map_or_else(|| Base::open(None), Base::fixed);
    check_with(&base, edits, want);
}

/// The same over a model's own policy.
fn check_own(own: &str, edits: &[Edit], want: Result<&str, (&str, &str)>) {
    check_with(&Base::open(Some(&PolicyFile::from_toml(own).unwrap())), edits, want);
}

fn check_with(base: &Base, edits: &[Edit], want: Result<&str, (&str, &str)>) {
    match (base.with(edits), want) {
        (Ok(file), Ok(want)) => assert_eq!(file.to_canonical_json(), want),
        (Err(error), Err((text, param))) => {
            assert_eq!((error.message.as_str(), error.param.as_deref()), (text, Some(param)));
        }
        (found, want) => panic!("{found:?}, not {want:?}"),
    }
}

#[test]
fn fields_become_a_policy() {
    check(None, &[], Ok(r#"{"schema":1}"#));
    check(
        None,
        &[
            edit("temperature", "shape.temperature", json!(0.5)),
            edit("max_tokens", "stop.tokens_max", json!(9)),
            edit("logit_bias", "constraints.logit_bias", json!({ "5": -1 })),
        ],
        Ok(
            r#"{"constraints":{"logit_bias":{"5":-1.0}},"schema":1,"shape":{"temperature":0.5},"stop":{"tokens_max":9}}"#,
        ),
    );
    // A default that is spelled out is no other policy.
    check(None, &[edit("top_p", "shape.top_p", json!(1))], Ok(r#"{"schema":1}"#));
}

#[test]
fn a_requests_fields_go_over_the_models_own() {
    let own = "schema = 1\nname = \"own\"\n[shape]\ntemperature = 0.5\ntop_k = 20\n";
    let as_it_is = r#"{"name":"own","schema":1,"shape":{"temperature":0.5,"top_k":20}}"#;
    check_own(own, &[], Ok(as_it_is));
    check_own(
        own,
        &[
            edit("temperature", "shape.temperature", json!(0.9)),
            edit("top_k", "shape.top_k", json!(0)),
        ],
        Ok(r#"{"name":"own","schema":1,"shape":{"temperature":0.9}}"#),
    );
    let greedy = "schema = 1\n[choose]\nmethod = \"greedy\"\n[stop]\ntokens_max = 9\n";
    let limit = edit("max_tokens", "stop.tokens_max", json!(3));
    check_own(
        greedy,
        std::slice::from_ref(&limit),
        Ok(r#"{"choose":{"method":"greedy"},"schema":1,"stop":{"tokens_max":3}}"#),
    );
    check_own(
        greedy,
        &[edit("temperature", "shape.temperature", json!(0.9))],
        Ok(r#"{"schema":1,"shape":{"temperature":0.9},"stop":{"tokens_max":9}}"#),
    );
    let base = Base::open(Some(&PolicyFile::from_toml(greedy).unwrap()));
    assert!(base.budgets(&[]) && !base.budgets(&[limit]));
    let told = base.told();
    let fields = json!({ "choose": { "method": "greedy" }, "stop": { "tokens_max": 9 } });
    assert_eq!((&told["fixed"], &told["fields"]), (&json!(false), &fields));
    let fixed = Base::fixed(&PolicyFile::from_toml(greedy).unwrap());
    assert!(!fixed.budgets(&[]) && fixed.told().get("fields").is_none());
}

#[test]
fn a_fault_is_told_in_the_requests_words() {
    check(
        None,
        &[
            edit("like", "like", json!("transformers")),
            edit("presence_penalty", "constraints.presence_penalty", json!(1)),
        ],
        Err((
            "`presence_penalty` is set, but transformers has no such rule \
             (give an `order` to use it anyway)",
            "presence_penalty",
        )),
    );
}

#[test]
fn what_the_policy_says_stays() {
    let policy = Some("schema = 1\n[shape]\ntemperature = 0.5\n");
    let own = r#"{"schema":1,"shape":{"temperature":0.5}}"#;
    check(policy, &[edit("temperature", "shape.temperature", json!(0.5))], Ok(own));
    check(policy, &[edit("top_p", "shape.top_p", json!(1.0))], Ok(own));
    check(
        policy,
        &[edit("temperature", "shape.temperature", json!(1))],
        Err(("`temperature` is 1, but the server's policy has it as 0.5", "temperature")),
    );
    check(
        policy,
        &[edit("top_k", "shape.top_k", json!(4))],
        Err(("`top_k` is 4, but the server's policy has it as 0", "top_k")),
    );
    let thinking = "schema = 1\n[reasoning]\nopen = \"a\"\nclose = \"b\"\ntokens_max = 8\n";
    check(
        Some(thinking),
        &[edit("thinking", "reasoning.tokens_max", json!(0))],
        Err((
            "`thinking` asks for at most 0 tokens of thought, the server's policy for 8",
            "thinking",
        )),
    );
    check(
        Some(thinking),
        &[edit("reasoning_tokens_max", "reasoning.tokens_max", json!(2))],
        Err((
            "`reasoning_tokens_max` is 2, but the server's policy has it as 8",
            "reasoning_tokens_max",
        )),
    );
    check(
        policy,
        &[edit("stop", "stop.strings", json!(["x"]))],
        Ok(r#"{"schema":1,"shape":{"temperature":0.5},"stop":{"strings":["x"]}}"#),
    );
}
