//! What goes into an engine: its limits, and one request with all that belongs to it.

use std::sync::Arc;

use causeway_policy::{Guide, Policy};
use causeway_request::{Priority, Request, RequestId};

use crate::Drafts;

/// What an engine was started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests that run at once; at least 1.
    pub running_max: usize,
    /// Most tokens that one forward pass computes; at least 1.
    pub budget: usize,
    /// Requests that wait beyond those that could run.
    pub queue_max: usize,
    /// Nanoseconds that a request may wait for its first pass.
    pub wait_ns_max: Option<u64>,
    /// Positions that the KV cache holds for all requests together; a context for each that
    /// runs where not given. One sequence can never have more.
    pub kv_positions_max: Option<usize>,
    /// Keeps the blocks of requests that ended, for those that begin with the same tokens.
    pub prefix_cache: bool,
    /// Passes after whose number a batch request counts as interactive.
    pub batch_patience: u64,
    /// Computes tokens that are laid in the pass of the token before them; otherwise each has a
    /// pass of its own. No bit of any answer depends on it.
    pub fast_forward: bool,
    /// Which runs compute drafts beside their newest token, where few runs decode; none do
    /// without `fast_forward`. No bit of any answer depends on it.
    pub drafts: Drafts,
    /// Hash of what the keys and values depend on beside the tokens, the KV type and the salt:
    /// the weights and what was fixed when they were loaded.
    pub model_key: [u8; 32],
}

impl Limits {
    /// So many passes a batch request gives way: about half a minute of decodes.
    pub const BATCH_PATIENCE: u64 = 1_000;

    /// Limits with a queue of 256, no limit on waiting, the prefix cache and fast-forward on, and
    /// no drafts.
    #[must_use]
    pub fn new(running_max: usize, budget: usize) -> Self {
        Self {
            running_max,
            budget,
            queue_max: 256,
            wait_ns_max: None,
            kv_positions_max: None,
            prefix_cache: true,
            batch_patience: Self::BATCH_PATIENCE,
            fast_forward: true,
            drafts: Drafts::Off,
            model_key: [0; 32],
        }
    }
}

/// One request on its way into an engine.
#[derive(Debug, Clone)]
pub struct Submission {
    pub request: Request,
    pub policy: Arc<Policy>,
    /// When it arrived, by the clock that `Engine::step` is given.
    pub arrived_ns: u64,
    pub priority: Priority,
    /// When it ends at the latest, by the same clock.
    pub deadline_ns: Option<u64>,
    /// Requests share cached prefixes only where their salts are equal.
    pub cache_salt: Option<String>,
    /// The first of several parallel choices, whose prompt this one has: it is computed once.
    pub shares_with: Option<RequestId>,
    /// How many of the best tokens under the raw logits each step tells of.
    pub top_logprobs: usize,
    /// Lays tokens down and masks others; `None` where the policy alone decides.
    pub guide: Option<Box<dyn Guide>>,
}

impl Submission {
    /// An interactive request without deadline, salt or siblings.
    #[must_use]
    pub fn new(request: Request, policy: impl Into<Arc<Policy>>, arrived_ns: u64) -> Self {
        Self {
            request,
            policy: policy.into(),
            arrived_ns,
            priority: Priority::Interactive,
            deadline_ns: None,
            cache_salt: None,
            shares_with: None,
            top_logprobs: 0,
            guide: None,
        }
    }
}
