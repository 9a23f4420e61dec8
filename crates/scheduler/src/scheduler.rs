//! Requests that wait and requests that run, and the plan of each pass.

use causeway_request::{Priority, RequestId};

use crate::entry::Entry;
use crate::{Plan, Room, Scheduled};

/// Of the budget, the part (one in so many) that decodes leave to a prompt that is due.
const PREFILL_SHARE: usize = 4;

/// What a scheduler is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Requests that run at once; at least 1.
    pub running_max: usize,
    /// Most tokens that one forward pass computes; at least 1.
    pub budget: usize,
    /// Plans after whose number a batch request counts as interactive.
    pub patience: u64,
}

/// A request that is to wait for its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    pub id: RequestId,
    /// Known tokens, at least 1.
    pub tokens: usize,
    pub priority: Priority,
    /// The request whose prompt it shares: it waits until that prompt is computed.
    pub follows: Option<RequestId>,
}

/// Requests in their order: by priority, and inside one first come first served.
#[derive(Debug, Clone)]
pub struct Scheduler {
    sizes: Sizes,
    waiting: Vec<Entry>,
    running: Vec<Entry>,
    /// Requests added so far.
    added: u64,
    /// Plans made so far.
    plans: u64,
}

impl Scheduler {
    /// # Panics
    /// If a size is 0: no step would make progress.
    #[must_use]
    pub fn new(sizes: Sizes) -> Self {
        assert!(sizes.budget > 0, "a step computes at least one token");
        assert!(sizes.running_max > 0, "at least one request runs");
        Self { sizes, waiting: Vec::new(), running: Vec::new(), added: 0, plans: 0 }
    }

    /// Most tokens that one forward pass computes, from the next plan on.
    ///
    /// # Panics
    /// If `budget` is 0.
    pub fn set_budget(&mut self, budget: usize) {
        assert!(budget > 0, "a step computes at least one token");
        self.sizes.budget = budget;
    }

    /// Most tokens that one forward pass computes.
    #[must_use]
    pub fn budget(&self) -> usize {
        self.sizes.budget
    }

    /// Adds a request to those that wait.
    ///
    /// # Panics
    /// If it has no token, or is here already.
    pub fn add(&mut self, arrival: Arrival) {
        let Arrival { id, tokens, priority, follows } = arrival;
        assert!(tokens > 0, "something is left to compute");
        assert!(self.entry(id).is_none(), "request {id} is here already");
        self.waiting.push(Entry {
            id,
            tokens,
            computed: 0,
            drafts: 0,
            prompt_tokens: tokens,
            has_prompt: false,
            priority,
            // One that ended already can hold nobody up.
            follows: follows.filter(|&leader| self.entry(leader).is_some()),
            place: self.added,
            first_plan: self.plans,
            last_plan: 0,
        });
        self.added += 1;
    }

    /// Plans one forward pass: decodes first, then prompts in chunks, then who waits.
    ///
    /// Where blocks run out, the run that ranks last is preempted: it waits again and is
    /// computed again. The run that ranks first is never preempted by another, so every plan
    /// brings it nearer to its end.
    pub fn plan(&mut self, room: &mut dyn Room) -> Plan {
        self.plans += 1;
        self.age();
        self.running.sort_by_key(Entry::rank);
        let mut plan = Plan::default();
        let mut budget = self.sizes.budget;
        let decodes = self.decodes();
        let for_prompts = self.prefill_share();
        let mut first = 0;
        while budget > for_prompts && first < decodes.len() {
            self.extend(decodes[first], &mut budget, &mut plan, room);
            first += 1;
        }
        let prompts: Vec<RequestId> =
            self.running.iter().filter(|entry| entry.is_prompt()).map(|entry| entry.id).collect();
        for id in prompts {
            self.extend(id, &mut budget, &mut plan, room);
        }
        // Room that had to be taken from someone is not for those who come later.
        if plan.preempted.is_empty() {
            self.admit(&mut budget, &mut plan, room);
        }
        for &id in &decodes[first..] {
            self.extend(id, &mut budget, &mut plan, room);
        }
        self.extend_by_drafts(budget, &mut plan, room);
        plan
    }

    /// Adds the token that was just chosen to its request, and those that are known to follow it:
    /// `tokens` together, at least 1.
    ///
    /// # Panics
    /// If the request does not run or was not due a token.
    pub fn append(&mut self, id: RequestId, tokens: usize) {
        assert!(tokens > 0, "a choice is a token");
        self.due(id).tokens += tokens;
    }

    /// Has the next plan compute `count` drafts behind the newest token of a decode, where the
    /// budget and the blocks have room left for them: nobody gives way for a draft.
    pub fn draft(&mut self, id: RequestId, count: usize) {
        if let Some(entry) = self.running.iter_mut().find(|entry| entry.id == id) {
            entry.drafts = if entry.is_decode() { count } else { 0 };
        }
    }

    /// Takes `count` drafts of the last plan as tokens that are known and computed, before the
    /// token that was chosen behind them is appended.
    ///
    /// # Panics
    /// If the request does not run or was not due a token.
    pub fn accept(&mut self, id: RequestId, count: usize) {
        let entry = self.due(id);
        entry.tokens += count;
        entry.computed += count;
    }

    /// The request that is due a token.
    fn due(&mut self, id: RequestId) -> &mut Entry {
        let entry = self.running.iter_mut().find(|entry| entry.id == id);
        let entry = entry.expect("invariant: only a running request gets tokens");
        assert_eq!(entry.tokens, entry.computed, "a token follows the newest one's logits");
        entry
    }

    /// Ends a request, whether it waits or runs; false where it is unknown.
    ///
    /// What it held in the room is the caller's to give back.
    pub fn remove(&mut self, id: RequestId) -> bool {
        let before = self.waiting.len() + self.running.len();
        self.waiting.retain(|entry| entry.id != id);
        self.running.retain(|entry| entry.id != id);
        self.waiting.len() + self.running.len() < before
    }

    /// Makes a request more or less urgent; its place in the order of arrival stays.
    pub fn set_priority(&mut self, id: RequestId, priority: Priority) {
        let entries = self.waiting.iter_mut().chain(&mut self.running);
        entries.filter(|entry| entry.id == id).for_each(|entry| entry.priority = priority);
    }

    /// Tokens of a request that are computed (or planned), and those that are known.
    #[must_use]
    pub fn progress(&self, id: RequestId) -> Option<(usize, usize)> {
        self.entry(id).map(|entry| (entry.computed, entry.tokens))
    }

    /// Requests that run.
    #[must_use]
    pub fn running_count(&self) -> usize {
        self.running.len()
    }

    /// Requests that wait.
    #[must_use]
    pub fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    /// The request that is to run next.
    #[must_use]
    pub fn next_waiting(&self) -> Option<RequestId> {
        self.waiting.iter().min_by_key(|entry| entry.rank()).map(|entry| entry.id)
    }

    pub(crate) fn entry(&self, id: RequestId) -> Option<&Entry> {
        self.running.iter().chain(&self.waiting).find(|entry| entry.id == id)
    }

    /// Notes whose prompt the passes up to here computed.
    ///
    /// A batch request that is old enough counts as interactive, in its place of arrival, so
    /// that nobody who comes later goes before it for ever.
    fn age(&mut self) {
        for entry in self.waiting.iter_mut().chain(&mut self.running) {
            entry.has_prompt |= entry.computed >= entry.prompt_tokens;
            let age = self.plans - entry.first_plan;
            if entry.priority == Priority::Batch && age > self.sizes.patience {
                entry.priority = Priority::Interactive;
            }
        }
    }

    /// Running requests with the newest positions to compute: by rank, or, where not all find
    /// room in one pass, those first that were left out the longest.
    fn decodes(&self) -> Vec<RequestId> {
        let mut decodes: Vec<&Entry> =
            self.running.iter().filter(|entry| entry.is_decode()).collect();
        let positions: usize = decodes.iter().map(|entry| entry.left()).sum();
        if positions > self.sizes.budget - self.prefill_share() {
            decodes.sort_by_key(|entry| (entry.last_plan, entry.rank()));
        }
        decodes.iter().map(|entry| entry.id).collect()
    }

    /// Tokens of the budget that decodes leave to prompts, where there is a prompt to compute.
    fn prefill_share(&self) -> usize {
        let is_open = self.running.len() < self.sizes.running_max && !self.waiting.is_empty();
        if !is_open && !self.running.iter().any(Entry::is_prompt) {
            return 0;
        }
        let budget = self.sizes.budget;
        // A budget too small to share is given to each side in turn.
        let turn = usize::from(self.plans.is_multiple_of(2));
        if budget < PREFILL_SHARE { turn } else { budget / PREFILL_SHARE }
    }

    /// Plans as many tokens of a running request as the budget allows.
    fn extend(&mut self, id: RequestId, budget: &mut usize, plan: &mut Plan, room: &mut dyn Room) {
        // Every turn preempts a run, the last possible one being this one.
        while let Some(index) = self.running.iter().position(|entry| entry.id == id) {
            let entry = &mut self.running[index];
            let token_count = entry.left().min(*budget);
            if token_count == 0 {
                return;
            }
            if room.reserve(id, entry.computed + token_count) {
                *budget -= token_count;
                plan.scheduled.push(entry.schedule(token_count, self.plans));
                return;
            }
            *budget += self.preempt_last(plan, room);
        }
    }

    /// Adds drafts to what reaches its newest token, with what is left of the budget.
    fn extend_by_drafts(&mut self, mut budget: usize, plan: &mut Plan, room: &mut dyn Room) {
        for entry in &mut self.running {
            let drafts = std::mem::take(&mut entry.drafts).min(budget);
            let scheduled = plan.scheduled.iter_mut().find(|s| s.id == entry.id && s.samples);
            let Some(scheduled) = scheduled.filter(|_| drafts > 0) else { continue };
            if room.reserve(entry.id, entry.tokens + drafts) {
                scheduled.drafts = drafts;
                budget -= drafts;
            }
        }
    }

    /// Lets requests that wait run, best rank first and none before its better, while there are
    /// slots, blocks and budget.
    fn admit(&mut self, budget: &mut usize, plan: &mut Plan, room: &mut dyn Room) {
        while *budget > 0 {
            let Some(index) = self.next_admissible() else { return };
            let Entry { id, tokens, priority, .. } = self.waiting[index];
            let spare = self.running.len();
            let has_slot = spare < self.sizes.running_max;
            let room_found = if has_slot { room.admit(id, tokens, spare) } else { None };
            if let Some(computed) = room_found {
                let mut entry = self.waiting.remove(index);
                entry.computed = computed;
                let token_count = entry.left().min(*budget);
                if !room.reserve(id, computed + token_count) {
                    room.release(id);
                    entry.computed = 0;
                    self.waiting.push(entry);
                    return;
                }
                *budget -= token_count;
                plan.admitted.push((id, computed));
                plan.scheduled.push(entry.schedule(token_count, self.plans));
                self.running.push(entry);
                continue;
            }
            let last = self.running.iter().max_by_key(|entry| entry.rank());
            if last.is_none_or(|last| last.priority <= priority) {
                return;
            }
            *budget += self.preempt_last(plan, room);
        }
    }

    /// The best of those that wait for nothing but room.
    fn next_admissible(&self) -> Option<usize> {
        let is_due = |entry: &Entry| {
            let leader = entry.follows.and_then(|leader| self.entry(leader));
            // A sibling that waits for the same prompt would compute it a second time; behind a
            // less urgent one it would wait for everyone.
            leader.is_none_or(|leader| leader.has_prompt || leader.priority > entry.priority)
        };
        let due = self.waiting.iter().enumerate().filter(|(_, entry)| is_due(entry));
        due.min_by_key(|(_, entry)| entry.rank()).map(|(index, _)| index)
    }

    /// Preempts the run that ranks last; gives back what it had of the budget.
    fn preempt_last(&mut self, plan: &mut Plan, room: &mut dyn Room) -> usize {
        let last = self.running.iter().max_by_key(|entry| entry.rank());
        let id = last.expect("invariant: someone runs who can be preempted").id;
        self.preempt(id, room);
        plan.preempted.push(id);
        plan.admitted.retain(|(admitted, _)| *admitted != id);
        let planned = plan.scheduled.iter().position(|scheduled| scheduled.id == id);
        let planned = planned.map(|index| plan.scheduled.remove(index));
        planned.map_or(0, |Scheduled { token_count, .. }| token_count)
    }

    /// Takes a running request's blocks: it waits again, in its old place, and is computed again.
    pub fn preempt(&mut self, id: RequestId, room: &mut dyn Room) {
        let Some(index) = self.running.iter().position(|entry| entry.id == id) else { return };
        let mut entry = self.running.remove(index);
        room.release(id);
        entry.computed = 0;
        entry.drafts = 0;
        self.waiting.push(entry);
    }
}
