//! What files say, and the policy files that come of it.

use std::fs;

use super::*;

/// The policy file that a `generation_config.json` becomes.
fn of_config(json: &str) -> String {
    let mut defaults = Defaults::default();
    defaults.read_folder(&serde_json::from_str(json).unwrap());
    let toml = defaults.to_toml("m");
    PolicyFile::from_toml(&toml).unwrap();
    toml
}

#[test]
fn a_generation_config_is_a_policy() {
    let toml = of_config(
        r#"{"do_sample": true, "temperature": 0.6, "top_p": 0.95, "top_k": 20,
            "repetition_penalty": 1.05, "bad_words_ids": [[1, 2]], "eos_token_id": [1, 2],
            "transformers_version": "4", "num_beams": 4, "min_p": null}"#,
    );
    let want = "schema = 1\nname = \"m: the model's own\"\n\
        \n[constraints]\n\
        repetition_penalty = 1.05 # generation_config.json: repetition_penalty\n\
        bad_words = [[1,2]] # generation_config.json: bad_words_ids\n\
        \n[shape]\n\
        temperature = 0.6 # generation_config.json: temperature\n\
        top_p = 0.95 # generation_config.json: top_p\n\
        top_k = 20 # generation_config.json: top_k\n\
        \n[choose]\n\
        method = \"sample\" # generation_config.json: do_sample\n\
        \n# num_beams = 4 is no field (generation_config.json: num_beams)\n";
    let mut found: Vec<&str> = toml.lines().collect();
    let mut wanted: Vec<&str> = want.lines().collect();
    // The order inside a section is the JSON reader's.
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
}

#[test]
fn without_do_sample_the_answer_is_greedy() {
    let toml = of_config(r#"{"temperature": 0.6, "repetition_penalty": 1.1}"#);
    assert!(toml.contains("method = \"greedy\"") && toml.contains("repetition_penalty = 1.1"));
    assert!(toml.contains("# temperature = 0.6 is of no effect without do_sample"), "{toml}");
}

#[test]
fn a_value_that_no_policy_takes_is_a_note() {
    let toml = of_config(r#"{"do_sample": true, "top_p": 1.5, "temperature": "hot\n[x]"}"#);
    assert!(toml.contains("# `shape.top_p` is 1.5, but must be"), "{toml}");
    assert!(!toml.contains("\n[x]") && !toml.contains("[shape]"), "{toml}");
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
    assert_eq!(Defaults::of(&file).unwrap(), Defaults::default());
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
