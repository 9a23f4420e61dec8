//! `causeway template`: render messages through a chat template.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use causeway_text::{
    Chat, ChatValue, CivilTime, DEFAULT_TEMPLATE, Names, TOOL_TEMPLATE, Template, TemplateError,
    Text, TextError,
};
use serde_json::json;

use super::tokenize::{answer_lines, open};
use crate::failure::{Failure, Outcome};

/// Arguments of `causeway template`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("input").required(true)
    .args(["message", "messages", "json", "list"]).multiple(true))]
pub(crate) struct Args {
    /// Model name, .gguf file or folder whose template is used.
    #[arg(short, long, default_value = causeway_models::DEFAULT_MODEL)]
    model: String,
    /// A file that holds the template, in place of a model's.
    #[arg(long, conflicts_with = "model")]
    file: Option<PathBuf>,
    /// The model's template of this name [default: `tool_use` for chats with tools where there is
    /// one, else `default`].
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    chat_template: Option<String>,
    /// List the model's templates: the name, the bytes, and which chats it is for.
    #[arg(long, conflicts_with_all = ["message", "messages", "json", "file", "chat_template"])]
    list: bool,
    /// Read `{"messages": […], "tools": […], "add_generation_prompt": …}` from stdin, one a
    /// line, and write `{"text": …}` or `{"error": …}`.
    #[arg(long, conflicts_with_all = ["message", "messages"])]
    json: bool,
    /// One message, such as `user=Hello`; may be repeated.
    #[arg(long, value_name = "ROLE=CONTENT", conflicts_with = "messages")]
    message: Vec<String>,
    /// A JSON file with the same object as a line of `--json`, or only the list of messages.
    #[arg(long, value_name = "FILE")]
    messages: Option<PathBuf>,
    /// End with the header of an answer.
    #[arg(long, conflicts_with = "json")]
    add_generation_prompt: bool,
    /// End inside the last message, for an answer that goes on from it.
    #[arg(long, conflicts_with_all = ["json", "add_generation_prompt"])]
    continue_final_message: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    if args.list {
        return list(args);
    }
    let source = Source::new(args)?;
    let render = |mut chat: Chat| {
        chat.now = chat.now.or_else(now);
        source.render(&chat)
    };
    if args.json {
        return answer_lines(|line| Ok(json!({ "text": render(Chat::from_json(line)?)? })));
    }
    let mut chat = chat(args)?;
    chat.add_generation_prompt |= args.add_generation_prompt;
    chat.continue_final_message |= args.continue_final_message;
    let rendered = render(chat).map_err(super::tokenize::failure)?;
    writeln!(std::io::stdout().lock(), "{rendered}")?;
    Ok(())
}

/// Prints the names of a model's templates.
fn list(args: &Args) -> Outcome {
    let mut out = std::io::stdout().lock();
    for (name, source) in open(&args.model)?.templates().iter() {
        let used = match name {
            DEFAULT_TEMPLATE => "every chat",
            TOOL_TEMPLATE => "chats with tools",
            _ => "--chat-template",
        };
        writeln!(out, "{}\t{} bytes\t{used}", name.escape_debug(), source.len())?;
    }
    Ok(())
}

/// Where the template of a chat comes from.
enum Source {
    /// One for all.
    Chosen(Box<Template>, Names),
    /// The model's, by what the chat has.
    Model(Box<Text>),
}

impl Source {
    fn new(args: &Args) -> Result<Self, Failure> {
        if let Some(path) = &args.file {
            let template = Template::new(&read(path)?);
            let template = template.with_context(|| format!("`{}`", path.display()));
            return Ok(Self::Chosen(Box::new(template.map_err(Failure::caller)?), Names::new()));
        }
        let text = open(&args.model)?;
        if let Some(name) = &args.chat_template {
            let source = text.templates().named(name).map_err(Failure::caller)?;
            let template = Template::new(source).map_err(failure)?;
            return Ok(Self::Chosen(Box::new(template), text.tokenizer.names()));
        }
        if text.templates().is_empty() {
            let sentence = anyhow::anyhow!("the model `{}` has no chat template", args.model);
            return Err(Failure::caller(sentence));
        }
        Ok(Self::Model(Box::new(text)))
    }

    fn render(&self, chat: &Chat) -> Result<String, TextError> {
        match self {
            Self::Chosen(template, names) => Ok(template.render(chat, names)?),
            Self::Model(text) => {
                Ok(text.template_of(chat)?.render(chat, &text.tokenizer.names())?)
            }
        }
    }
}

/// The chat of `--messages` or of every `--message`.
fn chat(args: &Args) -> Result<Chat, Failure> {
    if let Some(path) = &args.messages {
        return Chat::from_json(&read(path)?).map_err(failure);
    }
    let messages = args.message.iter().map(|message| {
        let (role, content) = message.split_once('=').with_context(|| {
            format!("the message `{message}` is not of the form `role=content`")
        })?;
        Ok(ChatValue::from_pairs([("role", role), ("content", content)]))
    });
    let messages: anyhow::Result<Vec<ChatValue>> = messages.collect();
    let messages = messages.map_err(Failure::caller)?.into();
    Ok(Chat { messages, ..Chat::default() })
}

fn failure(error: TemplateError) -> Failure {
    let is_callers_mistake = error.is_callers_mistake();
    Failure::of(error, is_callers_mistake)
}

fn read(path: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path);
    text.with_context(|| format!("`{}` cannot be read", path.display())).map_err(Failure::caller)
}

/// The time in UTC, for `strftime_now`.
fn now() -> Option<CivilTime> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    CivilTime::from_unix(since.as_secs())
}
