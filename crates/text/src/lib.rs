//! Messages to tokens and tokens to text.
//!
//! It may not know logits, a model, sockets or a clock: the time a template prints is an argument.
//! messages → template → guarded text → tokens; tokens → bytes → whole characters → stop strings.

mod answer;
mod byte_level;
mod bytes;
mod detokenizer;
mod error;
mod export;
mod find;
mod gguf;
mod json;
mod markers;
mod merge;
mod pieces;
mod reasoning;
mod sentence_piece;
mod split;
mod stop;
mod template;
mod templates;
mod text;
mod thought;
mod tokenizer;
#[cfg(test)]
mod toy;
mod vocabulary;

pub use answer::{Answer, AnswerPart, AnswerRules};
pub use detokenizer::{DetokenizeOptions, Detokenizer};
pub use error::{JsonFault, NoTemplate, TemplateError, TextError, VocabularyError};
pub use export::{ExportError, gguf_keys};
pub use reasoning::{Parts, ReasoningSplitter};
pub use stop::{Emitted, STOP_BYTES_MAX, STOPS_MAX, StopError, StopMatcher};
pub use template::{
    BRANCHES_MAX, Chat, CivilTime, Names, Rendered, TAG_WORDS_MAX, TEMPLATE_BYTES_MAX, Template,
};
pub use templates::{DEFAULT_TEMPLATE, TOOL_TEMPLATE, Templates};
pub use text::Text;
pub use thought::Thought;
pub use tokenizer::{TEXT_BYTES_MAX, Tokenizer};
pub use vocabulary::{
    MARKER_BYTES_MAX, SpecialIds, TOKEN_BYTES_MAX, TOKENS_MAX, TokenType, Vocabulary,
    VocabularyKind,
};

/// A value of a chat: what JSON can say, in the order it says it.
pub use minijinja::value::Value as ChatValue;
