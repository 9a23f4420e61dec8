//! Folders: what is read from which file, and what is refused.

use super::*;
use crate::template::Chat;
use crate::{ChatValue, toy};

/// A folder under the target folder's temporary one, with these files.
fn folder(name: &str, files: &[(&str, &str)]) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("causeway-text-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    for (file, content) in files {
        fs::write(folder.join(file), content).unwrap();
    }
    folder
}

const TOKENIZER: &str = r#"{"version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 5, "content": "<s>", "single_word": false, "lstrip": false,
        "rstrip": false, "normalized": false, "special": true}],
    "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": null,
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "<": 2, "s": 3, ">": 4}, "merges": []}}"#;

#[test]
fn a_folder_gives_tokens_template_and_ends() {
    let folder = folder(
        "whole",
        &[
            ("tokenizer.json", TOKENIZER),
            (
                "tokenizer_config.json",
                r#"{"bos_token": {"content": "<s>"}, "eos_token": "<s>",
            "chat_template": "{{ bos_token }}{{ messages[0].content }}"}"#,
            ),
            ("generation_config.json", r#"{"eos_token_id": [1, 5]}"#),
        ],
    );
    let text = Text::from_folder(&folder).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(text.tokenizer.end_tokens(), [TokenId(1), TokenId(5)]);
    let chat = Chat::from_json(r#"[{"role": "user", "content": "a<s>"}]"#).unwrap();
    let tokens: Vec<u32> = text.chat(&chat).unwrap().iter().map(|token| token.0).collect();
    assert_eq!(tokens, [5, 0, 2, 3, 4]);
}

#[test]
fn a_template_of_its_own_file_or_by_name_is_found() {
    let named = r#"{"chat_template": [{"name": "tools", "template": "t"},
        {"name": "default", "template": "d"}]}"#;
    let with_config = [("tokenizer.json", TOKENIZER), ("tokenizer_config.json", named)];
    let path = folder("named", &with_config);
    let source = |path: &Path| {
        let text = Text::from_folder(path).unwrap();
        text.template.map(|template| template.source().to_owned())
    };
    assert_eq!(source(&path), Some("d".to_owned()));
    fs::write(path.join("chat_template.jinja"), "j").unwrap();
    assert_eq!(source(&path), Some("j".to_owned()));
    fs::remove_dir_all(&path).unwrap();
    let path = folder("bare", &with_config[..1]);
    assert_eq!(source(&path), None);
    fs::remove_dir_all(&path).unwrap();
}

#[test]
fn what_is_missing_or_damaged_is_named() {
    let refusal = |files: &[(&str, &str)]| {
        let path = folder("refused", files);
        let refusal = Text::from_folder(&path).unwrap_err();
        fs::remove_dir_all(&path).unwrap();
        assert!(!refusal.is_callers_mistake());
        refusal.to_string().replace(&path.display().to_string(), "F")
    };
    assert_eq!(refusal(&[]), "`F` has no vocabulary: it holds no `tokenizer.json`");
    let damaged = [("tokenizer.json", TOKENIZER), ("tokenizer_config.json", "{")];
    assert_eq!(refusal(&damaged), "`F/tokenizer_config.json` is not valid JSON");
    let sentence = refusal(&[("tokenizer.json", "{}")]);
    assert!(sentence.starts_with("`F/tokenizer.json` cannot be used"), "{sentence}");
}

/// A toy model with a template.
fn toy_text(template: &str, add_bos: bool) -> Text {
    let vocabulary = crate::Vocabulary { add_bos, ..toy::sentence_piece() };
    let tokenizer = Tokenizer::from_vocabulary(&vocabulary).unwrap();
    Text::new(tokenizer, Some(Template::new(template).unwrap()))
}

fn says(content: &str) -> Chat {
    let message = ChatValue::from_pairs([("role", "user"), ("content", content)]);
    Chat { messages: vec![message].into(), ..Chat::default() }
}

#[test]
fn bos_stands_first_once() {
    let printed = "{{ bos_token }}{{ messages[0].content }}";
    let plain = "{{ messages[0].content }}";
    for (template, add_bos, count) in
        [(printed, true, 1), (printed, false, 1), (plain, true, 1), (plain, false, 0)]
    {
        let tokens = toy_text(template, add_bos).chat(&says("This")).unwrap();
        let found = tokens.iter().filter(|token| token.0 == 1).count();
        assert_eq!((found, tokens.first() == Some(&TokenId(1))), (count, count == 1));
    }
}

#[test]
fn a_model_without_a_template_does_not_chat() {
    let text = Text { template: None, ..toy_text("", false) };
    let refusal = text.chat(&says("a")).unwrap_err();
    assert_eq!(refusal.to_string(), "this model has no chat template");
    assert!(refusal.is_callers_mistake());
}

#[test]
fn answers_hide_control_tokens() {
    let text = toy_text("", true);
    let mut detokenizer = text.detokenizer();
    assert_eq!(detokenizer.push(TokenId(2)).unwrap(), "");
    assert_eq!(detokenizer.finish(), "");
}

#[test]
fn files_that_cannot_be_read_or_are_too_long_are_named() {
    let path = folder("unreadable", &[]);
    fs::create_dir(path.join("tokenizer.json")).unwrap();
    let refusal = Text::from_folder(&path).unwrap_err().to_string();
    assert!(refusal.ends_with("tokenizer.json` cannot be read"), "{refusal}");
    fs::remove_dir(path.join("tokenizer.json")).unwrap();
    let file = fs::File::create(path.join("tokenizer.json")).unwrap();
    file.set_len(FILE_BYTES_MAX + 1).unwrap();
    let refusal = Text::from_folder(&path).unwrap_err().to_string();
    let sentence = "tokenizer.json` holds 268435457 bytes, the limit is 268435456";
    assert!(refusal.ends_with(sentence), "{refusal}");
    fs::remove_dir_all(&path).unwrap();
}

#[test]
fn a_continued_message_is_counted_as_prefill() {
    let text = toy_text(
        "{% for m in messages %}{{ m.role }}{{ m.content }}{{ eos_token }}{% endfor %}\
         {% if add_generation_prompt %}assistant{% endif %}",
        true,
    );
    let count = |json: &str| {
        let chat = Chat::from_json(json).unwrap();
        text.prefilled(&chat, &text.chat(&chat).unwrap())
    };
    let messages = r#""messages": [{"role": "user", "content": "H"},
        {"role": "assistant", "content": "This is"}]"#;
    assert_eq!(count(&format!(r#"{{{messages}, "continue_final_message": true}}"#)), 2);
    assert_eq!(count(&format!("{{{messages}}}")), 0);
}
