//! What one decoding step says of itself.

use crate::{RequestId, StopReason, TokenId};

/// Why a token stands where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Picked by the policy among at least two tokens that the constraints allowed.
    Chosen,
    /// The only token the policy allowed: nothing was decided.
    Forced,
    /// Laid down before the run began, by a response prefill.
    Prefilled,
}

/// 128-bit digest of one row of logits, over the bits of its `f32` values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(pub u128);

/// One token and the reasons for it, as the policy gives them.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    pub token: TokenId,
    /// Natural logarithm of the token's probability under the raw logits.
    pub logprob: f64,
    /// Place under the raw logits, 1 for the best; ties go to the lower token id.
    pub rank: u32,
    /// Probability under the policy, among the survivors.
    pub probability: f64,
    /// How many tokens the policy left in play.
    pub survivors: u32,
    /// Entropy of the raw distribution, in nats.
    pub entropy: f64,
    /// The raw best token, where it is another than the chosen one.
    pub raw_best: TokenId,
    /// The stage, or the field that laid another token, that removed the raw best one.
    pub removed_by: Option<&'static str>,
    /// The survivor with the next highest policy probability, and that probability.
    pub runner_up: Option<(TokenId, f64)>,
    /// Whether there was a choice at all.
    pub cause: Cause,
    /// The policy field that laid the token, where none of the constraints forced it.
    pub forced_by: Option<&'static str>,
}

/// One decoding step of one request.
#[derive(Debug, Clone, PartialEq)]
pub struct StepOutput {
    pub request: RequestId,
    /// Index of the token in the generation prefix, forced tokens included.
    pub step: u32,
    pub choice: Choice,
    /// Which forward pass of the engine computed the logits, from 0.
    pub pass: u64,
    /// Rows (positions of all requests) that this pass computed.
    pub rows: u32,
    /// Nanoseconds from the request's arrival to this step.
    pub since_arrival_ns: u64,
    pub digest: Digest,
    /// The best tokens under the raw logits with their log-probabilities, best first: as many as
    /// were asked for, and none where nobody asked.
    pub top: Vec<(TokenId, f64)>,
    /// Set on the last step of a run that the engine itself ended.
    pub stop: Option<StopReason>,
}
