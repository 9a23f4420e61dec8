//! What can be wrong with a vocabulary, a template or the ids and messages given to them.

use std::path::PathBuf;

use causeway_weights::WeightsError;

/// A vocabulary that no tokenizer can be built on; the fault is the model file's.
#[derive(Debug, thiserror::Error)]
pub enum VocabularyError {
    #[error("the vocabulary has {count} tokens, must be between 1 and {limit}")]
    TokenCount { count: usize, limit: usize },
    #[error("the vocabulary has no {what}")]
    Missing { what: &'static str },
    #[error("the vocabulary has {count} {what} for {tokens} tokens")]
    Length { what: &'static str, count: usize, tokens: usize },
    #[error("token {token} is {bytes} bytes long, the limit is {limit}")]
    TokenLength { token: usize, bytes: usize, limit: usize },
    #[error("token {token} has the type {number}, known are 1 to 6")]
    TokenType { token: usize, number: i64 },
    #[error("token {token} has the score {score}, must be finite")]
    Score { token: usize, score: f32 },
    #[error("the {name} token has the id {id}, the vocabulary has {count} tokens")]
    SpecialId { name: &'static str, id: u32, count: usize },
    #[error("merge {index} (`{merge}`) is not two tokens of the vocabulary that make a third")]
    Merge { index: usize, merge: String },
    #[error(
        "tokenizer model `{model}` is not supported, known are `gpt2`, `llama`, `t5` and `bert`"
    )]
    Model { model: String },
    #[error(
        "`tokenizer.ggml.pre` is `{name}`, which is none of the {known} pre-tokenizers known here; \
         the model's folder with its `tokenizer.json` needs no such name"
    )]
    PreTokenizer { name: String, known: usize },
    #[error("`{part}` of `tokenizer.json` {fault}")]
    Part { part: String, fault: &'static str },
    #[error("`tokenizer.json` decodes by `{decoder}`, which is not supported")]
    Decoder { decoder: String },
}

/// A chat template that cannot be read, or that refuses what it is given.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    #[error("no thread can be started to render the chat template")]
    Thread { source: std::io::Error },
    /// The template's own refusal, in its own words.
    #[error("{message}")]
    Raised { message: String },
    #[error("the chat template cannot be read")]
    Syntax { source: minijinja::Error },
    #[error("the chat template fails on these messages")]
    Render { source: minijinja::Error },
    #[error("the chat template is {bytes} bytes long, the limit is {limit}")]
    Length { bytes: usize, limit: usize },
    #[error("the chat template has {count} {what}, the limit is {limit}")]
    Size { what: &'static str, count: usize, limit: usize },
    #[error("the final message, `{message}`, does not appear in the rendered chat")]
    FinalMessage { message: String },
    #[error("the final message has no text to continue")]
    FinalContent,
    #[error("continue_final_message and add_generation_prompt exclude each other")]
    Continued,
    #[error("the chat is not valid JSON")]
    Json { source: serde_json::Error },
    #[error("{what} must be {wanted}")]
    Shape { what: &'static str, wanted: &'static str },
    #[error("the chat template rewrites a message that spells the control token `{marker}`")]
    Untracked { marker: String },
}

/// A chat template that a model does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoTemplate {
    #[error("this model has no chat template")]
    None,
    #[error("this model has no chat template `{}`: it has `{}`", one_line(name), one_line(known))]
    Named { name: String, known: String },
}

impl NoTemplate {
    /// Always: another name, or a text without a chat, would do.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        true
    }
}

/// At most 1,000 characters, none of which ends a line: names come from files.
fn one_line(names: &str) -> String {
    let shown = names.chars().take(1_000);
    shown.map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Anything this room refuses.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    #[error(transparent)]
    Vocabulary(#[from] VocabularyError),
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error(transparent)]
    Weights(#[from] WeightsError),
    #[error("token id {id} is outside the vocabulary of {count} tokens")]
    TokenId { id: u32, count: usize },
    #[error(transparent)]
    NoTemplate(#[from] NoTemplate),
    #[error("`{}` cannot be read", .path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("`{}` is not valid JSON", .path.display())]
    Json { path: PathBuf, source: serde_json::Error },
    #[error("`{}` has no vocabulary: it holds no `tokenizer.json`", .folder.display())]
    NoTokenizer { folder: PathBuf },
    #[error("`{}` holds {bytes} bytes, the limit is {limit}", .path.display())]
    FileLength { path: PathBuf, bytes: u64, limit: u64 },
    #[error("`{}` cannot be used", .path.display())]
    TokenizerJson { path: PathBuf, source: JsonFault },
    #[error("the text is {bytes} bytes long, the limit is {limit}")]
    TextLength { bytes: usize, limit: usize },
    #[error("this text cannot be tokenised")]
    Encode { source: JsonFault },
}

/// What the `tokenizers` library says is wrong.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct JsonFault(pub(crate) Box<dyn std::error::Error + Send + Sync>);

impl TemplateError {
    /// Whether other messages would be accepted: a broken template is the model's fault.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        !matches!(
            self,
            Self::Thread { .. } | Self::Syntax { .. } | Self::Length { .. } | Self::Size { .. }
        )
    }
}

impl TextError {
    /// Whether the caller can put it right; everything else is the model's or the disk's fault.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        match self {
            Self::Template(error) => error.is_callers_mistake(),
            Self::TokenId { .. }
            | Self::NoTemplate(_)
            | Self::TextLength { .. }
            | Self::Encode { .. } => true,
            _ => false,
        }
    }
}
