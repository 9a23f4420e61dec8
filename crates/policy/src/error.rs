//! Why no token could be chosen, and why a policy does not fit a model.

use causeway_request::TokenId;
use thiserror::Error;

use crate::file::Problems;

/// Why a policy does not fit a model's vocabulary.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum PolicyError {
    /// The file itself breaks its own rules.
    #[error(transparent)]
    File(#[from] Problems),
    /// A field names a token that the model does not have.
    #[error("`{field}` names token {token}, but the vocabulary has {vocab_size} tokens")]
    TokenOutside { field: &'static str, token: TokenId, vocab_size: usize },
    /// A model without tokens.
    #[error("the vocabulary has {vocab_size} tokens, but must have 1 to 4,294,967,295")]
    VocabSize { vocab_size: usize },
}

impl PolicyError {
    /// Always: the policy is the caller's.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        true
    }
}

/// Why a step has no token.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ChooseError {
    /// A logit is not a number.
    #[error("the logit of token {token} at step {step} is not a number")]
    NotANumber { step: u32, token: TokenId },
    /// A logit is plus infinity, or beyond what `f32` holds; minus infinity is a mask and legal.
    #[error(
        "the logit of token {token} at step {step} is {value}, but must be within ±3.4e38 (or -inf)"
    )]
    Infinite { step: u32, token: TokenId, value: f64 },
    /// Every logit came in as minus infinity.
    #[error("every one of the {vocab_size} logits at step {step} is -inf: there is no token left")]
    NothingGiven { step: u32, vocab_size: usize },
    /// The policy's own constraints leave nothing.
    #[error("`{stage}` leaves no token at step {step}")]
    NothingLeft { step: u32, stage: &'static str },
    /// What holds the answer to its form cannot go on.
    #[error("{reason} (step {step})")]
    Guide { step: u32, reason: String },
    /// The row has another length than the vocabulary.
    #[error("the row has {found} logits, but the vocabulary has {vocab_size} tokens")]
    RowLength { found: usize, vocab_size: usize },
    /// The grammar's mask has another length than the vocabulary.
    #[error("the token mask is for {found} tokens, but the vocabulary has {vocab_size}")]
    MaskLength { found: usize, vocab_size: usize },
    /// A token of the context is not in the vocabulary.
    #[error("token {token} of the context is outside the vocabulary of {vocab_size} tokens")]
    TokenOutside { token: TokenId, vocab_size: usize },
    /// The prompt is said to be longer than the context.
    #[error("`prompt_tokens` is {prompt_tokens}, but the context has {tokens} tokens")]
    PromptTokens { prompt_tokens: usize, tokens: usize },
    /// A probability is outside 0 to 1.
    #[error("the probability of token {token} is {value}, but must be 0 to 1")]
    Probability { token: TokenId, value: f64 },
    /// The probabilities do not sum to one.
    #[error("the probabilities sum to {sum}, but must sum to 1 within 0.0001")]
    ProbabilitySum { sum: f64 },
}

impl ChooseError {
    /// Whether the caller asked for something impossible, rather than the model failing.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        !matches!(self, Self::NotANumber { .. } | Self::Infinite { .. } | Self::NothingGiven { .. })
    }
}
