//! The driver's loop: take commands, step, hand out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use causeway_engine::{Ended, Engine, Forward, Output, Refusal, Submission};
use causeway_request::RequestId;
use tokio::sync::oneshot;

use super::budget::{Budget, Measured};
use super::{Around, Command, Delivered, Look, Outlet, Pace, Spent, Watch};
use crate::clock::Clock;

/// One request while the engine has it.
#[derive(Debug)]
struct Live {
    outlet: Outlet,
    has_token: bool,
    /// Positions computed when its outlet last heard of it, and those known then.
    computed: usize,
    known: usize,
    occupancy_max: usize,
}

/// The driver's thread.
pub(super) struct Turns<F: Forward> {
    engine: Engine<F>,
    budget: Budget,
    around: Around,
    clock: Clock,
    watch: Arc<Watch>,
    live: BTreeMap<RequestId, Live>,
    look: Look,
}

impl<F: Forward> Turns<F> {
    pub(super) fn new(mut engine: Engine<F>, around: Around, watch: Arc<Watch>) -> Self {
        let Pace { itl_target_ns, limits } = around.pace;
        let budget = Budget::new(itl_target_ns, limits.budget);
        let tokens = engine.set_budget(budget.budget(0));
        Self {
            engine,
            budget,
            clock: around.clock,
            around,
            watch,
            live: BTreeMap::new(),
            look: Look { budget: tokens, ..Look::default() },
        }
    }

    /// Runs until nobody can send a command any more and all that was asked for has ended; what
    /// is kept of prefixes then goes where it outlives the engine.
    pub(super) fn run(mut self, commands: &Receiver<Command>) {
        loop {
            self.show();
            if self.engine.is_idle() {
                match commands.recv() {
                    Ok(command) => self.obey(command),
                    Err(_) => break,
                }
            }
            while let Ok(command) = commands.try_recv() {
                self.obey(command);
            }
            if !self.engine.is_idle() {
                // Whoever looks while a first pass hangs must see that there is work.
                self.show();
                self.step();
            }
        }
        self.engine.shelve();
    }

    fn show(&mut self) {
        self.look.load = self.engine.load();
        self.look.passes = self.engine.pass_count();
        self.look.turned_ns = self.clock.now_ns();
        self.watch.turn(self.look);
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Submit { jobs, taken } => self.submit(jobs, taken),
            Command::Cancel { id, by } => {
                let ended = self.engine.cancel(id, by);
                self.close(ended);
            }
            Command::End { id, stop } => {
                let ended = self.engine.end(id, stop);
                self.close(ended);
            }
            Command::SetPriority { id, priority } => self.engine.set_priority(id, priority),
        }
    }

    fn submit(
        &mut self,
        jobs: Vec<(Submission, Outlet)>,
        taken: oneshot::Sender<Result<(), Refusal>>,
    ) {
        let (submissions, outlets): (Vec<_>, Vec<_>) = jobs.into_iter().unzip();
        let ids: Vec<RequestId> = submissions.iter().map(|one| one.request.id).collect();
        let answer = self.engine.submit_all(submissions);
        if answer.is_ok() {
            for (id, outlet) in ids.iter().zip(outlets) {
                let live =
                    Live { outlet, has_token: false, computed: 0, known: 0, occupancy_max: 0 };
                self.live.insert(*id, live);
            }
        }
        // Whoever asked may be gone; then the outlets are closed, and the runs end below.
        let _ = taken.send(answer);
    }

    fn step(&mut self) {
        let began_ns = self.clock.now_ns();
        let clock = self.clock;
        let outputs = self.engine.step(&mut || clock.now_ns());
        let took_ns = clock.now_ns().saturating_sub(began_ns);
        let pass = self.engine.last_pass();
        if pass.rows > 0 {
            self.look.pass = pass;
        }
        for output in outputs {
            match output {
                Output::Step(step) => {
                    let Some(live) = self.live.get_mut(&step.request) else { continue };
                    if !live.has_token {
                        // A prompt that one pass computed has not been told of before.
                        let all = self.engine.progress(step.request).map(|(all, _)| all);
                        let told = (live.known > 0).then_some(live.known);
                        let known = told.or(all).unwrap_or(0);
                        let _ = live.outlet.send(Delivered::Prefilled { computed: known, known });
                    }
                    live.has_token = true;
                    live.occupancy_max = live.occupancy_max.max(pass.requests);
                    let _ = live.outlet.send(Delivered::Step(step));
                }
                Output::Ended(ended) => self.close(Some(ended)),
            }
        }
        self.report_prefill(pass.requests);
        let measured = Measured { rows: pass.rows, decodes: pass.decode_rows, took_ns };
        self.look.budget = self.engine.set_budget(self.budget.observe(measured));
        if pass.rows > 0 {
            self.around.observer.stepped(&self.around.name, &self.look, took_ns);
        }
        self.drop_unread();
    }

    /// Tells those without a token how far their prompt is.
    fn report_prefill(&mut self, requests: usize) {
        for (id, live) in self.live.iter_mut().filter(|(_, live)| !live.has_token) {
            let Some((computed, known)) = self.engine.progress(*id) else { continue };
            if computed != live.computed {
                (live.computed, live.known) = (computed, known);
                live.occupancy_max = live.occupancy_max.max(requests);
                let _ = live.outlet.send(Delivered::Prefilled { computed, known });
            }
        }
    }

    /// Ends runs whose text side is no more: a panic there, or a request given up unseen.
    fn drop_unread(&mut self) {
        let is_closed = |live: &Live| live.outlet.is_closed();
        let gone: Vec<RequestId> =
            self.live.iter().filter(|(_, live)| is_closed(live)).map(|(id, _)| *id).collect();
        for id in gone {
            let ended = self.engine.cancel(id, causeway_request::Canceller::Disconnect);
            self.close(ended);
        }
    }

    /// Says the last word to a run that ended.
    fn close(&mut self, ended: Option<Ended>) {
        let Some(Ended { request, stop, account }) = ended else { return };
        let Some(Live { outlet, occupancy_max, .. }) = self.live.remove(&request) else { return };
        let ended_ns = self.clock.now_ns();
        let _ = outlet.send(Delivered::Ended(Box::new(Spent {
            stop,
            account,
            occupancy_max,
            ended_ns,
        })));
    }
}
