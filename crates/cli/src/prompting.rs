//! From what the caller gave to the tokens of a prompt.

use causeway_ledger::Template;
use causeway_policy::PolicyFile;
use causeway_request::TokenId;
use causeway_text::{
    Chat, ChatValue, CivilTime, Template as ChatTemplate, Text, TextError, Tokenizer,
};

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
    /// Messages as JSON: a list, or an object with `messages` and what stands beside them.
    Messages(String),
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
    if let (Given::Chat(_) | Given::Messages(_), Some(source), Some(text)) =
        (given, &file.prompt.template, &mut loaded.text)
    {
        text.template = Some(ChatTemplate::new(source).map_err(Failure::caller)?);
    }
    match given {
        Given::Ids(ids) => {
            refuse_chat_texts(file, "--ids")?;
            let mut tokens: Vec<_> = ids.iter().copied().map(TokenId).collect();
            let prefill = match &file.prompt.prefill {
                Some(prefill) => prefill_tokens(prefill, &loaded.text()?.tokenizer)?,
                None => Vec::new(),
            };
            let prefilled = prefill.len();
            tokens.extend(prefill);
            Ok(Prompt { text: None, tokens, prefilled, template: None, continues: true })
        }
        Given::Raw(text) => {
            refuse_chat_texts(file, "--raw")?;
            let tokenizer = &loaded.text()?.tokenizer;
            let mut tokens = tokenizer.encode(text, false, true).map_err(text_failure)?;
            let prefill = match &file.prompt.prefill {
                Some(prefill) => prefill_tokens(prefill, tokenizer)?,
                None => Vec::new(),
            };
            let prefilled = prefill.len();
            tokens.extend(prefill);
            let text = Some(text.clone());
            Ok(Prompt { text, tokens, prefilled, template: None, continues: true })
        }
        Given::Chat(message) => {
            if message.is_empty() {
                return Err(Failure::caller(anyhow::anyhow!(
                    "the prompt is empty: at least one character is needed"
                )));
            }
            let messages = ChatValue::from(vec![message_of("user", message)]);
            chat(Chat { messages, ..Chat::default() }, file, loaded.text()?)
        }
        Given::Messages(json) => {
            let chat_given = Chat::from_json(json).map_err(Failure::caller)?;
            if chat_given.messages.len().is_none_or(|count| count == 0) {
                return Err(Failure::caller(anyhow::anyhow!(
                    "there are no messages: at least one is needed"
                )));
            }
            chat(chat_given, file, loaded.text()?)
        }
    }
}

fn prefill_tokens(prefill: &str, tokenizer: &Tokenizer) -> Result<Vec<TokenId>, Failure> {
    tokenizer.encode(prefill, false, false).map_err(text_failure)
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

/// The prompt of a chat; the policy's system text goes first and its response prefill last.
fn chat(mut chat: Chat, file: &PolicyFile, text: &Text) -> Result<Prompt, Failure> {
    chat.now = chat.now.or(CivilTime::from_unix(Clock::start().start_unix_ms / 1_000));
    let mut messages: Vec<ChatValue> =
        chat.messages.try_iter().map(Iterator::collect).unwrap_or_default();
    if let Some(system) = &file.prompt.system {
        let first = messages.first().and_then(|message| message.get_attr("role").ok());
        if first.as_ref().and_then(ChatValue::as_str) == Some("system") {
            return Err(Failure::caller(anyhow::anyhow!(
                "the policy sets `prompt.system`, but the messages begin with a system message"
            )));
        }
        messages.insert(0, message_of("system", system));
    }
    if let Some(prefill) = &file.prompt.prefill {
        if chat.continue_final_message {
            return Err(Failure::caller(anyhow::anyhow!(
                "the policy sets `prompt.prefill`, but the messages end with an answer to continue"
            )));
        }
        messages.push(message_of("assistant", prefill));
        chat.continue_final_message = true;
    }
    chat.add_generation_prompt = !chat.continue_final_message;
    // The text that a record calls the prompt ends where the response prefill begins.
    let mut opening = Chat { add_generation_prompt: true, ..chat.clone() };
    opening.continue_final_message = false;
    chat.messages = ChatValue::from(messages.clone());
    if chat.continue_final_message {
        messages.pop();
    }
    opening.messages = ChatValue::from(messages);
    let rendered = text.render(&opening).map_err(text_failure)?.text;
    let tokens = text.chat(&chat).map_err(text_failure)?;
    let prefilled = text.prefilled(&chat, &tokens);
    let template = text.template.as_ref().map(|own| Template::new(own.source().to_owned()));
    let continues = prefilled > 0;
    Ok(Prompt { text: Some(rendered), tokens, prefilled, template, continues })
}

fn message_of(role: &str, content: &str) -> ChatValue {
    ChatValue::from_pairs([("role", role), ("content", content)])
}

fn text_failure(error: TextError) -> Failure {
    let is_callers_mistake = error.is_callers_mistake();
    Failure::of(error, is_callers_mistake)
}
