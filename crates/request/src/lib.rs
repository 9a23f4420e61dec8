//! The words every room shares: ids, requests, step outputs and stop reasons.
//!
//! It knows nothing of loops or of I/O, and nothing here computes.
//! A request goes in as `Request`; each decoding step comes out as one `StepOutput`.

mod ids;
mod output;
mod priority;
mod stop;

pub use ids::{Position, RequestId, TokenId};
pub use output::{Cause, Choice, Digest, StepOutput};
pub use priority::Priority;
pub use stop::{Canceller, StopReason};

/// One request, its prompt already tokens and its policy's budget already numbers.
///
/// The policy itself travels beside it: a request says how much, the policy says which.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub id: RequestId,
    /// Every known token: the prompt, then the response prefill where there is one.
    pub tokens: Vec<TokenId>,
    /// How many of `tokens`, at their end, are response prefill: prompt to the bill, generation
    /// prefix to the policy.
    pub prefilled: usize,
    /// Most tokens to generate, the response prefill not counted; at least 1.
    pub tokens_max: usize,
    /// Tokens that end the run when chosen; the token itself is kept in the record.
    pub stop_tokens: Vec<TokenId>,
    /// The model's own end-of-text tokens; empty where the caller ignores them.
    pub eos_tokens: Vec<TokenId>,
    pub seed: u64,
    /// Which of the `n` parallel choices this is; part of the key of every draw.
    pub choice: u32,
}
