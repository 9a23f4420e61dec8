//! Which tokens the next step computes: a pure state machine.
//!
//! It knows no floats, no clock, no threads, no weights and no text.
//! Requests are added, `plan` says what one forward pass computes, `append` follows a choice.

use causeway_request::RequestId;

/// What one forward pass computes for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheduled {
    pub id: RequestId,
    /// Position of the first token computed.
    pub first_position: usize,
    pub token_count: usize,
    /// Whether the pass reaches the newest token, so that the next can be chosen.
    pub samples: bool,
}

/// Two counters are the whole state of a request: prefill is `tokens - computed` large, decode
/// is `tokens - computed == 1`, a prefix-cache hit starts with `computed > 0`.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    id: RequestId,
    tokens: usize,
    computed: usize,
}

/// Running requests, first come first served.
#[derive(Debug, Clone)]
pub struct Scheduler {
    running: Vec<Entry>,
    /// Most tokens that one forward pass computes.
    budget: usize,
}

impl Scheduler {
    /// # Panics
    /// If `budget` is 0: no step would make progress.
    #[must_use]
    pub fn new(budget: usize) -> Self {
        assert!(budget > 0, "a step computes at least one token");
        Self { running: Vec::new(), budget }
    }

    /// Adds a request of `tokens` known tokens, of which `computed` are in the cache.
    ///
    /// # Panics
    /// If there is nothing to compute, or the request runs already.
    pub fn add(&mut self, id: RequestId, tokens: usize, computed: usize) {
        assert!(computed < tokens, "something is left to compute");
        assert!(!self.running.iter().any(|entry| entry.id == id), "request {id} runs already");
        self.running.push(Entry { id, tokens, computed });
    }

    /// Plans one forward pass: decodes first, then prefill in chunks, in order of arrival.
    pub fn plan(&mut self) -> Vec<Scheduled> {
        let mut budget = self.budget;
        let mut plan = Vec::new();
        for decodes in [true, false] {
            for entry in &mut self.running {
                let left = entry.tokens - entry.computed;
                let token_count = budget.min(left);
                if (left == 1) != decodes || token_count == 0 {
                    continue;
                }
                budget -= token_count;
                plan.push(entry.schedule(token_count));
            }
        }
        plan
    }

    /// Adds the token that was just chosen to its request.
    ///
    /// # Panics
    /// If the request does not run or was not due a token.
    pub fn append(&mut self, id: RequestId) {
        let entry = self.running.iter_mut().find(|entry| entry.id == id);
        let entry = entry.expect("invariant: an append names a running request");
        assert_eq!(entry.tokens, entry.computed, "a token follows the newest one's logits");
        entry.tokens += 1;
    }

    /// Forgets what was computed of a request, so that it is computed again (eviction).
    pub fn rewind(&mut self, id: RequestId) {
        for entry in self.running.iter_mut().filter(|entry| entry.id == id) {
            entry.computed = 0;
        }
    }

    /// Ends a request; false where it did not run.
    pub fn remove(&mut self, id: RequestId) -> bool {
        let before = self.running.len();
        self.running.retain(|entry| entry.id != id);
        self.running.len() < before
    }

    /// Tokens of a request that are computed (or planned), and those that are known.
    #[must_use]
    pub fn progress(&self, id: RequestId) -> Option<(usize, usize)> {
        let entry = self.running.iter().find(|entry| entry.id == id)?;
        Some((entry.computed, entry.tokens))
    }

    /// Requests that run.
    #[must_use]
    pub fn running_count(&self) -> usize {
        self.running.len()
    }
}

impl Entry {
    fn schedule(&mut self, token_count: usize) -> Scheduled {
        let first_position = self.computed;
        self.computed += token_count;
        let samples = self.computed == self.tokens;
        Scheduled { id: self.id, first_position, token_count, samples }
    }
}

#[cfg(test)]
mod tests;
