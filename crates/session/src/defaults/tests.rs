//! What files say, and the policy files that come of it.

use std::fs;
use std::path::Path;

use causeway_weights::Value as Stored;

use super::sources::{GENERATION, generation, number};
use super::*;

/// What a `generation_config.json` says.
fn of_config(json: &str) -> Defaults {
    let mut defaults = Defaults::default();
    defaults.read_folder(&serde_json::from_str(json).unwrap());
    PolicyFile::from_toml(&defaults.to_toml()).unwrap();
    defaults
}

/// What keys of a GGUF file say.
fn of_sampling(keys: &[(&str, Stored)]) -> Defaults {
    let mut defaults = Defaults::default();
    defaults.read_sampling(keys.iter().map(|(key, value)| (*key, value)));
    PolicyFile::from_toml(&defaults.to_toml()).unwrap();
    defaults
}

/// The policy's canonical form without its name; `-` where there is no policy.
fn policy(defaults: &Defaults) -> String {
    let Some(mut policy) = defaults.policy() else { return "-".to_owned() };
    assert!(policy.identity.name.take().unwrap().starts_with("the model's own: "));
    policy.to_canonical_json().replace(r#","schema":1"#, "").replace(r#""schema":1,"#, "")
}

#[test]
fn a_generation_config_is_a_policy() {
    let defaults = of_config(
        r#"{"do_sample": true, "temperature": 0.6, "top_p": 0.95, "top_k": 20,
            "repetition_penalty": 1.05, "bad_words_ids": [[1, 2]], "eos_token_id": [1, 2],
            "transformers_version": "4", "num_beams": 4, "min_p": null}"#,
    );
    let want = "schema = 1\nname = \"the model's own: generation_config.json\"\n\
        \n[constraints]\n\
        repetition_penalty = 1.05 # generation_config.json: repetition_penalty\n\
        bad_words = [[1,2]] # generation_config.json: bad_words_ids\n\
        \n[shape]\n\
        temperature = 0.6 # generation_config.json: temperature\n\
        top_p = 0.95 # generation_config.json: top_p\n\
        top_k = 20 # generation_config.json: top_k\n\
        \n[choose]\n\
        method = \"sample\" # generation_config.json: do_sample\n\
        \n# num_beams = 4 is no field, and not taken (generation_config.json: num_beams)\n";
    let toml = defaults.to_toml();
    let mut found: Vec<&str> = toml.lines().collect();
    let mut wanted: Vec<&str> = want.lines().collect();
    // The order inside a section is the JSON reader's.
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
    // The file that is shown is the policy that is taken.
    let shown = PolicyFile::from_toml(&toml).unwrap();
    assert_eq!(defaults.policy().unwrap().hash_hex(), shown.hash_hex());
}

#[test]
fn every_source_becomes_its_fields_or_none() {
    let check = |json: &str, want: &str| assert_eq!(policy(&of_config(json)), want, "{json}");
    // What says nothing of decoding is no policy.
    check("{}", "-");
    check(r#"{"eos_token_id": [1, 2], "bos_token_id": 3, "use_cache": true}"#, "-");
    check(r#"{"repetition_penalty": 1.0, "do_sample": null}"#, "-");
    check(r#"{"cache_implementation": "hybrid"}"#, "-");
    // How a token is taken counts even where it is the policy file's own default.
    check(r#"{"do_sample": true}"#, "{\"schema\":1}");
    let method = |json| of_config(json).method();
    assert_eq!(method(r#"{"do_sample": true}"#), Some(causeway_policy::Method::Sample));
    assert_eq!(method(r#"{"repetition_penalty": 1.1}"#), None);
    check(r#"{"do_sample": false}"#, r#"{"choose":{"method":"greedy"}}"#);
    check(r#"{"temperature": 0.6}"#, r#"{"choose":{"method":"greedy"}}"#);
    check(r#"{"do_sample": true, "top_k": 64}"#, r#"{"shape":{"top_k":64}}"#);
    check(
        r#"{"suppress_tokens": [9, 4], "min_new_tokens": 2, "no_repeat_ngram_size": 3,
            "max_new_tokens": 512}"#,
        r#"{"constraints":{"forbidden_tokens":[4,9],"min_tokens":2,"no_repeat_ngram":3},"stop":{"tokens_max":512}}"#,
    );
}

#[test]
fn stop_strings_need_a_tokenizer() {
    let mut defaults = of_config(r#"{"stop_strings": "END", "max_new_tokens": 4}"#);
    let want = r#"{"stop":{"strings":["END"],"tokens_max":4}}"#;
    assert_eq!(policy(&defaults), want);
    assert_eq!(policy(&of_config(r#"{"stop_strings": ["END"], "max_new_tokens": 4}"#)), want);
    defaults.drop_texts();
    assert_eq!(policy(&defaults), r#"{"stop":{"tokens_max":4}}"#);
    assert_eq!(defaults.notes()[0].0, "stop_strings [\"END\"]: there is no tokenizer");
}

#[test]
fn keys_of_llama_cpp_are_a_policy_or_named() {
    let check = |keys: &[(&str, Stored)], want: &str, notes: &[&str]| {
        let defaults = of_sampling(keys);
        assert_eq!(policy(&defaults), want, "{keys:?}");
        let found: Vec<String> = defaults.notes().into_iter().map(|(note, _)| note).collect();
        assert_eq!(found, notes, "{keys:?}");
    };
    check(&[], "-", &[]);
    check(
        &[
            ("temp", Stored::F32(0.7)),
            ("top_k", Stored::I32(20)),
            ("top_p", Stored::F32(0.8)),
            ("min_p", Stored::F32(0.05)),
            ("penalty_repeat", Stored::F32(1.1)),
            ("penalty_last_n", Stored::I32(64)),
        ],
        r#"{"constraints":{"repetition_penalty":1.1,"repetition_window":64},"shape":{"min_p":0.05,"temperature":0.7,"top_k":20,"top_p":0.8}}"#,
        &[],
    );
    let strange = [
        ("sequence", Stored::String("top_k;temperature".to_owned())),
        ("xtc_probability", Stored::F32(0.5)),
        ("xtc_threshold", Stored::F32(0.1)),
        ("mirostat", Stored::I32(2)),
        ("mirostat_tau", Stored::F32(5.0)),
    ];
    let notes = [
        "sequence = \"top_k;temperature\" is no field, and not taken",
        "xtc_probability = 0.5 is no field, and not taken",
        "xtc_threshold = 0.1 is no field, and not taken",
        "mirostat = 2 is no field, and not taken",
        "mirostat_tau = 5.0 is no field, and not taken",
    ];
    // Nothing is drawn for the sake of keys that are not taken.
    check(&strange, "-", &notes);
    let all = ("penalty_last_n", Stored::I32(-1));
    let penalty = ("penalty_repeat", Stored::F32(1.5));
    check(&[penalty.clone(), all], r#"{"constraints":{"repetition_penalty":1.5}}"#, &[]);
    let off = "penalty_last_n = 0 turns the repetition penalty off";
    check(&[penalty, ("penalty_last_n", Stored::I32(0))], "-", &[off]);
    let cold = "`shape.temperature` is -1, but must be 0, or 1e-200 to 100";
    let found = of_sampling(&[("temp", Stored::F32(-1.0))]);
    assert!(found.policy().is_none() && found.to_toml().contains("shape.temperature"), "{cold}");
}

#[test]
fn what_is_taken_is_said_and_what_was_replaced_is_not() {
    let own = of_config(
        r#"{"do_sample": true, "temperature": 0.7, "top_k": 20, "repetition_penalty": 1.0,
            "suppress_tokens": [100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110]}"#,
    );
    let check = |edit: &dyn Fn(&mut PolicyFile), want: Option<&[&str]>| {
        let mut effective = own.policy().unwrap();
        edit(&mut effective);
        let taken = own.taken(&effective);
        let told = taken.as_ref().map(|taken| taken.strip_suffix(" (generation_config.json)"));
        // The order is that of the file, or of its reader.
        let mut told: Option<Vec<&str>> = told.map(|told| told.unwrap().split(", ").collect());
        told.iter_mut().for_each(|told| told.sort_unstable());
        assert_eq!(told.as_deref(), want);
    };
    let tokens = "forbidden_tokens with 11 entries";
    check(&|_| {}, Some(&[tokens, "sample", "temperature 0.7", "top_k 20"]));
    check(&|file| file.shape.temperature = 0.9, Some(&[tokens, "sample", "top_k 20"]));
    let replaced = |file: &mut PolicyFile| {
        *file = PolicyFile::default();
        file.choose.method = causeway_policy::Method::Greedy;
    };
    check(&replaced, None);
}

#[test]
fn what_no_policy_takes_over_is_said_where_it_would_change_answers() {
    let check = |defaults: &Defaults, want: Option<&str>| {
        let notice = defaults.notice(&defaults.policy().unwrap_or_default());
        assert_eq!(notice.as_deref(), want, "{defaults:?}");
    };
    check(&of_config(r#"{"num_beams": 1, "cache_implementation": "hybrid"}"#), None);
    let only = "the model's file says num_beams of decoding, which no policy takes over";
    check(&of_config(r#"{"num_beams": 4}"#), Some(only));
    let both = "decoding as the model's file says: sample (generation_config.json), but not its \
                top_p; `--policy none` leaves that out";
    check(&of_config(r#"{"do_sample": true, "top_p": 7}"#), Some(both));
    let off = [("mirostat", Stored::I32(0)), ("mirostat_tau", Stored::F32(5.0))];
    check(&of_sampling(&off), None);
    let on = [("mirostat", Stored::I32(1)), ("sequence", Stored::String("k".to_owned()))];
    let both = "the model's file says mirostat, sequence of decoding, which no policy takes over";
    check(&of_sampling(&on), Some(both));
}

#[test]
fn reasoning_markers_are_those_of_the_template() {
    let check = |template: &str, want: &str| {
        let template = causeway_text::Template::new(template).unwrap();
        let mut defaults = Defaults::default();
        defaults.read_thought(&crate::toy::text().with_template(template)).unwrap();
        assert_eq!(policy(&defaults), want);
        defaults.policy().and_then(|own| defaults.taken(&own))
    };
    let think = r#"{"reasoning":{"close":"</think>","open":"<think>"}}"#;
    let said = check("{{ messages[0].content.split('</think>') }}", think).unwrap();
    let want = "a thought from <think> on, to </think>, which is no part of the answer \
                (the chat template)";
    assert_eq!(said, want);
    check("◁think▷", r#"{"reasoning":{"close":"◁/think▷","open":"◁think▷"}}"#);
    check("[THINK]", r#"{"reasoning":{"close":"[/THINK]","open":"[THINK]"}}"#);
    check("{{ messages[0].content }}", "-");
}

#[test]
fn a_value_that_no_policy_takes_is_a_note() {
    let toml = of_config(r#"{"do_sample": true, "top_p": 1.5, "temperature": "hot\n[x]"}"#);
    let toml = toml.to_toml();
    assert!(toml.contains("# `shape.top_p` is 1.5, but must be"), "{toml}");
    assert!(!toml.contains("\n[x]") && !toml.contains("[shape]"), "{toml}");
    let toml = of_config(r#"{"temperature": 0.6, "repetition_penalty": 1.1}"#).to_toml();
    assert!(toml.contains("method = \"greedy\"") && toml.contains("repetition_penalty = 1.1"));
    assert!(toml.contains("# temperature = 0.6 is of no effect without do_sample"), "{toml}");
}

#[test]
fn numbers_are_spelled_as_they_were_meant() {
    for (value, want) in [
        (Stored::F32(0.6), Some("0.6")),
        (Stored::F32(1.0), Some("1.0")),
        (Stored::I32(-1), Some("-1")),
        (Stored::F32(f32::NAN), None),
        (Stored::String("1".to_owned()), None),
    ] {
        assert_eq!(number(&value).as_deref(), want, "{value:?}");
    }
}

#[test]
fn a_folder_without_a_word_says_nothing() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny/llama");
    let file = ModelFile::open(&folder).unwrap();
    let defaults = Defaults::of(&file).unwrap();
    assert_eq!((&defaults, defaults.policy()), (&Defaults::default(), None));
}

#[test]
fn a_damaged_config_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (content, word) in [("[]", "JSON"), ("{", "JSON"), (&" ".repeat(1 << 21)[..], "limit")] {
        fs::write(folder.path().join(GENERATION), content).unwrap();
        let refusal = generation(folder.path()).unwrap_err();
        assert!(!refusal.is_callers_mistake() && refusal.to_string().contains(word), "{refusal}");
    }
}
