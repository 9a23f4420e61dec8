//! Reading, refusing, canonical form and hash.

use serde_json::{Value, json};

use crate::{Policy, PolicyError, PolicyFile, Problem};

const FILE: &str = r#"
schema = 1
name = "ticket"
version = "1.2.0"
owner = "support"

[constraints]
logit_bias = { 7 = -1.5, 3 = -inf }
bad_words = [[4, 5], [1]]

[shape]
temperature = 0.7
top_k = 40

[stop]
strings = ["\n\n"]
tokens_max = 200

[[failure_modes]]
name = "loops"
detector = "4-gram share above 0.5"
"#;

fn hash(text: &str) -> String {
    PolicyFile::from_toml(text).unwrap().hash_hex()
}

#[test]
fn the_canonical_form_is_pinned() {
    let form = PolicyFile::from_toml(FILE).unwrap().to_canonical_json();
    assert_eq!(
        form,
        concat!(
            r#"{"constraints":{"bad_words":[[1],[4,5]],"logit_bias":{"3":"-inf","7":-1.5}},"#,
            r#""failure_modes":[{"detector":"4-gram share above 0.5","name":"loops"}],"#,
            r#""name":"ticket","owner":"support","schema":1,"#,
            r#""shape":{"temperature":0.7,"top_k":40},"#,
            r#""stop":{"strings":["\n\n"],"tokens_max":200},"version":"1.2.0"}"#
        )
    );
    assert_eq!(PolicyFile::default().to_canonical_json(), r#"{"schema":1}"#);
}

#[test]
fn what_means_the_same_hashes_the_same() {
    let same = [
        // Comments, order of keys, spelling of numbers, order of sets, defaults written out.
        FILE.replace("[shape]", "# a comment\n[shape]\ntop_p = 1\nmin_p = 0.0"),
        FILE.replace("temperature = 0.7\ntop_k = 40", "top_k = 40.0\ntemperature = 0.70"),
        FILE.replace("[[4, 5], [1]]", "[[1], [4, 5], [1]]"),
        FILE.replace("{ 7 = -1.5, 3 = -inf }", "[[3, \"-inf\"], [7, -1.5]]"),
        FILE.replace(
            "[stop]",
            "[reasoning]\n[slo]\n[account]\nlevel = \"full\"\n[stop]\ntokens=[]",
        ),
        FILE.replace("[constraints]", "[constraints]\nrepetition_window = \"all\""),
        FILE.replace("[constraints]", "[constraints]\npenalty_window = \"output\""),
        FILE.replace("[shape]\ntemperature = 0.7\ntop_k = 40", "")
            .replace("schema = 1", "schema = 1\ntop_k = 40\ntemperature = 0.7"),
    ];
    for text in same {
        assert_eq!(hash(&text), hash(FILE), "{text}");
    }
    let tree = PolicyFile::from_toml(FILE).unwrap().to_json();
    assert_eq!(PolicyFile::from_json(&tree).unwrap().hash_hex(), hash(FILE));
    let window = |like: &str, window: u64| {
        let tree = json!({"like": like, "repetition_penalty": 1.1, "repetition_window": window});
        PolicyFile::from_json(&tree).unwrap().hash_hex()
    };
    let plain = json!({"like": "llama.cpp", "repetition_penalty": 1.1});
    assert_eq!(window("llama.cpp", 64), PolicyFile::from_json(&plain).unwrap().hash_hex());
    assert_ne!(window("llama.cpp", 65), window("llama.cpp", 64));
}

/// One tree for each field; `HEX` stands for a hash.
const ONE_FIELD: &str = r#"[
    {"name": "a"}, {"version": "1"}, {"owner": "o"}, {"like": "vllm"}, {"order": ["top_k"]},
    {"order": []}, {"model": {"name": "m"}}, {"model": {"sha256": "HEX"}},
    {"model": {"tokenizer_sha256": "HEX"}}, {"prompt": {"template": "t"}},
    {"prompt": {"system": ""}}, {"prompt": {"prefill": "{"}}, {"allowed_tokens": [1]},
    {"forbidden_tokens": [1]}, {"bad_words": [[1]]}, {"logit_bias": {"1": 2}}, {"min_tokens": 1},
    {"repetition_penalty": 1.1}, {"repetition_window": "output"}, {"repetition_window": 64},
    {"presence_penalty": 1}, {"frequency_penalty": 1}, {"penalty_window": "all"},
    {"no_repeat_ngram": 3}, {"dry_multiplier": 1}, {"dry_base": 2}, {"dry_allowed_length": 3},
    {"dry_window": 9}, {"dry_breakers": [[1]]}, {"temperature": 0.9}, {"top_k": 1},
    {"top_p": 0.9}, {"min_p": 0.1}, {"typical_p": 0.9}, {"top_n_sigma": 1},
    {"epsilon_cutoff": 0.1}, {"eta_cutoff": 0.1}, {"method": "greedy"}, {"seed": 0},
    {"stop": {"tokens_max": 1}}, {"strings": ["a"]}, {"stop": {"tokens": [1]}},
    {"ignore_eos": true}, {"reasoning": {"open": "a"}}, {"reasoning": {"close": "a"}},
    {"reasoning": {"tokens_max": 0}}, {"reasoning": {"tokens_max": 1}},
    {"result_cache": true}, {"result_cache": false}, {"account": {"level": "tokens"}},
    {"on_disconnect": "finish"}, {"slo": {"ttft_ms": 1}}, {"slo": {"itl_ms": 1}},
    {"slo": {"tpot_ms": 1}}, {"slo": {"total_ms": 1}}, {"fallback": {"policy": "a"}},
    {"fallback": {"version": "a"}}, {"fallback": {"sha256": "HEX"}}, {"failure_modes": [{}]},
    {"failure_modes": [{"name": "a"}]}, {"failure_modes": [{"owner": "a"}]},
    {"failure_modes": [{"mitigation": "a"}]}, {"failure_modes": [{"stop_condition": "a"}]}
]"#;

#[test]
fn every_field_changes_the_hash() {
    let default = PolicyFile::default().hash_hex();
    let trees: Vec<Value> =
        serde_json::from_str(&ONE_FIELD.replace("HEX", &"ab".repeat(32))).unwrap();
    let mut hashes = vec![default];
    for tree in trees {
        let file = PolicyFile::from_json(&tree).unwrap_or_else(|error| panic!("{tree}: {error}"));
        let again: Value = serde_json::from_str(&file.to_canonical_json()).unwrap();
        assert_eq!(PolicyFile::from_json(&again).unwrap(), file, "{tree}");
        hashes.push(file.hash_hex());
    }
    let count = hashes.len();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), count);
}

fn check_refused(tree: &Value, want: &str) {
    let error = PolicyFile::from_json(tree).expect_err(&tree.to_string());
    assert_eq!(error.to_string(), want, "{tree}");
}

#[test]
fn each_mistake_is_one_sentence_with_value_and_limit() {
    check_refused(&json!({"temperature": -1}), "`shape.temperature` is -1, but must be 0 to 100");
    check_refused(&json!({"temperature": 101}), "`shape.temperature` is 101, but must be 0 to 100");
    check_refused(
        &json!({"temperature": 1e-201}),
        "`shape.temperature` is 1e-201, but must be 0, or 1e-200 to 100",
    );
    check_refused(
        &json!({"temperature": true}),
        "`shape.temperature` is true, but must be a number",
    );
    check_refused(
        &json!({"temperature": "0.7"}),
        "`shape.temperature` is \"0.7\", but must be a number",
    );
    for p in [json!(0), json!(-0.1), json!(1.5)] {
        let want = format!("`shape.top_p` is {p}, but must be above 0 and at most 1");
        check_refused(&json!({"top_p": p}), &want);
    }
    check_refused(&json!({"min_p": 1.1}), "`shape.min_p` is 1.1, but must be 0 to 1");
    check_refused(&json!({"top_k": -1}), "`shape.top_k` is -1, but must be 0 to 1099511627776");
    check_refused(&json!({"top_k": 1.5}), "`shape.top_k` is 1.5, but must be a whole number");
    check_refused(
        &json!({"repetition_penalty": 0}),
        "`constraints.repetition_penalty` is 0, but must be above 0 and at most 100",
    );
    check_refused(
        &json!({"allowed_tokens": []}),
        "`constraints.allowed_tokens` is empty, but must be a list of at least one token id",
    );
}

#[test]
fn names_words_and_lists_are_refused_in_one_sentence_too() {
    check_refused(
        &json!({"logit_bias": [[1, 2], [1, 3]]}),
        "`constraints.logit_bias` names token 1 twice",
    );
    for key in ["x", "+5", "05", " 5", "-1", "4294967296"] {
        check_refused(
            &json!({"logit_bias": {key: 1}}),
            &format!(
                "`constraints.logit_bias` is \"{key}\", but must be a table of token ids and numbers"
            ),
        );
    }
    check_refused(&json!({"order": ["top_k", "top_k"]}), "`order` names `top_k` twice");
    check_refused(&json!({"schema": 2}), "`schema` is 2, but must be 1");
    check_refused(
        &json!({"mirostat": 2, "shape": {"mirostat": 2}}),
        "`shape.mirostat` is not supported yet; unknown field `mirostat`",
    );
    check_refused(
        &json!({"temprature": 1}),
        "unknown field `temprature`: did you mean `temperature`?",
    );
    check_refused(
        &json!({"stop": {"max_tokens": 1}}),
        "unknown field `stop.max_tokens`: did you mean `tokens_max`?",
    );
    check_refused(
        &json!({"top_k": 1, "shape": {"top_k": 2}}),
        "`top_k` is given twice, at the top and in `shape`",
    );
    check_refused(&json!({"shape": 3}), "`shape` is 3, but must be a table");
    check_refused(&json!([]), "`policy` is a list, but must be a table");
    check_refused(
        &json!({"model": {"sha256": "abc"}}),
        "`model.sha256` is \"abc\", but must be 64 hexadecimal digits",
    );
    check_refused(
        &json!({"on_disconnect": "wait"}),
        "`delivery.on_disconnect` is `wait`, but must be one of `cancel`, `finish`",
    );
    check_refused(
        &json!({"strings": [""]}),
        "`stop.strings` is an empty text, but must be texts of at least one byte",
    );
    check_refused(
        &json!({"failure_modes": [{"nam": "x"}]}),
        "unknown field `failure_modes[0].nam`: did you mean `name`?",
    );
    let error = PolicyFile::from_toml("temperature = 1").unwrap_err();
    assert_eq!(error.to_string(), "`schema` is missing: write `schema = 1`");
    assert!(error.is_callers_mistake());
    assert!(matches!(error.problems(), [Problem::Missing { .. }]));
    let error = PolicyFile::from_toml("schema = = 1").unwrap_err();
    assert!(error.to_string().starts_with("the policy file is not valid TOML: "), "{error}");
    assert!(!error.to_string().contains('\n'));
    let error = PolicyFile::from_toml("schema = 1\ntemperature = nan").unwrap_err();
    assert_eq!(error.to_string(), "`shape.temperature` is \"NaN\", but must be a number");
}

#[test]
fn a_policy_must_fit_its_vocabulary() {
    let check = |tree: Value, vocab_size: usize, want: &str| {
        let file = PolicyFile::from_json(&tree).unwrap();
        let error = Policy::from_file(&file, vocab_size, &[]).unwrap_err();
        assert_eq!(error.to_string(), want);
        assert!(error.is_callers_mistake());
    };
    let outside = "names token 9, but the vocabulary has 9 tokens";
    check(json!({"allowed_tokens": [9]}), 9, &format!("`constraints.allowed_tokens` {outside}"));
    check(json!({"bad_words": [[1, 9]]}), 9, &format!("`constraints.bad_words` {outside}"));
    check(json!({"stop": {"tokens": [9]}}), 9, &format!("`stop.tokens` {outside}"));
    check(json!({}), 0, "the vocabulary has 0 tokens, but must have 1 to 4,294,967,295");
    let mut file = PolicyFile::default();
    for temperature in [-1.0, f64::NAN, f64::INFINITY] {
        file.shape.temperature = temperature;
        let error = Policy::from_file(&file, 4, &[]).unwrap_err();
        assert!(matches!(error, PolicyError::File(_)), "{error}");
    }
}
