//! The step: plan, compute, choose, commit, emit.

use causeway_model::Span;
use causeway_request::{RequestId, StepOutput, StopReason, TokenId};
use causeway_scheduler::{Plan, Scheduled};

use crate::choosing::{self, Chosen, Fault, Picked};
use crate::drafts;
use crate::masks::Waited;
use crate::room::KvRoom;
use crate::run::Run;
use crate::{Engine, Forward, Output, Pass, PassAccount};

/// A span's place in a pass, and the tokens that its rows gave; or why it failed.
type Computed = (Scheduled, Vec<Chosen>);

impl<F: Forward> Engine<F> {
    /// One step: plan, compute, choose, commit. `now_ns` is asked before and after the pass, and
    /// around a wait for masks that take longer than the pass.
    ///
    /// Of each request comes at most one token that was chosen, behind those that were laid.
    pub fn step(&mut self, now_ns: &mut dyn FnMut() -> u64) -> Vec<Output> {
        let mut outputs = Vec::new();
        let began_ns = now_ns();
        self.expire(began_ns, &mut outputs);
        self.draft();
        let plan = self.plan();
        self.note(&plan, began_ns);
        if plan.scheduled.is_empty() {
            outputs.extend(self.fail_without_room(&plan));
            return outputs;
        }
        let computed = self.compute(&plan, now_ns);
        let now_ns = now_ns();
        for (scheduled, chosen) in computed {
            self.settle(&scheduled);
            let id = scheduled.id;
            let goes_on = chosen.into_iter().all(|one| self.commit(id, one, now_ns, &mut outputs));
            if goes_on && scheduled.samples {
                self.look_ahead(id);
            }
        }
        self.passes += 1;
        outputs
    }

    /// Ends what is past its deadline or has waited too long.
    fn expire(&mut self, now_ns: u64, outputs: &mut Vec<Output>) {
        let wait_ns_max = self.limits.wait_ns_max;
        let mut over = Vec::new();
        for (&id, run) in &mut self.runs {
            let waited_ns = now_ns.saturating_sub(run.arrived_ns);
            run.account.is_wait_over =
                run.is_unscheduled() && wait_ns_max.is_some_and(|m| waited_ns > m);
            if run.account.is_wait_over || run.deadline_ns.is_some_and(|end| now_ns >= end) {
                over.push((id, StopReason::Deadline { after_step: run.account.steps }));
            }
        }
        let ended = |(id, stop)| self.end(id, stop).map(Output::Ended);
        outputs.extend(over.into_iter().filter_map(ended));
    }

    /// Has few runs compute drafts beside their newest tokens.
    fn draft(&mut self) {
        let count = drafts::for_each(self.scheduler.running_count());
        for (&id, run) in &mut self.runs {
            let count = run.draft(count);
            self.scheduler.draft(id, count);
        }
    }

    fn plan(&mut self) -> Plan {
        let Self { scheduler, cache, runs, holds, limits, .. } = self;
        scheduler.plan(&mut KvRoom { cache, runs, holds, keeps_prefixes: limits.prefix_cache })
    }

    /// Takes a run's blocks, as the scheduler does when others need them.
    #[cfg(test)]
    pub(crate) fn preempt(&mut self, request: RequestId) {
        let Self { scheduler, cache, runs, holds, limits, .. } = self;
        let keeps_prefixes = limits.prefix_cache;
        scheduler.preempt(request, &mut KvRoom { cache, runs, holds, keeps_prefixes });
    }

    /// Ends the request that is due, where it cannot even run alone: the system refuses memory.
    fn fail_without_room(&mut self, plan: &Plan) -> Option<Output> {
        if !plan.preempted.is_empty() || self.scheduler.running_count() > 0 {
            return None;
        }
        let request = self.scheduler.next_waiting()?;
        let (_, tokens) = self.scheduler.progress(request)?;
        let chunk = tokens.min(self.scheduler.budget());
        let room = self.cache.promise(request, tokens, 0);
        let message = match room.and_then(|()| self.cache.reserve(request, chunk)) {
            Err(error) => choosing::sentence(&error),
            Ok(()) => {
                // It was another request that found no room; this one takes its turn.
                self.holds.remove(&request);
                self.cache.remove(request);
                return None;
            }
        };
        let stop = StopReason::Error { message, is_callers_mistake: false };
        self.end(request, stop).map(Output::Ended)
    }

    /// Writes the plan into the accounts of those it names.
    fn note(&mut self, plan: &Plan, now_ns: u64) {
        for id in &plan.preempted {
            self.counters.preemptions += 1;
            self.run_mut(*id).account.preemptions += 1;
        }
        for (id, _) in &plan.admitted {
            let run = self.runs.get(id).expect("invariant: a plan names requests that are here");
            let PassAccount { cached_tokens, shared_tokens, .. } = run.account;
            if run.is_unscheduled() && shared_tokens == 0 && self.limits.prefix_cache {
                self.counters.prefix_lookups += 1;
                self.counters.prefix_hits += u64::from(cached_tokens > 0);
                self.counters.prefix_tokens_hit += cached_tokens as u64;
            }
        }
        let (requests, rows) = (plan.scheduled.len(), plan.rows());
        self.last_pass = Pass { requests, rows, ..Pass::default() };
        for scheduled in &plan.scheduled {
            let run = self.run_mut(scheduled.id);
            let waited_ns = now_ns.saturating_sub(run.arrived_ns);
            run.account.queued_ns.get_or_insert(waited_ns);
            let is_decode = scheduled.first_position >= run.request.tokens.len()
                && scheduled.first_position + 1 == run.told();
            run.account.decode_passes += u64::from(is_decode);
            run.account.prefill_passes += u64::from(!is_decode);
            run.begin_pass(scheduled.drafts);
            let rows = scheduled.token_count + scheduled.drafts;
            self.last_pass.decode_rows += if is_decode { rows } else { 0 };
        }
    }

    /// Keeps what a pass computed of a request, gives it to its siblings, and gives back what it
    /// will not read again.
    fn settle(&mut self, scheduled: &Scheduled) {
        let &Scheduled { id, first_position, token_count, drafts: _, samples: _ } = scheduled;
        let end = first_position + token_count;
        let run = self.runs.get(&id).expect("invariant: a plan names requests that are here");
        if self.limits.prefix_cache {
            self.cache.offer(id, &run.chain, end);
        }
        let prompt_tokens = run.request.tokens.len();
        if first_position < prompt_tokens && end >= prompt_tokens {
            for (&sibling, other) in &self.runs {
                if other.shares_with != Some(id) || !other.is_unscheduled() {
                    continue;
                }
                // A hold from before a preemption is as good.
                if self.cache.holds(sibling) {
                    continue;
                }
                let held = self.cache.fork(id, sibling, run.shared_prompt(other));
                if held > 0 {
                    self.holds.insert(sibling, held);
                }
            }
        }
        self.cache.retire(id, end);
    }

    fn run_mut(&mut self, id: RequestId) -> &mut Run {
        self.runs.get_mut(&id).expect("invariant: a plan names requests that are here")
    }

    /// Computes the plan in one pass. Where a pass fails, each of its requests is computed
    /// alone, so that only the one that fails ends.
    fn compute(&mut self, plan: &Plan, now_ns: &mut dyn FnMut() -> u64) -> Vec<Computed> {
        if let Ok(computed) = self.forward(&plan.scheduled, now_ns) {
            return computed;
        }
        let mut computed = Vec::new();
        for &scheduled in &plan.scheduled {
            match self.forward(&[scheduled], now_ns) {
                Ok(alone) => computed.extend(alone),
                Err(error) => {
                    let message = choosing::sentence(&*error);
                    let fault = Fault { message, is_callers_mistake: false };
                    computed.push((scheduled, vec![Err(fault)]));
                }
            }
        }
        computed
    }

    fn forward(
        &mut self,
        plan: &[Scheduled],
        now_ns: &mut dyn FnMut() -> u64,
    ) -> Result<Vec<Computed>, Box<F::Error>> {
        let (model, runs) = (&self.model, &mut self.runs);
        // The runs choose while the spans are borrowed, so the spans borrow copies.
        let planned = |s: &Scheduled| runs[&s.id].planned(s.first_position, s.token_count);
        let tokens: Vec<Vec<TokenId>> = plan.iter().map(planned).collect();
        let (mut spans, mut due) = (Vec::with_capacity(plan.len()), Vec::new());
        for (scheduled, tokens) in plan.iter().zip(&tokens) {
            let &Scheduled { id: request, first_position, .. } = scheduled;
            let logits_wanted = runs[&request].rows_due(first_position, tokens.len());
            spans.push(Span { request, first_position, tokens, logits_wanted });
            due.push((request, logits_wanted));
        }
        let (mut chosen, mut waited) = (Vec::new(), None);
        let masks = &mut self.masks;
        masks.begin(runs, plan.iter().filter(|s| s.samples).map(|s| s.id));
        let computed = model.forward(&spans, &mut self.cache, &mut self.work, &mut |rows| {
            waited = masks.end(runs, now_ns);
            chosen = choosing::choose(model, runs, &due, rows);
        });
        // A pass that failed has read nothing, and the guides are still out.
        masks.end(runs, now_ns);
        computed?;
        if let Some(Waited { ids, ns }) = waited {
            self.note_wait(&ids, ns);
        }
        Ok(plan.iter().copied().zip(chosen).collect())
    }

    /// Writes down how long a pass waited for the masks of these requests.
    fn note_wait(&mut self, masked: &[RequestId], waited_ns: u64) {
        *self.last_pass.mask_wait_ns.get_or_insert(0) += waited_ns;
        for id in masked {
            let account = &mut self.run_mut(*id).account;
            account.masked_passes += 1;
            account.mask_waits += u64::from(waited_ns > 0);
            account.mask_wait_ns += waited_ns;
        }
    }

    /// Appends what was chosen, or ends the run that could not go on; whether it goes on.
    fn commit(
        &mut self,
        id: RequestId,
        chosen: Chosen,
        now_ns: u64,
        outputs: &mut Vec<Output>,
    ) -> bool {
        let (pass, rows) = (self.passes, self.last_pass.rows);
        let Picked { choice, digest, top } = match chosen {
            Ok(chosen) => chosen,
            Err(Fault { message, is_callers_mistake }) => {
                let stop = StopReason::Error { message, is_callers_mistake };
                outputs.extend(self.end(id, stop).map(Output::Ended));
                return false;
            }
        };
        let run = self.run_mut(id);
        let step = run.step();
        let stop = run.commit();
        outputs.push(Output::Step(StepOutput {
            request: id,
            step,
            choice,
            pass,
            rows: u32::try_from(rows).unwrap_or(u32::MAX),
            since_arrival_ns: now_ns.saturating_sub(run.arrived_ns),
            digest,
            top,
            stop: stop.clone(),
        }));
        let Some(stop) = stop else { return true };
        outputs.extend(self.end(id, stop).map(Output::Ended));
        false
    }

    /// Hands the token that was just chosen, and those that must follow it, to the scheduler.
    fn look_ahead(&mut self, id: RequestId) {
        let run = self.run_mut(id);
        run.look_ahead();
        let (known, accepted) = (run.known(), run.end_pass());
        let (_, before) = self.scheduler.progress(id).expect("invariant: a live run is scheduled");
        self.scheduler.accept(id, accepted);
        self.scheduler.append(id, known - before - accepted);
    }
}
