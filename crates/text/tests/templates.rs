//! Rendered chats against `transformers`: every template with every list of messages.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeMap;
use std::path::Path;

use causeway_text::{Chat, ChatValue, CivilTime, Names, Template, TemplateError};
use serde_json::Value;

fn testdata(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/chat_templates");
    std::fs::read_to_string(path.join(name)).unwrap()
}

/// A template's source and the special tokens it is given.
fn template(all: &Value, name: &str) -> (Template, Names) {
    let entry = &all["templates"][name];
    let source = match name {
        "smollm2_gguf" => testdata("smollm2.jinja"),
        "qwen_gguf" => testdata("qwen2.5-coder-0.5b.jinja"),
        _ => entry["text"].as_str().unwrap().to_owned(),
    };
    let names = ["bos_token", "eos_token", "unk_token", "pad_token"];
    let names = names
        .into_iter()
        .filter_map(|name| Some((name, entry["special_tokens"][name].as_str()?.to_owned())));
    (Template::new(&source).unwrap(), names.collect())
}

fn chat(lists: &BTreeMap<String, BTreeMap<String, ChatValue>>, case: &Value) -> Chat {
    let list = &lists[case["messages"].as_str().unwrap()];
    let flag = |name: &str| case[name].as_bool().unwrap_or(false);
    let variables = list.get("kwargs").map(|kwargs| {
        let keys = kwargs.try_iter().unwrap();
        keys.map(|key| (key.to_string(), kwargs.get_item(&key).unwrap())).collect()
    });
    Chat {
        messages: list["messages"].clone(),
        tools: list.get("tools").cloned(),
        documents: list.get("documents").cloned(),
        add_generation_prompt: flag("add_generation_prompt"),
        continue_final_message: flag("continue_final_message"),
        variables: variables.unwrap_or_default(),
        now: CivilTime::parse("2024-07-26T15:04:05"),
    }
}

#[test]
fn every_case_is_rendered_as_transformers_does() {
    let all: Value = serde_json::from_str(&testdata("templates.json")).unwrap();
    let lists = serde_json::from_str(&testdata("messages.json")).unwrap();
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in testdata("cases.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let (template, names) = template(&all, case["template"].as_str().unwrap());
        let chat = chat(&lists, &case);
        let found = template.render(&chat, &names);
        count += 1;
        let is_right = match (&found, case["expected"].as_str()) {
            (Ok(text), Some(expected)) => text == expected,
            (Err(TemplateError::Raised { message }), None) => {
                case["error"]["type"] == "TemplateError" && case["error"]["message"] == *message
            }
            (Err(_), None) => case["error"]["type"] != "TemplateError",
            _ => false,
        };
        if !is_right {
            wrong.push(format!("{case}\n  found {found:?}"));
            continue;
        }
        // Marking who wrote what changes no text and makes no error.
        let guarded = template.render_guarded(&chat, &names, MARKERS);
        match (found, guarded) {
            (Ok(text), Ok(guarded)) => assert_eq!(text, guarded.text),
            (Err(_), Err(_)) => {}
            (found, guarded) => wrong.push(format!("{case}\n  {found:?} but {guarded:?}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(count, 280);
}

const MARKERS: [&str; 7] =
    ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<s>", "</s>", "<turn>", "[INST]"];
