//! The engine: requests in, one token a step out.

use std::collections::BTreeMap;

use causeway_kv_cache::{Cache, ChainHash, Shelf};
use causeway_model::{Model, Workspace};
use causeway_request::{Canceller, Priority, Request, RequestId, StopReason};
use causeway_scheduler::{Arrival, Scheduler, Sizes};

use crate::masks::Masks;
use crate::room::Holds;
use crate::run::Run;
use crate::{Ended, Forward, Limits, Load, Pass, Refusal, Submission, admission};

/// The decoding loop around one model.
#[derive(Debug)]
pub struct Engine<F: Forward = Model> {
    pub(crate) model: F,
    pub(crate) limits: Limits,
    pub(crate) context_len: usize,
    pub(crate) scheduler: Scheduler,
    pub(crate) cache: Cache,
    pub(crate) work: Workspace,
    pub(crate) runs: BTreeMap<RequestId, Run>,
    pub(crate) holds: Holds,
    pub(crate) masks: Masks,
    /// Name of the KV type, which is part of every prefix.
    kv_type: &'static str,
    pub(crate) passes: u64,
    pub(crate) last_pass: Pass,
    /// The counters that only grow; the others are filled in when asked for.
    pub(crate) counters: Load,
}

impl<F: Forward> Engine<F> {
    /// # Panics
    /// If a limit that must be at least 1 is 0.
    #[must_use]
    pub fn new(model: F, limits: Limits) -> Self {
        let Limits { running_max, budget, batch_patience: patience, .. } = limits;
        let mut shape = model.kv_shape(running_max, budget);
        let mut context_len = model.context_len();
        if let Some(positions_max) = limits.kv_positions_max {
            shape.positions_max = shape.positions_max.min(positions_max);
            context_len = context_len.min(positions_max);
        }
        Self {
            scheduler: Scheduler::new(Sizes { running_max, budget, patience }),
            cache: Cache::new(&shape),
            work: Workspace::default(),
            runs: BTreeMap::new(),
            holds: Holds::new(),
            masks: Masks::default(),
            kv_type: shape.kind.name(),
            passes: 0,
            last_pass: Pass::default(),
            counters: Load::default(),
            context_len,
            model,
            limits,
        }
    }

    /// Gives the prefix cache a shelf, for prefixes that have no room in memory and for those
    /// that outlive the engine.
    ///
    /// # Panics
    /// If the limits have no `model_key`: another model's keys and values could be found there.
    pub fn set_shelf(&mut self, shelf: Box<dyn Shelf>) {
        assert_ne!(self.limits.model_key, [0; 32], "a shelf is shared by models with a key");
        self.cache.set_shelf(shelf);
    }

    /// Puts all idle prefixes on the shelf, where there is one: before the engine goes.
    pub fn shelve(&mut self) {
        self.cache.shelve();
    }

    #[must_use]
    pub fn model(&self) -> &F {
        &self.model
    }

    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Positions that a sequence may have: the model's, or as many as the KV cache holds.
    #[must_use]
    pub fn context_len(&self) -> usize {
        self.context_len
    }

    /// Forward passes so far.
    #[must_use]
    pub fn pass_count(&self) -> u64 {
        self.passes
    }

    /// What the last step computed; all zeros where it had nothing to do.
    #[must_use]
    pub fn last_pass(&self) -> Pass {
        self.last_pass
    }

    /// Requests that run or wait.
    #[must_use]
    pub fn request_count(&self) -> usize {
        self.runs.len()
    }

    /// Whether a step would have nothing to do.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.runs.is_empty()
    }

    /// Tokens of a request that are computed, and those that are known.
    #[must_use]
    pub fn progress(&self, request: RequestId) -> Option<(usize, usize)> {
        self.scheduler.progress(request)
    }

    /// How loaded the engine is, and what its cache did so far.
    #[must_use]
    pub fn load(&self) -> Load {
        let counts = self.cache.counts();
        Load {
            running: self.scheduler.running_count(),
            waiting: self.scheduler.waiting_count(),
            held_blocks: counts.held,
            cached_blocks: counts.cached,
            free_blocks: counts.free,
            prefix_evictions: counts.evictions,
            prefix_restored: counts.restored,
            ..self.counters
        }
    }

    /// Most tokens that one pass computes from here on, between 1 and the limit the engine was
    /// started with; gives the value that holds.
    pub fn set_budget(&mut self, tokens: usize) -> usize {
        let tokens = tokens.clamp(1, self.limits.budget);
        self.scheduler.set_budget(tokens);
        tokens
    }

    /// Makes a request more or less urgent.
    pub fn set_priority(&mut self, request: RequestId, priority: Priority) {
        self.scheduler.set_priority(request, priority);
    }

    /// Takes a request; it runs as soon as there is a slot and room for its keys and values.
    ///
    /// # Errors
    /// `Refusal`; nothing is kept of a refused request.
    pub fn submit(&mut self, submission: Submission) -> Result<(), Refusal> {
        self.submit_all(vec![submission])
    }

    /// Takes several requests, or none of them: the parallel choices of one prompt.
    ///
    /// # Errors
    /// The first `Refusal`; nothing is kept then.
    pub fn submit_all(&mut self, submissions: Vec<Submission>) -> Result<(), Refusal> {
        for (index, submission) in submissions.iter().enumerate() {
            let id = submission.request.id;
            let is_twice = submissions[..index].iter().any(|other| other.request.id == id);
            if is_twice || self.runs.contains_key(&id) {
                return Err(Refusal::Duplicate { id });
            }
            admission::check(submission, self.model.vocab_size(), self.context_len)?;
        }
        // What can never run is not told to come again later.
        let Limits { running_max, queue_max, .. } = self.limits;
        let came = submissions.len();
        if self.runs.len() + came > running_max + queue_max {
            let waiting = self.runs.len().saturating_sub(running_max);
            return Err(Refusal::QueueFull { waiting, came, queue_max });
        }
        for submission in submissions {
            let salt = submission.cache_salt.as_deref();
            let root = ChainHash::root(&self.limits.model_key, self.kv_type, salt);
            let Submission { request: Request { id, .. }, priority, .. } = submission;
            let follows = submission.shares_with;
            let run = Run::new(submission, root, &self.limits, self.context_len);
            self.scheduler.add(Arrival { id, tokens: run.known(), priority, follows });
            self.runs.insert(id, run);
        }
        Ok(())
    }

    /// Ends a run from outside, for example because its text completed a stop string; `None`
    /// where it has ended already.
    ///
    /// The pass in flight has ended; no further one is scheduled, and the blocks are free.
    pub fn end(&mut self, request: RequestId, stop: StopReason) -> Option<Ended> {
        let run = self.runs.remove(&request)?;
        self.scheduler.remove(request);
        self.holds.remove(&request);
        self.cache.remove(request);
        Some(Ended { request, stop, account: run.close() })
    }

    /// Ends a run because someone asked; `None` where it has ended already.
    pub fn cancel(&mut self, request: RequestId, by: Canceller) -> Option<Ended> {
        let after_step = self.runs.get(&request)?.account.steps;
        self.end(request, StopReason::Cancelled { by, after_step })
    }
}
