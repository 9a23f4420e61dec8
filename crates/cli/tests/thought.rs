//! A thought's budget on a real model: laid, recorded, played again, whatever the chunk.

mod support;

use serde_json::Value;
use support::{causeway, lines, object, smollm2};

/// The model is made to think by the prefill, and never ends a thought by itself.
fn policy(budget: u32) -> String {
    format!(
        "schema = 1\n[prompt]\nprefill = \"<think>\\n\"\n[choose]\nmethod = \"greedy\"\n\
         [reasoning]\nopen = \"<think>\"\nclose = \"</think>\"\ntokens_max = {budget}\n\
         [stop]\ntokens_max = 16\n"
    )
}

/// Steps of the run's record as (cause, forced_by, piece, shown).
fn steps(record: &Value) -> Vec<[String; 4]> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let step = |step: &Value| {
        let forced_by = text(&step["reasons"]["forced_by"]);
        [text(&step["cause"]), forced_by, text(&step["piece"]), text(&step["shown"])]
    };
    record["steps"].as_array().expect("a record has steps").iter().map(step).collect()
}

fn check(budget: u32, chunk: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (policy_path, record_path) = (folder.path().join("p.toml"), folder.path().join("r.json"));
    std::fs::write(&policy_path, policy(budget)).expect("a file can be written");
    let (policy_path, record_path) = (policy_path.display(), record_path.display());
    let (policy_path, record_path) = (policy_path.to_string(), record_path.to_string());
    let place = ["--policy", &policy_path, "--record", &record_path];
    let ask = ["run", "-m", smollm2(), "--json", "--chunk", chunk, "Why is the sky blue?"];
    let answer = object(&causeway(&[&ask[..], &place].concat()));
    let text = std::fs::read_to_string(&record_path).expect("the record was written");
    let record: Value = serde_json::from_str(&text).expect("a record is JSON");
    let steps = steps(&record);
    let (budget, laid) = (budget as usize, steps.iter().filter(|step| step[0] == "forced").count());
    let marker: String = steps[budget..budget + laid].iter().map(|step| &*step[2]).collect();
    assert_eq!(marker, "</think>", "{steps:?}");
    for (index, [cause, forced_by, _, shown]) in steps.iter().enumerate() {
        let is_laid = (budget..budget + laid).contains(&index);
        let want = if is_laid { ("forced", "reasoning.tokens_max") } else { ("chosen", "") };
        assert_eq!((cause.as_str(), forced_by.as_str()), want, "{index} {steps:?}");
        assert_eq!(shown == "reasoning", index < budget + laid, "{index} {steps:?}");
    }
    let tokens = &answer["account"]["tokens"];
    let counts = ["prefix", "forced", "reasoning"].map(|name| tokens[name].as_u64());
    assert_eq!(counts, [Some(16), Some(laid as u64), Some((budget + laid) as u64)], "{tokens}");
    let replayed = causeway(&["replay", &record_path, "--json", "--chunk", "3"]);
    assert_eq!(replayed.code, 0, "{replayed:?}");
    assert_eq!(lines(&replayed.stdout)[0]["equal_steps"], 16, "{replayed:?}");
    record["steps"].as_array().expect("a record has steps").iter().map(digest).collect()
}

fn digest(step: &Value) -> Value {
    step["digest"].clone()
}

#[test]
fn a_thought_is_closed_behind_its_budget_and_plays_again() {
    assert_eq!(check(4, "512"), check(4, "5"));
    check(0, "512");
}

#[test]
fn a_budget_without_markers_is_refused() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("p.toml");
    std::fs::write(&path, "schema = 1\n[reasoning]\ntokens_max = 4\n").expect("it can be written");
    let path = path.display().to_string();
    let ran = causeway(&["run", "-m", smollm2(), "--policy", &path, "hello"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("`reasoning.tokens_max` is set, but not the markers"), "{ran:?}");
}
