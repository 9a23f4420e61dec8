//! One choice of one request, from the engine's outputs to text, account and record.
//!
//! Each has a task of its own: a panic here ends one choice, and no text work stands in the way
//! of the step loop.

use std::collections::VecDeque;
use std::sync::Arc;

use causeway_ledger::{Measured, RecordBuilder, Shown, Start, Stored, Tags};
use causeway_policy::OnDisconnect;
use causeway_request::{Canceller, Priority, RequestId, StepOutput, StopReason};
use causeway_text::{Answer, AnswerRules};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::accounts::Progress;
use crate::driver::{Delivered, Spent};
use crate::event::{Ended, Event, Part, TokenLine};
use crate::outbox::Outbox;
use crate::served::Served;
use crate::state::State;

/// Everything a run needs to be read.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) id: RequestId,
    /// The id that its caller sees.
    pub(crate) wire_id: String,
    /// What the ledger keeps beside its record.
    pub(crate) tags: Tags,
    pub(crate) model: Arc<Served>,
    pub(crate) state: Arc<State>,
    pub(crate) start: Start,
    pub(crate) rules: AnswerRules,
    /// How many of the best tokens are told beside each; `None` where no tokens are.
    pub(crate) wants_tokens: Option<usize>,
    pub(crate) on_disconnect: OnDisconnect,
    pub(crate) arrived_ns: u64,
    pub(crate) steps: UnboundedReceiver<Delivered>,
    pub(crate) outbox: Outbox,
    pub(crate) progress: Arc<Progress>,
}

/// What has been read of an answer so far.
struct Reading<'t> {
    answer: Answer<'t>,
    builder: RecordBuilder,
    text: String,
    /// Visible bytes that are whole, held back ones included, and those that are out.
    whole_bytes: usize,
    shown_bytes: usize,
    /// Tokens whose text is not out yet, each with the place where it ends.
    held: VecDeque<(usize, TokenLine)>,
    wants_tokens: Option<usize>,
    /// The stop string that ended the text.
    stopped: Option<StopReason>,
    overrun: u64,
}

impl Run {
    /// Reads the run in a task of its own; one that panics says so in its account.
    pub(crate) fn spawn(self) {
        let progress = Arc::clone(&self.progress);
        tokio::spawn(async move {
            if tokio::spawn(self.read()).await.is_err() {
                progress.lost("reading the answer panicked; other requests go on");
            }
        });
    }

    /// Reads the run to its end, keeps its record, and tells whoever waits.
    async fn read(mut self) {
        let model = Arc::clone(&self.model);
        let rules = std::mem::take(&mut self.rules);
        let answer = Answer::new(&model.text.tokenizer, &rules);
        let mut reading = Reading {
            answer: answer.expect("invariant: stop strings were checked with the request"),
            builder: RecordBuilder::new(self.start.clone()),
            text: String::new(),
            whole_bytes: 0,
            shown_bytes: 0,
            held: VecDeque::new(),
            wants_tokens: self.wants_tokens,
            stopped: None,
            overrun: 0,
        };
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
        let (rest, mut ended, stored) = reading.close(spent, self.arrived_ns, &self.state, &rules);
        self.state.observer.ended(&self.wire_id, &stored.record);
        ended.stored = self.state.keep(stored, std::mem::take(&mut self.tags)).await;
        self.progress.ended(&ended);
        if has_reader {
            self.outbox.push(rest);
            // A reader that is gone has missed nothing that its account does not say.
            let _ = self.outbox.finish(Event::Ended(Box::new(ended))).await;
        }
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

impl Reading<'_> {
    /// One token: its text, its place in the record, and what may be shown.
    fn take(&mut self, output: &StepOutput, model: &Served, rules: &AnswerRules) -> Part {
        if self.stopped.is_some() {
            // The engine had not heard yet that the text is complete.
            self.overrun += 1;
            return Part::default();
        }
        let token = output.choice.token;
        let piece = model.text.tokenizer.piece(token).unwrap_or_default();
        let part = match self.answer.push(token) {
            Ok(part) => part,
            Err(error) => {
                self.stopped = Some(StopReason::Error { message: error.to_string() });
                return Part::default();
            }
        };
        let shown = if part.is_reasoning { Shown::Reasoning } else { Shown::Visible };
        if let Err(error) = self.builder.push_shown(output, piece, shown) {
            self.stopped = Some(StopReason::Error { message: error.to_string() });
            return Part::default();
        }
        self.whole_bytes += part.visible_bytes;
        self.shown_bytes += part.visible.len();
        let is_end =
            matches!(output.stop, Some(StopReason::Eos { .. } | StopReason::StopToken { .. }));
        if self.wants_tokens.is_some() && !part.is_reasoning && !is_end {
            self.held.push_back((self.whole_bytes, token_line(output, piece)));
        }
        self.text.push_str(&part.visible);
        self.stopped = part.stopped.map(|index| stop_string(rules, index));
        let tokens = self.release(self.shown_bytes);
        Part { visible: part.visible, reasoning: part.reasoning, tokens }
    }

    /// Tokens whose text is out.
    fn release(&mut self, shown_bytes: usize) -> Vec<TokenLine> {
        let count = self.held.iter().take_while(|(end, _)| *end <= shown_bytes).count();
        self.held.drain(..count).map(|(_, line)| line).collect()
    }

    /// Makes the record, and says what was held back.
    fn close(
        mut self,
        spent: Spent,
        arrived_ns: u64,
        state: &State,
        rules: &AnswerRules,
    ) -> (Part, Ended, Stored) {
        let Spent { mut stop, account: passes, occupancy_max, ended_ns } = spent;
        let mut rest = Part::default();
        match self.stopped.take() {
            Some(stopped) => stop = stopped,
            None => {
                let part = self.answer.finish();
                if let Some(index) = part.stopped {
                    stop = stop_string(rules, index);
                }
                self.shown_bytes += part.visible.len();
                rest = Part { visible: part.visible, reasoning: part.reasoning, tokens: vec![] };
            }
        }
        // A token whose text the stop string cut in two has a part in the answer.
        let begins_inside = |held: &VecDeque<(usize, TokenLine)>, shown: usize| {
            held.front().is_some_and(|(end, line)| end.saturating_sub(line.piece.len()) < shown)
        };
        while begins_inside(&self.held, self.shown_bytes) {
            rest.tokens.extend(self.held.pop_front().map(|(_, line)| line));
        }
        self.text.push_str(&rest.visible);
        let measured = Measured {
            scheduled_unix_ms: state.clock.unix_ms(arrived_ns),
            late_ns: 0,
            queued_ns: passes.queued_ns.unwrap_or_default(),
            ended_ns: ended_ns.saturating_sub(arrived_ns),
            cached_tokens: passes.cached_tokens as u64,
            prefill_passes: passes.prefill_passes,
            decode_passes: passes.decode_passes,
        };
        let mut record = self.builder.finish(&stop, &measured, self.text);
        let occupancy = u32::try_from(occupancy_max.max(1)).unwrap_or(u32::MAX);
        record.start.conditions.batch_occupancy = occupancy;
        if passes.cached_tokens > 0 {
            record.start.conditions.cache = causeway_ledger::CacheState::Warm;
        }
        let stored = Stored::new(record);
        let ended = Ended {
            stop,
            account: stored.record.end.account.clone(),
            passes,
            overrun: self.overrun,
            record: stored.id,
            stored: false,
        };
        (rest, ended, stored)
    }
}

fn token_line(output: &StepOutput, piece: &[u8]) -> TokenLine {
    TokenLine {
        token: output.choice.token,
        piece: piece.to_vec(),
        logprob: output.choice.logprob,
        probability: output.choice.probability,
        rank: output.choice.rank,
        top: output.top.clone(),
    }
}

fn stop_string(rules: &AnswerRules, index: usize) -> StopReason {
    StopReason::StopString { string: rules.stops[index].clone() }
}

/// What is said of a run whose engine is gone.
fn lost(now_ns: u64) -> Spent {
    Spent {
        stop: StopReason::Error { message: "the engine has stopped".to_owned() },
        account: causeway_engine::PassAccount::default(),
        occupancy_max: 1,
        ended_ns: now_ns,
    }
}
