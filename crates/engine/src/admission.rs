//! Which requests the engine takes, and why not the others.

use causeway_request::RequestId;

use crate::Submission;

/// Why a request was not taken; nothing of it was kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the prompt is empty: at least one token is needed")]
    EmptyPrompt,
    #[error(
        "prompt ({tokens} tokens) leaves no room for an answer: \
         the context limit is {context_len} tokens"
    )]
    PromptTooLong { tokens: usize, context_len: usize },
    #[error("token {token} is outside the vocabulary, whose size is {vocab_size}")]
    TokenOutside { token: u32, vocab_size: usize },
    #[error("max_tokens is 0, the least is 1")]
    NothingToGenerate,
    #[error("the response prefill has {prefilled} tokens, the whole prompt {tokens}")]
    PrefillTooLong { prefilled: usize, tokens: usize },
    #[error("the policy is for a vocabulary of {policy} tokens, the model has {model}")]
    OtherVocabulary { policy: usize, model: usize },
    #[error(
        "the queue is full: {waiting} requests wait, {came} more came, the limit is {queue_max}"
    )]
    QueueFull { waiting: usize, came: usize, queue_max: usize },
    #[error("request {id} is here already")]
    Duplicate { id: RequestId },
}

impl Refusal {
    /// All but a full queue are.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        !matches!(self, Self::QueueFull { .. })
    }
}

/// Checks one request against the model's sizes.
pub(crate) fn check(
    submission: &Submission,
    vocab_size: usize,
    context_len: usize,
) -> Result<(), Refusal> {
    let Submission { request, policy, .. } = submission;
    if policy.vocab_size() != vocab_size {
        return Err(Refusal::OtherVocabulary { policy: policy.vocab_size(), model: vocab_size });
    }
    let (tokens, prefilled) = (request.tokens.len(), request.prefilled);
    if tokens == 0 {
        return Err(Refusal::EmptyPrompt);
    }
    if prefilled >= tokens && prefilled > 0 {
        return Err(Refusal::PrefillTooLong { prefilled, tokens });
    }
    if request.tokens_max == 0 {
        return Err(Refusal::NothingToGenerate);
    }
    if tokens >= context_len {
        return Err(Refusal::PromptTooLong { tokens, context_len });
    }
    match request.tokens.iter().find(|token| token.index() >= vocab_size) {
        Some(token) => Err(Refusal::TokenOutside { token: token.0, vocab_size }),
        None => Ok(()),
    }
}
