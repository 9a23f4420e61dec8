//! From what the caller gave to the tokens of a prompt.

use causeway_ledger::Template;
use causeway_policy::PolicyFile;
use causeway_request::TokenId;
use causeway_text::{Chat, ChatValue, CivilTime, Template as ChatTemplate, Text, Tokenizer};

use crate::about::About;
use crate::error::{PromptError, SessionError};

/// What the caller gave.
#[derive(Debug, Clone)]
pub enum Given {
    /// Token ids in place of a prompt.
    Ids(Vec<u32>),
    /// Text that the answer goes on from.
    Raw(String),
    /// A user's message to be put through the template.
    Chat(String),
    /// Messages, and what stands beside them.
    Messages(Chat),
}

/// A prompt as tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// The text after the template.
    pub text: Option<String>,
    pub tokens: Vec<TokenId>,
    /// How many of `tokens`, at their end, are response prefill.
    pub prefilled: usize,
    pub template: Option<Template>,
}

/// The text side with the policy's template in place of the model's own, where it has one.
///
/// # Errors
/// A template that cannot be read.
pub fn with_template(text: Text, file: &PolicyFile) -> Result<Text, SessionError> {
    let Some(source) = &file.prompt.template else { return Ok(text) };
    let unread = |source| PromptError::Template { source: Box::new(source) };
    Ok(text.with_template(ChatTemplate::new(source).map_err(unread)?))
}

/// Makes the prompt, with the policy's system text and response prefill; its template is in
/// `text` already. `now` is the date that a template may print.
///
/// # Errors
/// A prompt that is empty or at odds with the policy, or a template that refuses it.
pub fn prompt(
    given: Given,
    file: &PolicyFile,
    about: &About,
    text: Option<&Text>,
    now: Option<CivilTime>,
) -> Result<Prompt, SessionError> {
    let with_text = || {
        let path = || about.path.clone();
        text.ok_or_else(|| SessionError::from(PromptError::NoTokenizer { path: path() }))
    };
    match given {
        Given::Ids(ids) => {
            refuse_chat_texts(file)?;
            let mut tokens: Vec<_> = ids.into_iter().map(TokenId).collect();
            let prefill = match &file.prompt.prefill {
                Some(prefill) => prefill_tokens(prefill, &with_text()?.tokenizer)?,
                None => Vec::new(),
            };
            let prefilled = prefill.len();
            tokens.extend(prefill);
            Ok(Prompt { text: None, tokens, prefilled, template: None })
        }
        Given::Raw(raw) => {
            refuse_chat_texts(file)?;
            let tokenizer = &with_text()?.tokenizer;
            let mut tokens = tokenizer.encode(&raw, false, true)?;
            let prefill = match &file.prompt.prefill {
                Some(prefill) => prefill_tokens(prefill, tokenizer)?,
                None => Vec::new(),
            };
            let prefilled = prefill.len();
            tokens.extend(prefill);
            Ok(Prompt { text: Some(raw), tokens, prefilled, template: None })
        }
        Given::Chat(message) => {
            if message.is_empty() {
                return Err(PromptError::Empty.into());
            }
            let messages = ChatValue::from(vec![message_of("user", &message)]);
            chat(Chat { messages, now, ..Chat::default() }, file, with_text()?)
        }
        Given::Messages(mut given) => {
            if given.messages.len().is_none_or(|count| count == 0) {
                return Err(PromptError::NoMessages.into());
            }
            given.now = given.now.or(now);
            chat(given, file, with_text()?)
        }
    }
}

fn prefill_tokens(prefill: &str, tokenizer: &Tokenizer) -> Result<Vec<TokenId>, SessionError> {
    Ok(tokenizer.encode(prefill, false, false)?)
}

fn refuse_chat_texts(file: &PolicyFile) -> Result<(), PromptError> {
    for (field, is_set) in [
        ("prompt.template", file.prompt.template.is_some()),
        ("prompt.system", file.prompt.system.is_some()),
    ] {
        if is_set {
            return Err(PromptError::NoChat { field });
        }
    }
    Ok(())
}

/// The prompt of a chat; the policy's system text goes first and its response prefill last.
fn chat(mut chat: Chat, file: &PolicyFile, text: &Text) -> Result<Prompt, SessionError> {
    let mut messages: Vec<ChatValue> =
        chat.messages.try_iter().map(Iterator::collect).unwrap_or_default();
    if let Some(system) = &file.prompt.system {
        let first = messages.first().and_then(|message| message.get_attr("role").ok());
        if first.as_ref().and_then(ChatValue::as_str) == Some("system") {
            return Err(PromptError::TwoSystems.into());
        }
        messages.insert(0, message_of("system", system));
    }
    if let Some(prefill) = &file.prompt.prefill {
        if chat.continue_final_message {
            return Err(PromptError::TwoPrefills.into());
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
    let rendered = text.render(&opening)?.text;
    let tokens = text.chat(&chat)?;
    let prefilled = text.prefilled(&chat, &tokens);
    let template = Some(Template::new(text.template_of(&chat)?.source().to_owned()));
    Ok(Prompt { text: Some(rendered), tokens, prefilled, template })
}

/// One message with a role and a text.
#[must_use]
pub fn message_of(role: &str, content: &str) -> ChatValue {
    ChatValue::from_pairs([("role", role), ("content", content)])
}

#[cfg(test)]
mod tests;
