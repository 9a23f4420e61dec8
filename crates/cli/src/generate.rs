//! One request from its tokens to its record: drives the engine, the text and the account.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use causeway_engine::{Ended, Engine, Output, Submission};
use causeway_ledger::{DraftCount, MaskWaits, Measured, Record, RecordBuilder, Shown, Start};
use causeway_policy::{OnDisconnect, Policy};
use causeway_request::{Canceller, RequestId, StepOutput, StopReason};
use causeway_session::Forms;
use causeway_text::{Answer, Text};

use crate::clock::Clock;
use crate::failure::Failure;
use crate::loaded::session_failure;

/// What a watcher is told while the answer comes.
pub(crate) trait Watcher {
    /// One step ran; `piece` is the token's own bytes.
    fn step(&mut self, output: &StepOutput, piece: &[u8]) -> Result<(), Failure>;
    /// A pass computed a part of the prompt that was too long for one.
    fn prefilled(&mut self, _computed: usize, _known: usize) {}
    /// The whole of a prompt that was too long for one pass is computed.
    fn prefill_ended(&mut self) {}
    /// Text that is part of the answer.
    fn text(&mut self, text: &str) -> Result<(), Failure>;
}

/// A request ready to run.
pub(crate) struct Job<'a> {
    pub(crate) start: Start,
    pub(crate) policy: Policy,
    /// Absent for a model that takes token ids only.
    pub(crate) forms: Option<&'a Forms>,
}

/// Watches nothing: the record is looked at when the run has ended.
pub(crate) struct Unwatched;

impl Watcher for Unwatched {
    fn step(&mut self, _output: &StepOutput, _piece: &[u8]) -> Result<(), Failure> {
        Ok(())
    }

    fn text(&mut self, _text: &str) -> Result<(), Failure> {
        Ok(())
    }
}

/// Runs one request to its end, or until `interrupted`.
///
/// The record is complete whatever ended the run; an error of the run is its stop reason.
pub(crate) fn generate<'a>(
    engine: &mut Engine,
    job: Job<'a>,
    clock: &Clock,
    interrupted: &AtomicBool,
    watcher: &mut dyn Watcher,
) -> Result<Record, Failure> {
    let Job { start, policy, forms } = job;
    let text = forms.map(Forms::text);
    let id = RequestId(start.request.id);
    let request = start.request.effective.to_request(id);
    let rules = causeway_session::answer_rules(&policy, &start, text.map(Arc::as_ref));
    let prefilled = start.request.effective.prefilled_tokens.as_slice();
    let guide = |forms: &Forms| {
        let form = forms.plan(&policy.file().constraints.form);
        let form = form.map_err(|error| session_failure(error.into()))?;
        causeway_session::guide(&policy, &rules, form.as_ref(), prefilled, forms.text())
            .map_err(session_failure)
    };
    let guide = forms.map(guide).transpose()?.flatten();
    let answer = |text: &'a Arc<Text>| {
        Answer::new(&text.tokenizer, &rules).map(|answer| (text.as_ref(), answer))
    };
    let answer = text.map(answer);
    let reader = answer.transpose().map_err(Failure::caller)?;
    let stop_strings = policy.stop_strings().to_vec();
    let cancels = policy.file().operation.on_disconnect == OnDisconnect::Cancel;
    let arrived_ns = clock.now_ns();
    submit(engine, Submission { guide, ..Submission::new(request, policy, arrived_ns) })?;
    let mut run = Run {
        id,
        builder: RecordBuilder::new(start),
        reader,
        stop_strings,
        answer: String::new(),
        is_chunked: false,
        is_unread: false,
    };
    let Ended { stop, account, .. } = loop {
        let by = if interrupted.load(Ordering::Relaxed) {
            Some(Canceller::Client)
        } else {
            (run.is_unread && cancels).then_some(Canceller::Disconnect)
        };
        if let Some(ended) = by.and_then(|by| engine.cancel(id, by)) {
            break ended;
        }
        if let Some(ended) = run.step(engine, clock, watcher)? {
            break ended;
        }
    };
    let measured = Measured {
        scheduled_unix_ms: clock.start_unix_ms + arrived_ns / 1_000_000,
        late_ns: 0,
        queued_ns: account.queued_ns.unwrap_or_default(),
        ended_ns: clock.now_ns() - arrived_ns,
        cached_tokens: u64::try_from(account.cached_tokens).unwrap_or(u64::MAX),
        prefill_passes: account.prefill_passes,
        decode_passes: account.decode_passes,
        masks: MaskWaits::of(account.masked_passes, account.mask_waits, account.mask_wait_ns),
        drafts: DraftCount::of(account.drafted_tokens, account.accepted_tokens),
    };
    run.finish(stop, &measured, watcher)
}

/// A run on its way into its record.
struct Run<'t> {
    id: RequestId,
    builder: RecordBuilder,
    reader: Option<(&'t Text, Answer<'t>)>,
    stop_strings: Vec<String>,
    answer: String,
    /// The prompt was too long for one pass.
    is_chunked: bool,
    /// Whoever read the answer went away.
    is_unread: bool,
}

impl Run<'_> {
    /// One step of the engine, read, recorded and shown; says whether it was the last.
    fn step(
        &mut self,
        engine: &mut Engine,
        clock: &Clock,
        watcher: &mut dyn Watcher,
    ) -> Result<Option<Ended>, Failure> {
        let (mut ended, mut stopped) = (None, None);
        let outputs = engine.step(&mut || clock.now_ns());
        if outputs.is_empty() {
            let (computed, known) = engine.progress(self.id).unwrap_or_default();
            watcher.prefilled(computed, known);
            self.is_chunked = true;
        }
        for output in outputs {
            match output {
                // Tokens that were laid behind the end of the text are no part of it.
                Output::Step(_) if stopped.is_some() => {}
                Output::Step(output) => stopped = self.read(&output, watcher)?,
                Output::Ended(end) => ended = Some(end),
            }
        }
        let Some(stop) = stopped else { return Ok(ended) };
        // The step that completes a stop string may be the last one for another reason too.
        Ok(engine.end(self.id, stop.clone()).or(ended.map(|ended| Ended { stop, ..ended })))
    }

    /// One token, recorded and shown; says whether it completed a stop string.
    fn read(
        &mut self,
        output: &StepOutput,
        watcher: &mut dyn Watcher,
    ) -> Result<Option<StopReason>, Failure> {
        if std::mem::take(&mut self.is_chunked) {
            watcher.prefill_ended();
        }
        let Some((text, answer)) = &mut self.reader else {
            self.builder.push(output, []).map_err(Failure::world)?;
            watcher.step(output, &[])?;
            return Ok(None);
        };
        let token = output.choice.token;
        let piece = text.tokenizer.piece(token).map_err(Failure::world)?;
        let part = match output.choice.forced_by {
            Some(_) => answer.push_laid(token),
            None => answer.push(token),
        };
        let part = part.map_err(Failure::world)?;
        let shown = if part.is_reasoning { Shown::Reasoning } else { Shown::Visible };
        self.builder.push_shown(output, piece, shown).map_err(Failure::world)?;
        watcher.step(output, piece)?;
        self.show(&part.visible, watcher)?;
        Ok(part.stopped.map(|index| self.stop_string(index)))
    }

    fn show(&mut self, text: &str, watcher: &mut dyn Watcher) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        self.answer.push_str(text);
        if self.is_unread {
            return Ok(());
        }
        match watcher.text(text) {
            Err(Failure::ReaderGone) => {
                self.is_unread = true;
                Ok(())
            }
            shown => shown,
        }
    }

    fn stop_string(&self, index: usize) -> StopReason {
        StopReason::StopString { string: self.stop_strings[index].clone() }
    }

    /// Shows what was held back and closes the record.
    fn finish(
        mut self,
        mut stop: StopReason,
        measured: &Measured,
        watcher: &mut dyn Watcher,
    ) -> Result<Record, Failure> {
        let mut text = None;
        if let Some((of_model, reader)) = self.reader.take() {
            text = Some(of_model);
            let rest = reader.finish();
            self.show(&rest.visible, watcher)?;
            if let Some(index) = rest.stopped {
                stop = self.stop_string(index);
            }
        }
        let record = self.builder.finish(&stop, measured, self.answer);
        Ok(match text {
            Some(text) => causeway_session::with_fields(record, &text.tokenizer),
            None => record,
        })
    }
}

fn submit(engine: &mut Engine, submission: Submission) -> Result<(), Failure> {
    engine.submit(submission).map_err(|refusal| {
        if refusal.is_callers_mistake() {
            Failure::caller(refusal)
        } else {
            Failure::world(refusal)
        }
    })
}
