//! The running example through the real command: its policies, both requests, record and replay.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use support::{Ran, causeway, smollm2, tree, with_stdin};

const POLICIES: [&str; 2] = ["greedy", "sampled"];

fn example(name: &str) -> String {
    tree().join("examples/ticket").join(name).display().to_string()
}

fn policy(name: &str) -> String {
    example(&format!("policies/{name}.toml"))
}

/// Runs the example under a policy for a few tokens; the record's path and the record.
fn answer(folder: &Path, name: &str, ticket: &[&str], more: &[&str]) -> (String, Value) {
    let path = folder.join(format!("{name}.json")).display().to_string();
    let args = ["run", "-m", smollm2(), "--record", &path, "--tokens-max", "6"];
    let ran = causeway(&[&args[..], more, ticket].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    let record = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    (path, record)
}

#[test]
fn the_policies_are_in_order() {
    let page = fs::read_to_string(example("README.md")).unwrap();
    for name in POLICIES {
        let Ran { code, stdout, .. } = causeway(&["policy", "check", &policy(name)]);
        let start = format!("ok: ticket-{name} 1.0.0 ");
        assert!(code == 0 && stdout.starts_with(&start), "{stdout}");
        assert!(page.contains(&stdout), "README.md shows another hash than {stdout}");
    }
}

#[test]
fn the_schemas_have_the_same_fields_in_another_order() {
    let [score, reasoning] = ["score", "reasoning"]
        .map(|first| fs::read_to_string(example(&format!("schema-{first}-first.json"))).unwrap());
    let place = |text: &str, name: &str| text.find(&format!("\"{name}\": {{")).unwrap();
    assert!(place(&score, "risk_score") < place(&score, "reasoning"));
    assert!(place(&reasoning, "reasoning") < place(&reasoning, "risk_score"));
    let properties = |text: &str| {
        let schema: Value = serde_json::from_str(text).unwrap();
        schema["properties"].clone()
    };
    // Objects compare without their order.
    assert_eq!(properties(&score), properties(&reasoning));
}

#[test]
fn the_escalation_has_forty_messages() {
    let text = fs::read_to_string(example("escalation.json")).unwrap();
    let messages: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(messages.len(), 40);
    assert_eq!(messages[39]["role"], "user", "somebody waits for an answer");
    for message in &messages {
        assert!(["user", "assistant"].contains(&message["role"].as_str().unwrap()));
    }
}

#[test]
fn one_line_is_answered_recorded_and_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let line = fs::read_to_string(example("ticket-short.txt")).unwrap();
    let run = |name: &str, policy_name: &str, more: &[&str]| {
        let policy = policy(policy_name);
        let more = [&["--policy", &policy], more].concat();
        answer(folder.path(), name, &[line.trim_end()], &more)
    };
    let (greedy, record) = run("greedy", "greedy", &[]);
    assert_eq!(record["start"]["policy"]["greedy"], true);
    assert!(record["start"]["request"]["effective"]["prefilled_tokens"][0].is_number());
    let (seven, seven_record) = run("seven", "sampled", &["--seed", "7"]);
    assert_eq!(seven_record["start"]["request"]["effective"]["seed"], 7);
    let (eight, _) = run("eight", "sampled", &["--seed", "8"]);
    for path in [&greedy, &seven] {
        let ran = causeway(&["replay", path, "--threads", "1"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.stdout.contains("equal: 6 steps"), "{ran:?}");
    }
    // Same logits at first; what differs is the policy, and then the draw.
    let cause = |a: &str, b: &str| {
        let ran = causeway(&["diff", a, b, "--json"]);
        assert_eq!(ran.code, 1, "{ran:?}");
        let verdict: Value = serde_json::from_str(&ran.stdout).unwrap();
        verdict["difference"]["cause"].clone()
    };
    assert_eq!(cause(&greedy, &seven), "policy");
    assert_eq!(cause(&seven, &eight), "draw");
}

#[test]
fn forty_messages_are_answered_recorded_and_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let (policy, messages) = (policy("greedy"), example("escalation.json"));
    let more = ["--policy", &policy, "--messages", &messages, "--chunk", "300"];
    let (path, record) = answer(folder.path(), "long", &[], &more);
    let request = &record["start"]["request"];
    assert_eq!(request["received"]["messages"].as_array().unwrap().len(), 40);
    let prompt = request["effective"]["prompt"].as_str().unwrap();
    assert!(prompt.starts_with("<|im_start|>system\nYou triage support tickets."), "{prompt}");
    assert!(prompt.ends_with("<|im_end|>\n<|im_start|>assistant\n"), "{prompt}");
    let account = &record["end"]["account"];
    let tokens = account["tokens"]["prompt"].as_u64().unwrap();
    assert!(tokens > 1000, "{tokens} tokens");
    assert_eq!(account["passes"]["prefill"], tokens.div_ceil(300));
    let ran = causeway(&["replay", &path]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// What a run makes of messages: the text of its prompt, or its one sentence.
fn prompt_of(messages: &Value, flags: &[&str]) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json").display().to_string();
    let args = ["run", "-m", smollm2(), "--tokens-max", "1", "--record", &path];
    let args = [&args[..], &["--messages", "-"], flags].concat();
    let ran = with_stdin(&args, &messages.to_string());
    if ran.code != 0 {
        assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1), "{ran:?}");
        return Err(ran.stderr);
    }
    let record: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let effective = &record["start"]["request"]["effective"];
    let prefilled = effective["prefilled_tokens"].as_array().unwrap().len();
    Ok(format!("{}+{prefilled}", effective["prompt"].as_str().unwrap()))
}

#[test]
fn messages_are_put_through_the_template() {
    let user = json!({"role": "user", "content": "Hi"});
    let system = json!({"role": "system", "content": "S"});
    let rendered = "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n\
                    <|im_start|>assistant\n";
    let plain = format!("{rendered}+0");
    assert_eq!(prompt_of(&json!([system, user]), &[]), Ok(plain.clone()));
    assert_eq!(prompt_of(&json!({"messages": [system, user]}), &[]), Ok(plain.clone()));
    assert_eq!(prompt_of(&json!([user]), &["--system", "S"]), Ok(plain));
    // A response prefill, the policy's or the chat's own, is the same thing.
    let prefilled = prompt_of(&json!([system, user]), &["--prefill", "Well, then"]).unwrap();
    assert!(prefilled.starts_with(rendered) && !prefilled.ends_with("+0"), "{prefilled}");
    let last = json!({"role": "assistant", "content": "Well, then"});
    let own = json!({"messages": [system, user, last], "continue_final_message": true});
    assert_eq!(prompt_of(&own, &[]), Ok(prefilled));
    for (messages, flags, want) in [
        (json!([system, user]), &["--system", "T"][..], "begin with a system message"),
        (own.clone(), &["--prefill", "x"], "end with an answer to continue"),
        (json!([]), &[], "there are no messages"),
        (json!({}), &[], "there are no messages"),
        (json!("Hi"), &[], "a chat must be an object or a list"),
        (json!({"messages": "Hi"}), &[], "each message must be an object"),
        (json!([user]), &["--raw"], "cannot be used with"),
    ] {
        let sentence = prompt_of(&messages, flags).unwrap_err();
        assert!(sentence.contains(want), "{messages} gave {sentence}");
    }
}
