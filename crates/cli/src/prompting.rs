//! From what the caller gave to the tokens of a prompt.

use causeway_ledger::Template;
use causeway_policy::PolicyFile;
use causeway_request::TokenId;
use causeway_text::{Chat, CivilTime, Template as ChatTemplate, Text, TextError};
use serde_json::json;

use crate::clock::Clock;
use crate::failure::Failure;
use crate::loaded::Loaded;

/// What the caller gave.
#[derive(Debug, Clone)]
pub(crate) enum Given {
    /// Token ids in place of a prompt.
    Ids(Vec<u32>),
    /// Text that the answer goes on from.
    Raw(String),
    /// A user's message to be put through the template.
    Chat(String),
}

/// A prompt as tokens.
#[derive(Debug)]
pub(crate) struct Prompt {
    /// The text after the template.
    pub(crate) text: Option<String>,
    pub(crate) tokens: Vec<TokenId>,
    /// How many of `tokens`, at their end, are response prefill.
    pub(crate) prefilled: usize,
    pub(crate) template: Option<Template>,
    /// The answer goes on from other text.
    pub(crate) continues: bool,
}

/// Makes the prompt, with the policy's system text, template and response prefill.
pub(crate) fn prompt(
    given: &Given,
    file: &PolicyFile,
    loaded: &mut Loaded,
) -> Result<Prompt, Failure> {
    if let (Given::Chat(_), Some(source), Some(text)) =
        (given, &file.prompt.template, &mut loaded.text)
    {
        text.template = Some(ChatTemplate::new(source).map_err(Failure::caller)?);
    }
    match given {
        Given::Ids(ids) => {
            refuse_chat_texts(file, "--ids")?;
            let tokens = ids.iter().copied().map(TokenId).collect();
            Ok(Prompt { text: None, tokens, prefilled: 0, template: None, continues: true })
        }
        Given::Raw(text) => {
            refuse_chat_texts(file, "--raw")?;
            let tokenizer = &loaded.text()?.tokenizer;
            let mut tokens = tokenizer.encode(text, false, true).map_err(text_failure)?;
            let before = tokens.len();
            if let Some(prefill) = &file.prompt.prefill {
                tokens.extend(tokenizer.encode(prefill, false, false).map_err(text_failure)?);
            }
            let prefilled = tokens.len() - before;
            let text = Some(text.clone());
            Ok(Prompt { text, tokens, prefilled, template: None, continues: true })
        }
        Given::Chat(message) => chat(message, file, loaded.text()?),
    }
}

fn refuse_chat_texts(file: &PolicyFile, flag: &str) -> Result<(), Failure> {
    for (name, is_set) in [
        ("prompt.template", file.prompt.template.is_some()),
        ("prompt.system", file.prompt.system.is_some()),
    ] {
        if is_set {
            return Err(Failure::caller(anyhow::anyhow!(
                "the policy sets `{name}`, which {flag} leaves out: use --chat"
            )));
        }
    }
    Ok(())
}

fn chat(message: &str, file: &PolicyFile, text: &Text) -> Result<Prompt, Failure> {
    let mut messages = Vec::new();
    if let Some(system) = &file.prompt.system {
        messages.push(json!({ "role": "system", "content": system }));
    }
    messages.push(json!({ "role": "user", "content": message }));
    let (rendered, mut tokens) = render(text, &messages, false)?;
    let mut prefilled = 0;
    if let Some(prefill) = &file.prompt.prefill {
        messages.push(json!({ "role": "assistant", "content": prefill }));
        let (_, whole) = render(text, &messages, true)?;
        // The opening of the answer is what the longer rendering adds.
        let same = whole.iter().zip(&tokens).take_while(|(a, b)| a == b).count();
        prefilled = whole.len() - same;
        tokens = whole;
    }
    let template = text.template.as_ref().map(|own| Template::new(own.source().to_owned()));
    let continues = prefilled > 0;
    Ok(Prompt { text: Some(rendered), tokens, prefilled, template, continues })
}

fn render(
    text: &Text,
    messages: &[serde_json::Value],
    continue_final_message: bool,
) -> Result<(String, Vec<TokenId>), Failure> {
    let mut chat = Chat::from_json(&json!(messages).to_string()).map_err(Failure::caller)?;
    chat.add_generation_prompt = !continue_final_message;
    chat.continue_final_message = continue_final_message;
    chat.now = CivilTime::from_unix(Clock::start().start_unix_ms / 1_000);
    let rendered = text.render(&chat).map_err(text_failure)?;
    Ok((rendered.text, text.chat(&chat).map_err(text_failure)?))
}

fn text_failure(error: TextError) -> Failure {
    let is_callers_mistake = error.is_callers_mistake();
    Failure::of(error, is_callers_mistake)
}
