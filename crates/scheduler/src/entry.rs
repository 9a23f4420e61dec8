//! One request as the scheduler sees it: counters and a rank.

use causeway_request::{Priority, RequestId};

use crate::Scheduled;

/// Most positions that count as the newest ones.
const AHEAD_MAX: usize = 32;

/// Two counters are the state of a request: prefill is `tokens - computed` large, decode is
/// `tokens - computed == 1` or a few, a prefix-cache hit starts with `computed > 0`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) id: RequestId,
    pub(crate) tokens: usize,
    pub(crate) computed: usize,
    /// Drafts behind the newest token, for the next plan.
    pub(crate) drafts: usize,
    /// Tokens known when the request was added.
    pub(crate) prompt_tokens: usize,
    pub(crate) priority: Priority,
    /// Whether a pass that is over reached the end of the prompt.
    pub(crate) has_prompt: bool,
    /// Whose prompt it shares.
    pub(crate) follows: Option<RequestId>,
    /// Place in the order of arrival.
    pub(crate) place: u64,
    /// The last plan before it came, counted from 1.
    pub(crate) first_plan: u64,
    /// The last plan that had a part in it, counted from 1.
    pub(crate) last_plan: u64,
}

impl Entry {
    /// What is left to compute before the next token can be chosen.
    pub(crate) fn left(&self) -> usize {
        self.tokens - self.computed
    }

    /// Whether the newest positions alone are left: one, or with a few tokens that are known to
    /// follow it, where nothing of the prompt is computed again.
    pub(crate) fn is_decode(&self) -> bool {
        let is_short = self.computed >= self.prompt_tokens && self.left() <= AHEAD_MAX;
        self.left() == 1 || (is_short && self.left() > 0)
    }

    /// Whether anything else is left.
    pub(crate) fn is_prompt(&self) -> bool {
        self.left() > 0 && !self.is_decode()
    }

    /// Lower is served first and preempted last.
    pub(crate) fn rank(&self) -> (Priority, u64) {
        (self.priority, self.place)
    }

    pub(crate) fn schedule(&mut self, token_count: usize, plan: u64) -> Scheduled {
        let first_position = self.computed;
        self.computed += token_count;
        self.last_plan = plan;
        let samples = self.computed == self.tokens;
        Scheduled { id: self.id, first_position, token_count, drafts: 0, samples }
    }
}
