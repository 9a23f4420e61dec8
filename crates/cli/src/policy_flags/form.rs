//! What the whole answer must be, as flags.

use std::path::PathBuf;

use causeway_policy::{Form, PolicyFile, Whitespace};

use crate::failure::Failure;
use crate::policy_choice;

/// At most one of the first five is given.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Policy: form of the answer")]
pub(super) struct FormFlags {
    /// The answer is JSON that the schema in FILE accepts
    #[arg(long, value_name = "FILE", group = "form")]
    schema: Option<PathBuf>,
    /// The answer is a JSON object
    #[arg(long, group = "form")]
    json_object: bool,
    /// The answer matches a regular expression from end to end
    #[arg(long, value_name = "REGEX", group = "form")]
    regex: Option<String>,
    /// The answer follows the Lark grammar in FILE
    #[arg(long, value_name = "FILE", group = "form")]
    grammar: Option<PathBuf>,
    /// The answer is this text, or another one given so; may be given often
    #[arg(long, value_name = "TEXT", group = "form")]
    choice: Vec<String>,
    /// White space between the words of JSON: compact or flexible [default: compact]
    #[arg(long, value_name = "KIND", value_parser = whitespace)]
    whitespace: Option<Whitespace>,
}

impl FormFlags {
    /// Puts the form given in place of the file's.
    pub(super) fn apply(&self, file: &mut PolicyFile) -> Result<(), Failure> {
        let Self { schema, json_object, regex, grammar, choice, whitespace } = self;
        let to = &mut file.constraints.form;
        let read = |path: &PathBuf| policy_choice::text(path, "file");
        let form = Form {
            schema: schema.as_ref().map(read).transpose()?,
            json_object: *json_object,
            regex: regex.clone(),
            grammar: grammar.as_ref().map(read).transpose()?,
            choice: choice.clone(),
            tools: None,
            whitespace: whitespace.unwrap_or(to.whitespace),
        };
        let is_given =
            Form { whitespace: Whitespace::default(), ..form.clone() } != Form::default();
        if is_given {
            *to = form;
        } else {
            to.whitespace = form.whitespace;
        }
        Ok(())
    }
}

fn whitespace(text: &str) -> Result<Whitespace, String> {
    super::one_of(text, &[("compact", Whitespace::Compact), ("flexible", Whitespace::Flexible)])
}
