//! Chat templates: messages to the text a model was trained on, as `transformers` renders them.

mod civil_time;
mod filters;
mod guard;
mod python;
mod rewrite;

use std::ops::Range;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};

pub use self::civil_time::CivilTime;
use self::guard::{Depth, Guard};
use crate::error::TemplateError;

/// Most bytes of a template's source; the longest in use have about 30,000.
pub const TEMPLATE_BYTES_MAX: usize = 1 << 20;
/// Steps and bytes that one rendering may use; a chat of a million characters uses about as many.
const FUEL: u64 = 200_000_000;
const NAME: &str = "chat_template";
/// Length, in characters, of the mark behind a message that is to be continued.
const TAG_CHARS: usize = 26;

/// What is rendered: messages and what stands beside them, as the request has them.
#[derive(Debug, Clone, Default)]
pub struct Chat {
    /// A list of mappings, each with at least `role`.
    pub messages: Value,
    /// A list of mappings, or nothing.
    pub tools: Option<Value>,
    /// A list of mappings, or nothing.
    pub documents: Option<Value>,
    /// End with the header of an answer.
    pub add_generation_prompt: bool,
    /// End inside the last message, so that the answer goes on from it (response prefill).
    pub continue_final_message: bool,
    /// Further variables, such as `enable_thinking`.
    pub variables: Vec<(String, Value)>,
    /// What `strftime_now` says; without it templates find no such function.
    pub now: Option<CivilTime>,
}

/// The tokens a template may print by name: (`bos_token`, its spelling).
pub type Names = Vec<(&'static str, String)>;

/// A rendered chat and the byte ranges in it that a user wrote, ascending and apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    pub text: String,
    pub users: Vec<Range<usize>>,
}

/// A chat template, parsed.
#[derive(Debug)]
pub struct Template {
    environment: Environment<'static>,
    /// String literals of the source, which the template may look for in messages.
    literals: Vec<String>,
    source: String,
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    /// A template that is too long or not Jinja.
    pub fn new(source: &str) -> Result<Self, TemplateError> {
        if source.len() > TEMPLATE_BYTES_MAX {
            let (bytes, limit) = (source.len(), TEMPLATE_BYTES_MAX);
            return Err(TemplateError::Length { bytes, limit });
        }
        let rewritten = rewrite::rewrite(source);
        let mut environment = Environment::new();
        environment.set_syntax(syntax());
        environment.set_undefined_behavior(UndefinedBehavior::Lenient);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_fuel(Some(FUEL));
        environment.set_debug(false);
        filters::install(&mut environment);
        environment
            .add_template_owned(NAME, rewritten.source)
            .map_err(|source| TemplateError::Syntax { source })?;
        Ok(Self { environment, literals: rewritten.literals, source: source.to_owned() })
    }

    /// The template as it was given.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Renders a chat to text; nothing in it says who wrote what.
    ///
    /// # Errors
    /// The template's own refusal with its message, or why these messages cannot be rendered.
    pub fn render(&self, chat: &Chat, names: &Names) -> Result<String, TemplateError> {
        check(chat)?;
        self.render_checked(chat, names, 'C')
    }

    /// Renders a chat and finds out which parts of it a user wrote.
    ///
    /// `markers` are the spellings of the control tokens; the ranges that come back are exact
    /// where a control token could stand, see `docs/text.md`.
    ///
    /// # Errors
    /// As `render`, and a template that rewrites a message in which a control token is spelled.
    pub fn render_guarded<'m>(
        &self,
        chat: &Chat,
        names: &Names,
        markers: impl IntoIterator<Item = &'m str>,
    ) -> Result<Rendered, TemplateError> {
        check(chat)?;
        let markers: Vec<&str> = markers.into_iter().collect();
        let guard = Guard::new(chat, names, &self.source, &self.literals, &markers);
        let tag = guard.tag();
        let text = self.render_checked(chat, names, tag)?;
        for depth in [Depth::EveryLetter, Depth::ControlTokens, Depth::StandIns] {
            let marked = guard.mark(chat, depth);
            if let Ok(marked) = self.render_checked(&marked, names, tag) {
                let rendered = guard.unmark(&marked);
                if rendered.text == text {
                    return Ok(rendered);
                }
            }
        }
        let marker = guard.spelled(chat).unwrap_or_default().to_owned();
        Err(TemplateError::Untracked { marker })
    }

    fn render_checked(
        &self,
        chat: &Chat,
        names: &Names,
        tag: char,
    ) -> Result<String, TemplateError> {
        if !chat.continue_final_message {
            return self.render_messages(chat, &chat.messages, names);
        }
        let tag: String = std::iter::repeat_n(tag, TAG_CHARS).collect();
        let (messages, last) = continue_last(&chat.messages, &format!("{tag} "))?;
        let mut text = self.render_messages(chat, &messages, names)?;
        let found = text.rfind(&tag).filter(|_| text.contains(last.trim()));
        let Some(end) = found else {
            let message = last.chars().take(80).collect();
            return Err(TemplateError::FinalMessage { message });
        };
        // The tag ends in a space: a template that keeps it keeps the message's spaces too.
        let keeps_spaces = text[end + tag.len()..].starts_with(' ');
        text.truncate(end);
        if !keeps_spaces {
            text.truncate(text.trim_end().len());
        }
        Ok(text)
    }

    fn render_messages(
        &self,
        chat: &Chat,
        messages: &Value,
        names: &Names,
    ) -> Result<String, TemplateError> {
        let mut variables: Vec<(&str, Value)> = vec![
            ("messages", messages.clone()),
            ("tools", chat.tools.clone().unwrap_or_else(none)),
            ("documents", chat.documents.clone().unwrap_or_else(none)),
            ("add_generation_prompt", Value::from(chat.add_generation_prompt)),
        ];
        variables.extend(names.iter().map(|(name, text)| (*name, Value::from(text.as_str()))));
        if let Some(now) = chat.now {
            variables.push(("strftime_now", filters::strftime_now(now)));
        }
        let given = chat.variables.iter();
        variables.extend(given.map(|(name, value)| (name.as_str(), value.clone())));
        let template = self.environment.get_template(NAME).expect("added when it was parsed");
        template.render(Value::from_pairs(variables)).map_err(raised)
    }
}

/// Blocks alone on a line leave no line behind, as transformers sets Jinja up.
fn syntax() -> SyntaxConfig {
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(false);
    syntax.build().expect("the standard delimiters are valid")
}

fn none() -> Value {
    Value::from(())
}

/// The message of `raise_exception`, wherever in the chain of errors it stands.
fn raised(error: minijinja::Error) -> TemplateError {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(inner) = source {
        if let Some(raised) = inner.downcast_ref::<filters::Raised>() {
            return TemplateError::Raised { message: raised.0.clone() };
        }
        source = inner.source();
    }
    TemplateError::Render { source: error }
}

/// Refuses what no template is asked to render.
fn check(chat: &Chat) -> Result<(), TemplateError> {
    let shape = |what, wanted| TemplateError::Shape { what, wanted };
    if !python::is_list(&chat.messages) {
        return Err(shape("messages", "a list of objects"));
    }
    if chat.messages.try_iter().is_ok_and(|mut all| all.any(|message| !python::is_map(&message))) {
        return Err(shape("each message", "an object"));
    }
    for (what, list) in [("tools", &chat.tools), ("documents", &chat.documents)] {
        if let Some(list) = list
            && !list.is_none()
            && !python::is_list(list)
        {
            return Err(shape(what, "a list"));
        }
    }
    if chat.continue_final_message && chat.add_generation_prompt {
        return Err(TemplateError::Continued);
    }
    Ok(())
}

/// The messages with `tag` behind the last one's text, and that text.
fn continue_last(messages: &Value, tag: &str) -> Result<(Value, String), TemplateError> {
    let mut list: Vec<Value> = messages.try_iter().map(Iterator::collect).unwrap_or_default();
    let message = list.pop().ok_or(TemplateError::FinalContent)?;
    let content = message.get_attr("content").unwrap_or_default();
    let (content, text) = if let Some(text) = content.as_str() {
        (Value::from(format!("{text}{tag}")), text.to_owned())
    } else {
        let mut parts: Vec<Value> = content.try_iter().map(Iterator::collect).unwrap_or_default();
        let found = parts.iter_mut().rev().find_map(|part| {
            let text = part.get_attr("text").ok()?.as_str()?.to_owned();
            *part = python::with_entry(part, "text", Value::from(format!("{text}{tag}")));
            Some(text)
        });
        (Value::from(parts), found.ok_or(TemplateError::FinalContent)?)
    };
    list.push(python::with_entry(&message, "content", content));
    Ok((Value::from(list), text))
}
