//! The engine: requests in, one token a step out.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use causeway_kv_cache::Cache;
use causeway_model::{Model, ModelError, Span, Workspace};
use causeway_policy::Policy;
use causeway_request::{Canceller, Request, RequestId, StepOutput, StopReason};
use causeway_scheduler::{Scheduled, Scheduler};

use crate::run::Run;
use crate::{Refusal, admission, digest};

/// What an engine was started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests that run at once.
    pub running_max: usize,
    /// Tokens that one forward pass computes.
    pub budget: usize,
}

/// What one step says of one request.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// A token was chosen and appended.
    Step(StepOutput),
    /// The run ended without a further token.
    Ended { request: RequestId, stop: StopReason },
}

/// A span's place in a pass, and its logits where it wanted any.
type Computed = (Scheduled, Option<Vec<f32>>);

/// The decoding loop around one model.
#[derive(Debug)]
pub struct Engine {
    model: Model,
    limits: Limits,
    scheduler: Scheduler,
    cache: Cache,
    work: Workspace,
    runs: BTreeMap<RequestId, Run>,
    passes: u64,
}

impl Engine {
    /// # Panics
    /// If a limit is 0.
    #[must_use]
    pub fn new(model: Model, limits: Limits) -> Self {
        assert!(limits.running_max > 0, "an engine runs at least one request");
        let cache = Cache::new(&model.kv_shape(limits.running_max, limits.budget));
        Self {
            scheduler: Scheduler::new(limits.budget),
            cache,
            work: Workspace::default(),
            runs: BTreeMap::new(),
            passes: 0,
            model,
            limits,
        }
    }

    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Forward passes so far.
    #[must_use]
    pub fn pass_count(&self) -> u64 {
        self.passes
    }

    /// Requests that run.
    #[must_use]
    pub fn running_count(&self) -> usize {
        self.runs.len()
    }

    /// Tokens of a request that are computed, and those that are known.
    #[must_use]
    pub fn progress(&self, request: RequestId) -> Option<(usize, usize)> {
        self.scheduler.progress(request)
    }

    /// KV blocks held, over all groups of layers.
    #[must_use]
    pub fn held_blocks(&self) -> usize {
        self.cache.held_counts().sum()
    }

    /// Takes a request that arrived at `arrived_ns`.
    ///
    /// # Errors
    /// `Refusal`; nothing is kept of a refused request.
    pub fn submit(
        &mut self,
        request: Request,
        policy: Policy,
        arrived_ns: u64,
    ) -> Result<(), Refusal> {
        let (running, running_max) = (self.runs.len(), self.limits.running_max);
        if running >= running_max {
            return Err(Refusal::Full { running, running_max });
        }
        let (id, model) = (request.id, self.model.config().shape.vocab_size);
        if self.runs.contains_key(&id) {
            return Err(Refusal::Duplicate { id });
        }
        if policy.vocab_size() != model {
            return Err(Refusal::OtherVocabulary { policy: policy.vocab_size(), model });
        }
        admission::check(&request, model, self.model.context_len())?;
        self.scheduler.add(id, request.tokens.len(), 0);
        self.runs.insert(id, Run::new(request, policy, arrived_ns));
        Ok(())
    }

    /// One step: plan, compute, choose, commit. `now_ns` is asked once the pass is computed.
    ///
    /// At most one output comes for each request.
    pub fn step(&mut self, now_ns: &mut dyn FnMut() -> u64) -> Vec<Output> {
        let plan = self.scheduler.plan();
        let mut outputs = Vec::new();
        let computed = self.compute(&plan, &mut outputs);
        let now_ns = now_ns();
        let rows = plan.iter().map(|scheduled| scheduled.token_count).sum();
        for (scheduled, logits) in computed {
            self.cache.retire(scheduled.id, scheduled.first_position + scheduled.token_count);
            if let Some(logits) = logits {
                outputs.push(self.sample(scheduled.id, &logits, rows, now_ns));
            }
        }
        self.passes += u64::from(!plan.is_empty());
        outputs
    }

    /// Ends a run from outside: a stop string was completed, or a deadline passed.
    ///
    /// The pass in flight has ended; no further one is scheduled, and the blocks are free.
    pub fn end(&mut self, request: RequestId) -> bool {
        self.scheduler.remove(request);
        self.cache.remove(request);
        self.runs.remove(&request).is_some()
    }

    /// Ends a run because someone asked; `None` where it does not run.
    pub fn cancel(&mut self, request: RequestId, by: Canceller) -> Option<StopReason> {
        let after_step = self.runs.get(&request)?.steps;
        self.end(request);
        Some(StopReason::Cancelled { by, after_step })
    }

    /// Drops the keys and values of a run; they are computed again before its next token.
    pub fn evict(&mut self, request: RequestId) {
        self.cache.remove(request);
        self.scheduler.rewind(request);
    }

    /// Computes the plan in one pass. Where a pass fails, each of its requests is computed
    /// alone, so that only the one that fails ends.
    fn compute(&mut self, plan: &[Scheduled], outputs: &mut Vec<Output>) -> Vec<Computed> {
        let mut ready = Vec::new();
        for &scheduled in plan {
            let end = scheduled.first_position + scheduled.token_count;
            match self.cache.reserve(scheduled.id, end) {
                Ok(()) => ready.push(scheduled),
                Err(error) => outputs.push(self.fail(scheduled.id, &error)),
            }
        }
        if let Ok(computed) = self.forward(&ready) {
            return computed;
        }
        let mut computed = Vec::new();
        for scheduled in ready {
            match self.forward(&[scheduled]) {
                Ok(alone) => computed.extend(alone),
                Err(error) => outputs.push(self.fail(scheduled.id, &*error)),
            }
        }
        computed
    }

    fn forward(&mut self, plan: &[Scheduled]) -> Result<Vec<Computed>, Box<ModelError>> {
        let span = |s: &Scheduled| {
            let run = self.runs.get(&s.id).expect("invariant: a plan names running requests");
            let tokens = &run.tokens[s.first_position..s.first_position + s.token_count];
            let logits_wanted = usize::from(s.samples);
            Span { request: s.id, first_position: s.first_position, tokens, logits_wanted }
        };
        let spans: Vec<Span<'_>> = plan.iter().map(span).collect();
        let logits = self.model.forward(&spans, &mut self.cache, &mut self.work)?;
        let mut rows = logits.rows();
        let computed = |s: &Scheduled| {
            let row = if s.samples { rows.next() } else { None };
            (*s, row.map(<[f32]>::to_vec))
        };
        Ok(plan.iter().map(computed).collect())
    }

    fn sample(&mut self, id: RequestId, logits: &[f32], rows: usize, now_ns: u64) -> Output {
        let context_len = self.model.context_len();
        let run = self.runs.get_mut(&id).expect("invariant: a plan names running requests");
        let step = run.step();
        let choice = match run.choose(logits) {
            Ok(choice) => choice,
            Err(error) => return self.fail(id, &error),
        };
        let stop = run.commit(choice.token, context_len);
        let since_arrival_ns = now_ns.saturating_sub(run.arrived_ns);
        if stop.is_some() {
            self.end(id);
        } else {
            self.scheduler.append(id);
        }
        Output::Step(StepOutput {
            request: id,
            step,
            choice,
            pass: self.passes,
            rows: u32::try_from(rows).unwrap_or(u32::MAX),
            since_arrival_ns,
            digest: digest(logits),
            stop,
        })
    }

    /// Ends a run that cannot go on; the sentence carries the whole chain of causes.
    fn fail(&mut self, request: RequestId, error: &dyn std::error::Error) -> Output {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let _ = write!(message, ": {cause}");
            source = cause.source();
        }
        self.end(request);
        Output::Ended { request, stop: StopReason::Error { message } }
    }
}
