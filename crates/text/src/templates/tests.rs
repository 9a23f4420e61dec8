//! Templates by name: where they are found, which one a chat gets, which names are refused.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::{Chat, Text, TokenType, Tokenizer, Vocabulary};

/// A folder with these files, removed when the test is through with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let path =
            std::env::temp_dir().join(format!("causeway-templates-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        for (file, content) in files {
            let path = path.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const LIST: &str = r#"{"chat_template": [{"name": "tool_use", "template": "t"},
    {"name": "default", "template": "d"}, {"name": "rag", "template": "r"}, {"name": 3}]}"#;
const ONE: &str = r#"{"chat_template": "one"}"#;

#[test]
fn a_folder_has_its_templates_in_several_places() {
    let check = |case: &str, files: &[(&str, &str)], want: &str| {
        let folder = Folder::new(case, files);
        let templates = Templates::from_folder(&folder.0).unwrap();
        let found: Vec<String> =
            templates.iter().map(|(name, of)| format!("{name}={of}")).collect();
        assert_eq!(found.join(" "), want, "{case}");
    };
    check("one", &[("tokenizer_config.json", ONE)], "default=one");
    check("list", &[("tokenizer_config.json", LIST)], "default=d rag=r tool_use=t");
    check("none", &[("tokenizer_config.json", "{}")], "");
    let last = ("chat_template.json", r#"{"chat_template": "last"}"#);
    check("last", &[("tokenizer_config.json", "{}"), last], "default=last");
    check("not last", &[("tokenizer_config.json", ONE), last], "default=one");
    let file = ("chat_template.jinja", "file");
    // A file of its own replaces the whole list, as it does in `transformers`.
    check("file", &[("tokenizer_config.json", LIST), file], "default=file");
    let more = ("additional_chat_templates/tool_use.jinja", "more");
    let readme = ("additional_chat_templates/README.md", "no template");
    check("more", &[file, more, readme], "default=file tool_use=more");
    check("beside", &[("tokenizer_config.json", ONE), more], "default=one tool_use=more");
}

/// A text side whose templates print their names.
fn text(config: &str) -> Text {
    let by_name = of_config(&serde_json::from_str::<Value>(config).unwrap()["chat_template"]);
    let vocabulary = Vocabulary::of_bytes(&[("<unk>", TokenType::Unknown)]);
    let tokenizer = Tokenizer::from_vocabulary(&vocabulary).unwrap();
    Text::with_templates(tokenizer, Templates { by_name }).unwrap()
}

/// What a chat is rendered to, or refused with.
fn rendered(text: &Text, tools: &str) -> String {
    let chat = format!(r#"{{"messages": [{{"role": "user", "content": "x"}}], "tools": {tools}}}"#);
    match text.render(&Chat::from_json(&chat).unwrap()) {
        Ok(rendered) => rendered.text,
        Err(refusal) => {
            let whose = if refusal.is_callers_mistake() { "caller" } else { "model" };
            format!("{whose}: {refusal}")
        }
    }
}

#[test]
fn tools_choose_their_template_and_nothing_else_does() {
    let tools = r#"[{"type": "function", "function": {"name": "f"}}]"#;
    let check = |config: &str, tools: &str, want: &str| {
        assert_eq!(rendered(&text(config), tools), want, "{config} {tools}");
    };
    check(LIST, "null", "d");
    check(LIST, "[]", "d");
    check(LIST, tools, "t");
    check(ONE, tools, "one");
    let no_default = r#"{"chat_template": [{"name": "rag", "template": "r"}]}"#;
    check(no_default, "null", "caller: this model has no chat template `default`: it has `rag`");
    check("{}", "null", "caller: this model has no chat template");
    let broken = r#"{"chat_template": [{"name": "tool_use", "template": "{% if %}"},
        {"name": "default", "template": "d"}]}"#;
    check(broken, "null", "d");
    check(broken, tools, "model: the chat template cannot be read");
}

#[test]
fn a_template_is_chosen_by_its_name() {
    let text = text(LIST);
    assert_eq!(text.templates().named("rag"), Ok("r"));
    let refusal = text.templates().named("ra\ng").unwrap_err();
    assert!(refusal.is_callers_mistake());
    let want = "this model has no chat template `ra\u{fffd}g`: it has `default`, `rag`, `tool_use`";
    assert_eq!(refusal.to_string(), want);
    assert_eq!(text.tool_template_source(), Some("t"));
    let chosen = crate::Template::new("chosen").unwrap();
    let text = text.with_template(chosen);
    let tools = r#"[{"type": "function", "function": {"name": "f"}}]"#;
    assert_eq!((rendered(&text, tools).as_str(), text.templates().is_empty()), ("chosen", true));
}
