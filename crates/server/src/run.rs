//! One choice of one request, from the engine's outputs to text, account and record.
//!
//! Each has a task of its own: a panic here ends one choice, and no text work stands in the way
//! of the step loop.

use std::sync::Arc;

use causeway_engine::PassAccount;
use causeway_ledger::{CacheKey, Start, Stored, Tags};
use causeway_policy::OnDisconnect;
use causeway_request::{Canceller, Priority, RequestId, StopReason};
use causeway_text::AnswerRules;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::accounts::Progress;
use crate::auth::Lease;
use crate::driver::{Delivered, Spent};
use crate::event::{Ended, Event};
use crate::observe::EndedRun;
use crate::origin::Origin;
use crate::outbox::Outbox;
use crate::reading::Reading;
use crate::results::Again;
use crate::served::Served;
use crate::state::State;

/// Everything a run needs to be read.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) id: RequestId,
    /// The id that its caller sees.
    pub(crate) wire_id: String,
    /// Its place among the answers of its key.
    pub(crate) lease: Arc<Lease>,
    pub(crate) origin: Origin,
    /// What the ledger keeps beside its record.
    pub(crate) tags: Tags,
    /// Under what its answer may be given again.
    pub(crate) cache_key: Option<CacheKey>,
    pub(crate) model: Arc<Served>,
    pub(crate) state: Arc<State>,
    /// Taken when the run is read.
    pub(crate) start: Option<Start>,
    pub(crate) rules: AnswerRules,
    /// How many of the best tokens are told beside each; `None` where no tokens are.
    pub(crate) wants_tokens: Option<usize>,
    pub(crate) on_disconnect: OnDisconnect,
    pub(crate) arrived_ns: u64,
    pub(crate) steps: UnboundedReceiver<Delivered>,
    pub(crate) outbox: Outbox,
    pub(crate) progress: Arc<Progress>,
}

impl Run {
    /// Reads the run in a task of its own; one that panics says so in its account.
    pub(crate) fn spawn(self) {
        let progress = Arc::clone(&self.progress);
        let (state, id) = (Arc::clone(&self.state), self.wire_id.clone());
        let model = self.model.about.model.name.clone();
        tokio::spawn(async move {
            if tokio::spawn(self.read()).await.is_err() {
                progress.lost("reading the answer panicked; other requests go on");
                state.observer.lost(&id, &model);
            }
        });
    }

    /// Gives the answer that was given before, in place of a run.
    pub(crate) fn give(self, stored: Stored) {
        self.tell(&stored, &PassAccount::default(), true);
        let again = Again {
            stored,
            model: self.model,
            rules: self.rules,
            wants_tokens: self.wants_tokens.is_some(),
            outbox: self.outbox,
            progress: self.progress,
        };
        tokio::spawn(again.give());
    }

    /// Reads the run to its end, keeps its record, and tells whoever waits.
    async fn read(mut self) {
        let model = Arc::clone(&self.model);
        let rules = std::mem::take(&mut self.rules);
        let wants_tokens = self.wants_tokens.is_some();
        let start = self.start.take().expect("invariant: a run is read once");
        let mut reading = Reading::new(&model, start, &rules, wants_tokens);
        let mut has_reader = true;
        let spent = loop {
            tokio::select! {
                biased;
                delivered = self.steps.recv() => match delivered {
                    Some(Delivered::Ended(spent)) => break *spent,
                    Some(delivered) => self.take(delivered, &mut reading, &rules),
                    None => break lost(self.state.clock.now_ns()),
                },
                room = self.outbox.room(), if has_reader && self.outbox.has_pending() => {
                    has_reader = room.is_ok();
                    if has_reader {
                        self.outbox.flush();
                    } else {
                        self.disconnected();
                    }
                }
                () = self.outbox.closed(), if has_reader => {
                    has_reader = false;
                    self.disconnected();
                }
            }
        };
        let clock = self.state.clock;
        let (rest, mut ended, stored) =
            reading.close(spent, self.arrived_ns, &clock, (&model, &rules));
        self.tell(&stored, &ended.passes, false);
        self.spend(&ended);
        ended.stored =
            self.state.keep(stored, std::mem::take(&mut self.tags), self.cache_key).await;
        self.progress.ended(&ended);
        if has_reader {
            self.outbox.push(rest);
            // A reader that is gone has missed nothing that its account does not say.
            let _ = self.outbox.finish(Event::Ended(Box::new(ended))).await;
        }
    }

    /// Tells those who watch that the run has ended.
    fn tell(&self, stored: &Stored, passes: &PassAccount, is_given_again: bool) {
        self.state.observer.ended(&EndedRun {
            id: &self.wire_id,
            owner: self.tags.owner.as_deref(),
            origin: &self.origin,
            record: &stored.record,
            record_id: stored.id,
            passes,
            is_given_again,
        });
    }

    /// Counts what the run took of its key's tokens: the choices' common prompt once.
    fn spend(&self, ended: &Ended) {
        let tokens = &ended.account.tokens;
        let prompt = if self.outbox.choice() == 0 { tokens.prompt } else { 0 };
        self.lease.spend(prompt + tokens.prefix, self.state.clock.unix_s());
    }

    /// One output of the engine, read and handed on.
    fn take(&mut self, delivered: Delivered, reading: &mut Reading<'_>, rules: &AnswerRules) {
        match delivered {
            Delivered::Prefilled { computed, known } => {
                self.progress.prefilled(computed, known);
                self.outbox.hint(Event::Prefilled { computed, known });
            }
            Delivered::Step(output) => {
                self.progress.step();
                let was_over = reading.stopped.is_some();
                self.outbox.push(reading.take(&output, &self.model, rules));
                if !was_over && let Some(stop) = &reading.stopped {
                    self.model.driver.end(self.id, stop.clone());
                }
            }
            Delivered::Ended(_) => {}
        }
    }

    /// Nobody reads any more: the policy says what becomes of the run.
    fn disconnected(&self) {
        let driver = &self.model.driver;
        match self.on_disconnect {
            OnDisconnect::Cancel => driver.cancel(self.id, Canceller::Disconnect),
            OnDisconnect::Finish => driver.set_priority(self.id, Priority::Idle),
        }
    }
}

/// What is said of a run whose engine is gone.
fn lost(now_ns: u64) -> Spent {
    Spent {
        stop: StopReason::Error {
            message: "the engine has stopped".to_owned(),
            is_callers_mistake: false,
        },
        account: causeway_engine::PassAccount::default(),
        occupancy_max: 1,
        ended_ns: now_ns,
    }
}
