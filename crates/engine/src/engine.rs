//! The engine: requests in, one token a step out.

use std::collections::BTreeMap;

use causeway_kv_cache::Cache;
use causeway_model::{Model, Span, Workspace};
use causeway_request::{Canceller, Priority, RequestId, StepOutput, StopReason, TokenId};
use causeway_scheduler::{Arrival, Plan, Scheduled, Scheduler, Sizes};

use crate::choosing::{self, Chosen};
use crate::room::KvRoom;
use crate::run::Run;
use crate::{Ended, Forward, Limits, Load, Output, Pass, Refusal, Submission, admission};

/// A span's place in a pass, and what was chosen where a token was due; or why it failed.
type Computed = (Scheduled, Option<Chosen>);

/// The decoding loop around one model.
#[derive(Debug)]
pub struct Engine<F: Forward = Model> {
    model: F,
    limits: Limits,
    context_len: usize,
    scheduler: Scheduler,
    cache: Cache,
    work: Workspace,
    runs: BTreeMap<RequestId, Run>,
    passes: u64,
    last_pass: Pass,
    preemptions: u64,
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
            passes: 0,
            last_pass: Pass::default(),
            preemptions: 0,
            context_len,
            model,
            limits,
        }
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
        Load {
            running: self.scheduler.running_count(),
            waiting: self.scheduler.waiting_count(),
            held_blocks: self.cache.held_counts().sum(),
            preemptions: self.preemptions,
            ..Load::default()
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
        let Limits { running_max, queue_max, .. } = self.limits;
        if self.runs.len() + submissions.len() > running_max + queue_max {
            let waiting = self.runs.len().saturating_sub(running_max);
            return Err(Refusal::QueueFull { waiting, queue_max });
        }
        for (index, submission) in submissions.iter().enumerate() {
            let id = submission.request.id;
            let is_twice = submissions[..index].iter().any(|other| other.request.id == id);
            if is_twice || self.runs.contains_key(&id) {
                return Err(Refusal::Duplicate { id });
            }
            admission::check(submission, self.model.vocab_size(), self.context_len)?;
        }
        for submission in submissions {
            self.scheduler.add(Arrival {
                id: submission.request.id,
                tokens: submission.request.tokens.len(),
                priority: submission.priority,
                follows: submission.shares_with,
            });
            self.runs.insert(submission.request.id, Run::new(submission));
        }
        Ok(())
    }

    /// One step: plan, compute, choose, commit. `now_ns` is asked before and after the pass.
    ///
    /// At most one token comes for each request.
    pub fn step(&mut self, now_ns: &mut dyn FnMut() -> u64) -> Vec<Output> {
        let mut outputs = Vec::new();
        let began_ns = now_ns();
        self.expire(began_ns, &mut outputs);
        let plan = self.scheduler.plan(&mut KvRoom { cache: &mut self.cache });
        self.note(&plan, began_ns);
        let computed = self.compute(&plan);
        let now_ns = now_ns();
        for (scheduled, chosen) in computed {
            self.cache.retire(scheduled.id, scheduled.first_position + scheduled.token_count);
            if let Some(chosen) = chosen {
                self.commit(scheduled.id, chosen, now_ns, &mut outputs);
            }
        }
        self.passes += u64::from(!plan.scheduled.is_empty());
        outputs
    }

    /// Ends a run from outside, for example because its text completed a stop string; `None`
    /// where it has ended already.
    ///
    /// The pass in flight has ended; no further one is scheduled, and the blocks are free.
    pub fn end(&mut self, request: RequestId, stop: StopReason) -> Option<Ended> {
        let run = self.runs.remove(&request)?;
        self.scheduler.remove(request);
        self.cache.remove(request);
        Some(Ended { request, stop, account: run.close(self.context_len) })
    }

    /// Ends a run because someone asked; `None` where it has ended already.
    pub fn cancel(&mut self, request: RequestId, by: Canceller) -> Option<Ended> {
        let after_step = self.runs.get(&request)?.account.steps;
        self.end(request, StopReason::Cancelled { by, after_step })
    }

    /// Ends what is past its deadline or has waited too long.
    fn expire(&mut self, now_ns: u64, outputs: &mut Vec<Output>) {
        let wait_ns_max = self.limits.wait_ns_max;
        let mut over = Vec::new();
        for (&id, run) in &mut self.runs {
            let waited_ns = now_ns.saturating_sub(run.arrived_ns);
            let is_unscheduled = run.account.queued_ns.is_none();
            run.account.is_wait_over = is_unscheduled && wait_ns_max.is_some_and(|m| waited_ns > m);
            if run.account.is_wait_over || run.deadline_ns.is_some_and(|end| now_ns >= end) {
                over.push((id, StopReason::Deadline { after_step: run.account.steps }));
            }
        }
        let ended = |(id, stop)| self.end(id, stop).map(Output::Ended);
        outputs.extend(over.into_iter().filter_map(ended));
    }

    /// Writes the plan into the accounts of those it names.
    fn note(&mut self, plan: &Plan, now_ns: u64) {
        for id in &plan.preempted {
            self.preemptions += 1;
            self.run_mut(*id).account.preemptions += 1;
        }
        self.last_pass = Pass { requests: plan.scheduled.len(), rows: plan.rows(), decode_rows: 0 };
        for scheduled in &plan.scheduled {
            let run = self.run_mut(scheduled.id);
            let waited_ns = now_ns.saturating_sub(run.arrived_ns);
            run.account.queued_ns.get_or_insert(waited_ns);
            let is_decode =
                scheduled.token_count == 1 && scheduled.first_position >= run.request.tokens.len();
            run.account.decode_passes += u64::from(is_decode);
            run.account.prefill_passes += u64::from(!is_decode);
            self.last_pass.decode_rows += usize::from(is_decode);
        }
    }

    fn run_mut(&mut self, id: RequestId) -> &mut Run {
        self.runs.get_mut(&id).expect("invariant: a plan names requests that are here")
    }

    /// Computes the plan in one pass. Where a pass fails, each of its requests is computed
    /// alone, so that only the one that fails ends.
    fn compute(&mut self, plan: &Plan) -> Vec<Computed> {
        if plan.scheduled.is_empty() {
            return Vec::new();
        }
        if let Ok(computed) = self.forward(&plan.scheduled) {
            return computed;
        }
        let mut computed = Vec::new();
        for &scheduled in &plan.scheduled {
            match self.forward(&[scheduled]) {
                Ok(alone) => computed.extend(alone),
                Err(error) => computed.push((scheduled, Some(Err(choosing::sentence(&*error))))),
            }
        }
        computed
    }

    fn forward(&mut self, plan: &[Scheduled]) -> Result<Vec<Computed>, Box<F::Error>> {
        let ids: Vec<RequestId> = plan.iter().filter(|s| s.samples).map(|s| s.id).collect();
        let (model, runs) = (&self.model, &mut self.runs);
        // The runs choose while the spans are borrowed, so the spans borrow copies.
        let tokens: Vec<Vec<TokenId>> = plan.iter().map(|s| planned_tokens(runs, s)).collect();
        let mut spans = Vec::with_capacity(plan.len());
        for (scheduled, tokens) in plan.iter().zip(&tokens) {
            let &Scheduled { id: request, first_position, token_count: _, samples } = scheduled;
            let logits_wanted = usize::from(samples);
            spans.push(Span { request, first_position, tokens, logits_wanted });
        }
        let mut chosen = Vec::new();
        model.forward(&spans, &mut self.cache, &mut self.work, &mut |rows| {
            chosen = choosing::choose(model, runs, &ids, rows);
        })?;
        let mut chosen = chosen.into_iter();
        let computed = |s: &Scheduled| (*s, if s.samples { chosen.next() } else { None });
        Ok(plan.iter().map(computed).collect())
    }

    /// Appends what was chosen, or ends the run that could not go on.
    fn commit(&mut self, id: RequestId, chosen: Chosen, now_ns: u64, outputs: &mut Vec<Output>) {
        let (context_len, pass, rows) = (self.context_len, self.passes, self.last_pass.rows);
        let (choice, digest) = match chosen {
            Ok(chosen) => chosen,
            Err(message) => {
                outputs.extend(self.end(id, StopReason::Error { message }).map(Output::Ended));
                return;
            }
        };
        let run = self.run_mut(id);
        let step = run.step();
        let stop = run.commit(choice.token, context_len);
        outputs.push(Output::Step(StepOutput {
            request: id,
            step,
            choice,
            pass,
            rows: u32::try_from(rows).unwrap_or(u32::MAX),
            since_arrival_ns: now_ns.saturating_sub(run.arrived_ns),
            digest,
            stop: stop.clone(),
        }));
        match stop {
            None => self.scheduler.append(id),
            Some(stop) => outputs.extend(self.end(id, stop).map(Output::Ended)),
        }
    }
}

fn planned_tokens(runs: &BTreeMap<RequestId, Run>, scheduled: &Scheduled) -> Vec<TokenId> {
    let run = runs.get(&scheduled.id).expect("invariant: a plan names requests that are here");
    run.tokens[scheduled.first_position..][..scheduled.token_count].to_vec()
}
