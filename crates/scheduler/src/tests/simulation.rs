//! Ten thousand steps of bursts, aborts and tiny caches, every invariant checked after each.

use std::collections::{BTreeMap, BTreeSet};

use causeway_request::{Priority, RequestId};

use super::world::{Counter, Dice};
use crate::{Arrival, Plan, Room, Scheduled, Scheduler, Sizes};

const STEPS: usize = 10_000;
/// Requests that wait and run, so that the end of a simulation is near.
const ALIVE_MAX: usize = 40;

/// Plans that a running decode may be left out of in a row: each side has its turn, and the
/// decodes take turns among themselves.
fn idle_max(sizes: Sizes) -> usize {
    2 * (sizes.running_max.div_ceil(sizes.budget) + 2)
}

/// A way to break a scheduler, to see that the simulation catches it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// Plans one token more than the budget, once in a while.
    Overruns,
    /// A preempted request is forgotten.
    Loses,
    /// Lets a request through before the one that came first.
    Jumps,
    /// Keeps the blocks of who was preempted.
    Leaks,
    /// Leaves one running request out for ever.
    Starves,
    /// Says that a token is due where the newest position was not computed.
    Hurries,
}

/// What the simulation itself knows of a request.
#[derive(Debug, Clone)]
struct Shadow {
    place: usize,
    priority: Priority,
    tokens: usize,
    computed: usize,
    new_left: usize,
    is_running: bool,
    idle: usize,
}

struct Simulation {
    scheduler: Scheduler,
    sizes: Sizes,
    blocks: usize,
    room: Counter,
    alive: BTreeMap<RequestId, Shadow>,
    dice: Dice,
    added: usize,
    ended: usize,
    preempted: usize,
    fault: Fault,
    held_back: Option<Arrival>,
}

/// A room that forgets to take blocks back.
struct Leaky<'a>(&'a mut Counter, BTreeSet<RequestId>);

impl Room for Leaky<'_> {
    fn admit(&mut self, id: RequestId, tokens: usize, spare: usize) -> Option<usize> {
        self.0.admit(id, tokens, spare)
    }

    fn reserve(&mut self, id: RequestId, end: usize) -> bool {
        self.0.reserve(id, end)
    }

    fn release(&mut self, id: RequestId) {
        if self.1.insert(id) && self.0.held_count() > 4 {
            self.0.remove(id);
        }
    }
}

impl Simulation {
    fn new(seed: u64, fault: Fault) -> Self {
        let mut dice = Dice::new(seed);
        let budget = [1, 3, 16, 64, 512][dice.below(5)];
        let running_max = 1 + dice.below(12);
        let sizes = Sizes { running_max, budget, patience: 50 };
        // The longest request has 60 + 40 tokens, so seven blocks are the least.
        let blocks = 7 + [0, 3, 30][dice.below(3)];
        let mut room = Counter::new(blocks);
        room.hit_part = dice.below(3);
        Self {
            scheduler: Scheduler::new(sizes),
            sizes,
            blocks,
            room,
            alive: BTreeMap::new(),
            dice,
            added: 0,
            ended: 0,
            preempted: 0,
            fault,
            held_back: None,
        }
    }

    fn arrive(&mut self) {
        let id = RequestId(self.added as u64);
        let (tokens, new_left) = (1 + self.dice.below(60), 1 + self.dice.below(40));
        let priority = [Priority::Interactive, Priority::Batch, Priority::Idle];
        let priority = priority[self.dice.below(3)];
        let leader = self.alive.keys().next_back().copied();
        let follows = leader.filter(|_| self.dice.one_in(5));
        let arrival = Arrival { id, tokens, priority, follows };
        let place = self.added;
        let (computed, is_running, idle) = (0, false, 0);
        let shadow = Shadow { place, priority, tokens, computed, new_left, is_running, idle };
        self.added += 1;
        self.alive.insert(id, shadow);
        if self.fault == Fault::Jumps && self.held_back.is_none() {
            self.held_back = Some(Arrival { follows: None, ..arrival });
            return;
        }
        self.scheduler.add(arrival);
        if let Some(late) = self.held_back.take() {
            self.scheduler.add(late);
        }
    }

    fn abort(&mut self) {
        let count = self.alive.len();
        let Some(&id) = self.alive.keys().nth(self.dice.below(count.max(1))) else { return };
        self.scheduler.remove(id);
        self.room.remove(id);
        self.alive.remove(&id);
        self.ended += 1;
    }

    fn plan(&mut self) -> Plan {
        let ids: Vec<RequestId> = self.alive.keys().copied().collect();
        for id in ids {
            if self.dice.one_in(3) {
                self.scheduler.draft(id, self.dice.below(5));
            }
        }
        let mut plan = if self.fault == Fault::Leaks {
            self.scheduler.plan(&mut Leaky(&mut self.room, BTreeSet::new()))
        } else {
            self.scheduler.plan(&mut self.room)
        };
        match self.fault {
            Fault::Overruns => {
                if let Some(last) = plan.scheduled.last_mut().filter(|last| !last.samples) {
                    last.token_count += 1;
                }
            }
            Fault::Loses => plan.preempted.iter().for_each(|&id| {
                self.scheduler.remove(id);
            }),
            Fault::Starves => {
                let is_starved = |s: &Scheduled| s.samples && s.token_count == 1 && s.id.0 % 7 == 3;
                let spared = plan.scheduled.iter().position(|s| !is_starved(s));
                plan.scheduled.retain(|s| spared.is_none() || !is_starved(s));
            }
            Fault::Hurries => plan.scheduled.iter_mut().for_each(|s| s.samples = true),
            Fault::None | Fault::Jumps | Fault::Leaks => (),
        }
        plan
    }

    /// One step; the first invariant that does not hold is the error.
    fn step(&mut self, quiet: bool) -> Result<(), String> {
        if !quiet {
            let burst = if self.dice.one_in(40) { self.dice.below(15) } else { 0 };
            let count = burst + usize::from(self.dice.one_in(8));
            let places = ALIVE_MAX.saturating_sub(self.alive.len());
            (0..count.min(places)).for_each(|_| self.arrive());
            if self.dice.one_in(30) {
                self.abort();
            }
            if self.dice.one_in(100) {
                self.sizes.budget = 1 + self.dice.below(40);
                self.scheduler.set_budget(self.sizes.budget);
            }
        }
        let plan = self.plan();
        self.follow(&plan)?;
        self.check_counts()?;
        self.check_order(&plan)?;
        self.choose(&plan);
        Ok(())
    }

    /// Follows the plan in the simulation's own books.
    fn follow(&mut self, plan: &Plan) -> Result<(), String> {
        if plan.rows() > self.sizes.budget {
            return Err(format!("{} rows in a budget of {}", plan.rows(), self.sizes.budget));
        }
        if plan.scheduled.is_empty() && !self.alive.is_empty() {
            return Err("no progress".to_owned());
        }
        for id in &plan.preempted {
            let shadow = self.alive.get_mut(id).ok_or("a stranger was preempted")?;
            (shadow.computed, shadow.is_running) = (0, false);
            self.preempted += 1;
        }
        for (id, computed) in &plan.admitted {
            let shadow = self.alive.get_mut(id).ok_or("a stranger was admitted")?;
            (shadow.computed, shadow.is_running, shadow.idle) = (*computed, true, 0);
        }
        let mut seen = BTreeSet::new();
        for s in &plan.scheduled {
            let shadow = self.alive.get_mut(&s.id).ok_or("a stranger was scheduled")?;
            let end = s.first_position + s.token_count;
            if !seen.insert(s.id) || !shadow.is_running || s.token_count == 0 {
                return Err(format!("{} has no place in the plan", s.id));
            }
            if s.first_position != shadow.computed || end > shadow.tokens {
                return Err(format!("{} skips or repeats positions", s.id));
            }
            if s.samples != (end == shadow.tokens) {
                return Err(format!("{} is due a token at the wrong time", s.id));
            }
            if !self.room.covers(s.id, end + s.drafts) {
                return Err(format!("{} has no block for position {}", s.id, end + s.drafts - 1));
            }
            if s.drafts > 0 && !s.samples {
                return Err(format!("{} drafts behind what is not reached", s.id));
            }
            (shadow.computed, shadow.idle) = (end, 0);
        }
        for (id, shadow) in self.alive.iter_mut().filter(|(id, _)| !seen.contains(id)) {
            let is_decode = shadow.is_running && shadow.tokens - shadow.computed == 1;
            shadow.idle += usize::from(is_decode);
            if shadow.idle > idle_max(self.sizes) {
                return Err(format!("{id} was left out of {} plans", shadow.idle));
            }
        }
        Ok(())
    }

    fn check_counts(&self) -> Result<(), String> {
        let running = self.alive.values().filter(|shadow| shadow.is_running).count();
        let waiting = self.alive.len() - running - usize::from(self.held_back.is_some());
        let counts = (self.scheduler.running_count(), self.scheduler.waiting_count());
        if counts != (running, waiting) || running > self.sizes.running_max {
            return Err(format!("{counts:?} run and wait, {running} and {waiting} should"));
        }
        if self.room.held_count() > self.blocks {
            return Err("more blocks are held than there are".to_owned());
        }
        match self.room.held.keys().find(|id| !self.alive.get(id).is_some_and(|s| s.is_running)) {
            Some(id) => Err(format!("{id} does not run and holds blocks")),
            None => Ok(()),
        }
    }

    /// Who was admitted came before all of its priority that still wait.
    fn check_order(&self, plan: &Plan) -> Result<(), String> {
        for (id, _) in &plan.admitted {
            let Some(admitted) = self.alive.get(id) else { continue };
            for (other, shadow) in &self.alive {
                let waits_for_sibling = self.scheduler.entry(*other).is_some_and(|entry| {
                    entry.follows.is_some_and(|leader| self.alive.contains_key(&leader))
                });
                if !shadow.is_running
                    && !waits_for_sibling
                    && shadow.priority == admitted.priority
                    && shadow.place < admitted.place
                    && !plan.preempted.contains(other)
                {
                    return Err(format!("{id} was admitted before {other}"));
                }
            }
        }
        Ok(())
    }

    fn choose(&mut self, plan: &Plan) {
        for s in plan.scheduled.iter().filter(|s| s.samples) {
            let shadow = self.alive.get_mut(&s.id).unwrap();
            shadow.new_left -= 1;
            // Of the drafts some are what is chosen.
            let accepted = self.dice.below(s.drafts + 1).min(shadow.new_left.saturating_sub(1));
            shadow.new_left -= accepted;
            shadow.tokens += accepted;
            shadow.computed += accepted;
            self.scheduler.accept(s.id, accepted);
            // Some choices leave no doubt about the tokens behind them.
            let ahead = if self.dice.one_in(4) { self.dice.below(50) } else { 0 };
            let ahead = ahead.min(shadow.new_left.saturating_sub(1));
            shadow.new_left -= ahead;
            if shadow.new_left == 0 {
                self.scheduler.remove(s.id);
                self.room.remove(s.id);
                self.alive.remove(&s.id);
                self.ended += 1;
            } else {
                shadow.tokens += 1 + ahead;
                self.scheduler.append(s.id, 1 + ahead);
            }
        }
    }
}

/// Runs one seed; an error names seed and step, so that it can be run again.
fn simulate(seed: u64, steps: usize, fault: Fault) -> Result<Simulation, String> {
    let mut simulation = Simulation::new(seed, fault);
    for step in 0..steps {
        simulation.step(false).map_err(|error| format!("seed {seed}, step {step}: {error}"))?;
    }
    // Everyone left has at most 100 tokens, computed again at most once for each other.
    let enough = 100 * (simulation.alive.len() + 1) * (simulation.alive.len() + 1);
    for step in 0..enough {
        if simulation.alive.is_empty() {
            break;
        }
        simulation.step(true).map_err(|error| format!("seed {seed}, drain {step}: {error}"))?;
    }
    if simulation.alive.is_empty() && simulation.room.held_count() == 0 {
        return Ok(simulation);
    }
    Err(format!("seed {seed}: {} requests never end", simulation.alive.len()))
}

#[test]
fn every_invariant_holds_for_ten_thousand_steps() {
    let mut preempted = 0;
    for seed in 0..12 {
        let simulation = simulate(seed, STEPS, Fault::None).unwrap();
        assert_eq!(simulation.added, simulation.ended, "seed {seed}");
        preempted += simulation.preempted;
    }
    assert!(preempted > 1_000, "the caches are small enough to matter: {preempted}");
}

#[test]
fn a_broken_scheduler_is_caught() {
    for (fault, want) in [
        (Fault::Overruns, "in a budget of"),
        (Fault::Loses, "run and wait"),
        (Fault::Jumps, "was admitted before"),
        (Fault::Leaks, "does not run and holds blocks"),
        (Fault::Starves, "was left out"),
        (Fault::Hurries, "at the wrong time"),
    ] {
        let errors = (0..12).filter_map(|seed| simulate(seed, 2_000, fault).err());
        let errors: Vec<String> = errors.collect();
        assert!(errors.iter().any(|error| error.contains(want)), "{fault:?}: {errors:?}");
    }
}

/// Plans until a batch request ends, while interactive ones keep every slot busy.
fn plans_of_a_batch_request(patience: u64) -> Option<usize> {
    let mut scheduler = Scheduler::new(Sizes { running_max: 2, budget: 8, patience });
    let mut room = Counter::new(16);
    let arrival = |id, priority| Arrival { id: RequestId(id), tokens: 4, priority, follows: None };
    scheduler.add(arrival(0, Priority::Batch));
    for plan in 0..2_000 {
        scheduler.add(arrival(plan as u64 + 1, Priority::Interactive));
        for s in scheduler.plan(&mut room).scheduled.iter().filter(|s| s.samples) {
            if s.first_position + s.token_count < 8 {
                scheduler.append(s.id, 1);
                continue;
            }
            if s.id == RequestId(0) {
                return Some(plan);
            }
            scheduler.remove(s.id);
            room.remove(s.id);
        }
    }
    None
}

#[test]
fn a_batch_request_does_not_starve() {
    let plans = plans_of_a_batch_request(200).expect("it ends");
    assert!((200..230).contains(&plans), "{plans}");
    assert_eq!(plans_of_a_batch_request(u64::MAX), None, "without patience it would");
}
