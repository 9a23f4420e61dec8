//! Chat templates: messages to the text a model was trained on, as `transformers` renders them.

mod chat;
mod civil_time;
mod filters;
mod guard;
mod python;
mod rewrite;

use std::ops::Range;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};

pub use self::chat::Chat;
use self::chat::continue_last;
pub use self::civil_time::CivilTime;
use self::guard::{Depth, Guard};
use crate::error::TemplateError;

/// Most bytes of a template's source; the longest in use have about 30,000.
pub const TEMPLATE_BYTES_MAX: usize = 1 << 20;
/// Most words and signs of one tag: minijinja's parser and compiler call themselves for each link
/// of a chain such as `a ~ b ~ c`, and 4,800 links fill a stack of 2 MiB.
pub const TAG_WORDS_MAX: usize = 2000;
/// Most `elif` tags of a template, for the same reason: 1,800 in a row fill such a stack.
pub const BRANCHES_MAX: usize = 500;
/// Steps of one rendering, in minijinja's fuel; a turn of a chat takes about a hundred.
const FUEL: u64 = 2_000_000;
/// Stack of a rendering: what so many steps can nest must also be dropped again.
const STACK_BYTES: usize = 256 << 20;
const NAME: &str = "chat_template";
/// Length, in characters, of the mark behind a message that is to be continued.
const TAG_CHARS: usize = 26;

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
        Self::with_fuel(source, FUEL)
    }

    fn with_fuel(source: &str, fuel: u64) -> Result<Self, TemplateError> {
        if source.len() > TEMPLATE_BYTES_MAX {
            let (bytes, limit) = (source.len(), TEMPLATE_BYTES_MAX);
            return Err(TemplateError::Length { bytes, limit });
        }
        let rewritten = rewrite::rewrite(source);
        for (what, count, limit) in [
            ("words in one tag", rewritten.tag_words, TAG_WORDS_MAX),
            ("`elif` tags", rewritten.branches, BRANCHES_MAX),
        ] {
            if count > limit {
                return Err(TemplateError::Size { what, count, limit });
            }
        }
        let mut environment = Environment::new();
        environment.set_syntax(syntax());
        environment.set_undefined_behavior(UndefinedBehavior::Lenient);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_fuel(Some(fuel));
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
        chat.check()?;
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
        chat.check()?;
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
        on_deep_stack(|| template.render(Value::from_pairs(variables)).map_err(raised))?
    }
}

/// Runs `work` on a thread whose stack holds whatever a template can nest.
fn on_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, TemplateError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let thread = thread.spawn_scoped(scope, work);
        let thread = thread.map_err(|source| TemplateError::Thread { source })?;
        thread.join().map_err(|panic| std::panic::resume_unwind(panic))
    })
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

#[cfg(test)]
mod tests;
