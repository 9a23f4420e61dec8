//! `causeway template`: render messages through a chat template.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use causeway_text::{Chat, ChatValue, CivilTime, Names, Template, TemplateError};
use serde_json::json;

use super::tokenize::{answer_lines, open};
use crate::failure::{Failure, Outcome};

/// Arguments of `causeway template`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("input").required(true)
    .args(["message", "messages", "json"]).multiple(true))]
pub(crate) struct Args {
    /// Model name, .gguf file or folder whose template is used.
    #[arg(short, long, default_value = causeway_models::DEFAULT_MODEL)]
    model: String,
    /// A file that holds the template, in place of a model's.
    #[arg(long, conflicts_with = "model")]
    file: Option<PathBuf>,
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
    let (template, names) = template(args)?;
    let render = |mut chat: Chat| {
        chat.now = chat.now.or_else(now);
        template.render(&chat, &names)
    };
    if args.json {
        return answer_lines(|line| Ok(json!({ "text": render(Chat::from_json(line)?)? })));
    }
    let mut chat = chat(args)?;
    chat.add_generation_prompt |= args.add_generation_prompt;
    chat.continue_final_message |= args.continue_final_message;
    let rendered = render(chat).map_err(failure)?;
    writeln!(std::io::stdout().lock(), "{rendered}")?;
    Ok(())
}

/// The template and the special tokens it may print.
fn template(args: &Args) -> Result<(Template, Names), Failure> {
    if let Some(path) = &args.file {
        let template = Template::new(&read(path)?);
        let template = template.with_context(|| format!("`{}`", path.display()));
        return Ok((template.map_err(Failure::caller)?, Names::new()));
    }
    let text = open(&args.model)?;
    let names = text.tokenizer.names();
    let template = text.template.ok_or_else(|| {
        Failure::caller(anyhow::anyhow!("the model `{}` has no chat template", args.model))
    })?;
    Ok((template, names))
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
