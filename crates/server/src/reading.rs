//! An answer as it is read, token by token: text, record, and what may be shown when.

use std::collections::VecDeque;

use causeway_ledger::{
    CacheState, DraftCount, MaskWaits, Measured, RecordBuilder, Shown, Start, Stored,
};
use causeway_request::{StepOutput, StopReason};
use causeway_session::with_fields;
use causeway_text::{Answer, AnswerRules};

use crate::clock::Clock;
use crate::driver::Spent;
use crate::event::{Ended, Part, TokenLine};
use crate::served::Served;

/// What has been read of an answer so far.
pub(crate) struct Reading<'t> {
    answer: Answer<'t>,
    builder: RecordBuilder,
    text: String,
    /// Visible bytes that are whole, held back ones included, and those that are out.
    whole_bytes: usize,
    shown_bytes: usize,
    /// Tokens whose text is not out yet, each with the place where it ends.
    held: VecDeque<(usize, TokenLine)>,
    wants_tokens: bool,
    /// The stop string that ended the text.
    pub(crate) stopped: Option<StopReason>,
    overrun: u64,
}

impl<'t> Reading<'t> {
    /// An answer before its first token.
    pub(crate) fn new(
        model: &'t Served,
        start: Start,
        rules: &AnswerRules,
        wants_tokens: bool,
    ) -> Self {
        let answer = Answer::new(&model.text.tokenizer, rules);
        Self {
            answer: answer.expect("invariant: stop strings were checked with the request"),
            builder: RecordBuilder::new(start),
            text: String::new(),
            whole_bytes: 0,
            shown_bytes: 0,
            held: VecDeque::new(),
            wants_tokens,
            stopped: None,
            overrun: 0,
        }
    }

    /// One token: its text, its place in the record, and what may be shown.
    pub(crate) fn take(
        &mut self,
        output: &StepOutput,
        model: &Served,
        rules: &AnswerRules,
    ) -> Part {
        if self.stopped.is_some() {
            // The engine had not heard yet that the text is complete.
            self.overrun += 1;
            return Part::default();
        }
        let token = output.choice.token;
        let piece = model.text.tokenizer.piece(token).unwrap_or_default();
        let read = match output.choice.forced_by {
            Some(_) => self.answer.push_laid(token),
            None => self.answer.push(token),
        };
        let part = match read {
            Ok(part) => part,
            Err(error) => {
                self.stopped = Some(fault(&error));
                return Part::default();
            }
        };
        let shown = if part.is_reasoning { Shown::Reasoning } else { Shown::Visible };
        if let Err(error) = self.builder.push_shown(output, piece, shown) {
            self.stopped = Some(fault(&error));
            return Part::default();
        }
        self.whole_bytes += part.visible_bytes;
        self.shown_bytes += part.visible.len();
        let is_end =
            matches!(output.stop, Some(StopReason::Eos { .. } | StopReason::StopToken { .. }));
        if self.wants_tokens && !part.is_reasoning && !is_end {
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

    /// What was held back, when no more tokens come, and the stop string that was part of it.
    pub(crate) fn rest(
        &mut self,
        model: &'t Served,
        rules: &AnswerRules,
    ) -> (Part, Option<StopReason>) {
        let mut rest = Part::default();
        let mut stopped = self.stopped.take();
        if stopped.is_none() {
            let next = Answer::new(&model.text.tokenizer, &AnswerRules::default());
            let next = next.expect("invariant: no stop strings are no wrong ones");
            let part = std::mem::replace(&mut self.answer, next).finish();
            stopped = part.stopped.map(|index| stop_string(rules, index));
            self.shown_bytes += part.visible.len();
            rest = Part { visible: part.visible, reasoning: part.reasoning, tokens: Vec::new() };
        }
        // A token whose text the stop string cut in two has a part in the answer.
        let begins_inside = |held: &VecDeque<(usize, TokenLine)>, shown: usize| {
            held.front().is_some_and(|(end, line)| end.saturating_sub(line.piece.len()) < shown)
        };
        while begins_inside(&self.held, self.shown_bytes) {
            rest.tokens.extend(self.held.pop_front().map(|(_, line)| line));
        }
        self.text.push_str(&rest.visible);
        (rest, stopped)
    }

    /// Makes the record, and says what was held back.
    pub(crate) fn close(
        mut self,
        spent: Spent,
        arrived_ns: u64,
        clock: &Clock,
        (model, rules): (&'t Served, &AnswerRules),
    ) -> (Part, Ended, Stored) {
        let Spent { stop, account: passes, occupancy_max, ended_ns } = spent;
        let (rest, stopped) = self.rest(model, rules);
        let stop = stopped.unwrap_or(stop);
        let ended_ns = ended_ns.saturating_sub(arrived_ns);
        let measured = Measured {
            scheduled_unix_ms: clock.unix_ms(arrived_ns),
            late_ns: 0,
            // A run without a pass has waited to its end.
            queued_ns: passes.queued_ns.unwrap_or(ended_ns),
            ended_ns,
            cached_tokens: passes.cached_tokens as u64,
            prefill_passes: passes.prefill_passes,
            decode_passes: passes.decode_passes,
            masks: MaskWaits::of(passes.masked_passes, passes.mask_waits, passes.mask_wait_ns),
            drafts: DraftCount::of(passes.drafted_tokens, passes.accepted_tokens),
        };
        let mut record = self.builder.finish(&stop, &measured, self.text);
        let occupancy = u32::try_from(occupancy_max.max(1)).unwrap_or(u32::MAX);
        record.start.conditions.batch_occupancy = occupancy;
        if passes.cached_tokens > 0 {
            record.start.conditions.cache = CacheState::Warm;
        }
        let stored = Stored::new(with_fields(record, &model.text.tokenizer));
        let ended = Ended {
            stop,
            fields: stored.record.end.fields_account(),
            account: stored.record.end.account.clone(),
            passes,
            overrun: self.overrun,
            record: stored.id,
            stored: false,
            is_given_again: false,
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

/// What cannot be read is no mistake of the caller's.
fn fault(error: &dyn std::error::Error) -> StopReason {
    StopReason::Error { message: error.to_string(), is_callers_mistake: false }
}

fn stop_string(rules: &AnswerRules, index: usize) -> StopReason {
    StopReason::StopString { string: rules.stops[index].clone() }
}
