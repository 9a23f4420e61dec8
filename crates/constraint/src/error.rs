//! What can be wrong with a vocabulary, a constraint, or a token.

use causeway_request::TokenId;

use crate::schema::SchemaError;

/// Why a vocabulary cannot be read for constraints.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    #[error("the model has {rows} rows of logits for a vocabulary of {tokens} tokens")]
    Rows { rows: usize, tokens: usize },
    #[error("the vocabulary has no end token, so a constrained answer could not end")]
    NoEnd,
    #[error("the end token {end} is outside the {rows} rows of logits")]
    End { end: u32, rows: usize },
    #[error("the vocabulary's tokens have {bytes} bytes together, the limit is {limit}")]
    Bytes { bytes: usize, limit: usize },
    #[error("the vocabulary of {tokens} tokens does not fit into the trie of constraints")]
    Trie { tokens: usize },
}

/// Why a constraint cannot be compiled.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ConstraintError {
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The grammar engine's refusal of something that is no schema; `reason` is its own words.
    #[error("the {what} cannot be compiled: {reason}")]
    Grammar { what: &'static str, reason: String },
    #[error("the {what} has {bytes} bytes, the limit is {limit}")]
    Bytes { what: &'static str, bytes: usize, limit: usize },
    #[error("the list has {count} choices, between 1 and {limit} are allowed")]
    Choices { count: usize, limit: usize },
    #[error("choice {index} is empty, and an empty answer cannot be chosen")]
    EmptyChoice { index: usize },
    #[error("the grammar uses `{word}`, which is not supported")]
    Unsupported { word: &'static str },
    #[error("the system has no thread to compile the constraint on")]
    NoThread,
}

/// Why a run under a constraint cannot go on; it never goes on without it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MatchError {
    #[error("token {token} is not what the constraint allows here")]
    NotAllowed { token: TokenId },
    #[error("the constraint is too costly to follow here: {reason}")]
    TooCostly { reason: String },
    #[error("no token of the vocabulary can continue what the constraint asks for")]
    NoToken,
}

impl EnvironmentError {
    /// A vocabulary is the model file's, not the caller's.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        false
    }
}

impl ConstraintError {
    /// Whether another constraint would have been compiled.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        !matches!(self, Self::NoThread)
    }

    /// Where in the schema the fault lies, as a JSON pointer in a URI fragment, if it is one.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Schema(error) => Some(&error.path),
            _ => None,
        }
    }
}

impl MatchError {
    /// Whether another constraint would have been followed.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        true
    }
}
