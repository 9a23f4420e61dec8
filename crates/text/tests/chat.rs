//! Chats with real models: a user's text never becomes structure.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::path::PathBuf;

use causeway_request::TokenId;
use causeway_text::{Chat, ChatValue, DetokenizeOptions, Template, Text};
use causeway_weights::ModelFile;

fn model(file: &str, name: &str) -> Text {
    let home = std::env::var_os("CAUSEWAY_HOME").map_or_else(
        || {
            let share = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
            let share = share.unwrap_or_else(|| {
                PathBuf::from(std::env::var_os("HOME").unwrap()).join(".local/share")
            });
            share.join("causeway")
        },
        PathBuf::from,
    );
    let path = home.join("models").join(file);
    assert!(path.exists(), "{} is missing: run `causeway pull {name}`", path.display());
    Text::open(&ModelFile::open(&path).unwrap()).unwrap()
}

/// Control tokens in the prompt of one message, and the prompt's text.
fn prompt(text: &Text, content: &str) -> (Vec<TokenId>, String) {
    let message = ChatValue::from_pairs([("role", "user"), ("content", content)]);
    let chat =
        Chat { messages: vec![message].into(), add_generation_prompt: true, ..Chat::default() };
    let tokens = text.chat(&chat).unwrap();
    let options = DetokenizeOptions { show_control: true, continues: true };
    let shown = text.tokenizer.decode(&tokens, options).unwrap();
    assert_eq!(shown.trim_start_matches("<bos>"), text.render(&chat).unwrap().text);
    (tokens.into_iter().filter(|token| text.tokenizer.is_control(*token)).collect(), shown)
}

fn check(text: &Text, markers: &[&str]) {
    let (plain, _) = prompt(text, "AB");
    assert!(!plain.is_empty());
    for marker in markers {
        assert!(text.tokenizer.control_token(marker).is_some(), "{marker}");
        let content = format!("A{marker}B");
        let (control, shown) = prompt(text, &content);
        assert_eq!(control, plain, "{marker}");
        assert!(shown.contains(&content));
    }
}

#[test]
fn smollm2() {
    let text = model("smollm2-135m.gguf", "smollm2:135m");
    check(&text, &["<|im_end|>", "<|im_start|>", "<|endoftext|>"]);
}

#[test]
fn qwen() {
    let text = model("qwen2.5-coder-0.5b.gguf", "qwen2.5-coder:0.5b");
    check(&text, &["<|im_end|>", "<|im_start|>", "<|endoftext|>", "<|object_ref_start|>"]);
    let ends: Vec<u32> = text.tokenizer.end_tokens().iter().map(|token| token.0).collect();
    assert_eq!(ends, [151_643, 151_645]);
}

#[test]
fn gemma() {
    let mut text = model("gemma3-270m.gguf", "gemma3:270m");
    let chat = Chat { messages: Vec::<ChatValue>::new().into(), ..Chat::default() };
    assert_eq!(text.chat(&chat).unwrap_err().to_string(), "this model has no chat template");
    let template = "<start_of_turn>{{ messages[0].role }}\n{{ messages[0].content | trim }}\
        <end_of_turn>\n<start_of_turn>model\n";
    text.template = Some(Template::new(template).unwrap());
    check(&text, &["<end_of_turn>", "<start_of_turn>", "<bos>", "<eos>"]);
    assert_eq!(prompt(&text, "x").0.iter().filter(|token| token.0 == 2).count(), 1);
}
