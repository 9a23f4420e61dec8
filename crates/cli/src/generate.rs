//! One request from its tokens to its record: drives the engine, the text and the account.

use std::sync::atomic::{AtomicBool, Ordering};

use causeway_engine::{Engine, Output};
use causeway_ledger::{Measured, Record, RecordBuilder, Shown, Start, StepError};
use causeway_policy::Policy;
use causeway_request::{Canceller, Request, RequestId, StepOutput, StopReason};
use causeway_text::{
    DetokenizeOptions, Detokenizer, ReasoningSplitter, StopMatcher, Text, TextError,
};

use crate::clock::Clock;
use crate::failure::Failure;

/// What a watcher is told while the answer comes.
pub(crate) trait Watcher {
    /// One step ran; `piece` is the token's own bytes.
    fn step(&mut self, output: &StepOutput, piece: &[u8]) -> Result<(), Failure>;
    /// Text that is part of the answer.
    fn text(&mut self, text: &str) -> Result<(), Failure>;
}

/// The text side of one answer: tokens in, what may be shown out.
struct Reader<'t> {
    text: &'t Text,
    detokenizer: Detokenizer<'t>,
    reasoning: Option<ReasoningSplitter>,
    stops: StopMatcher,
    min_tokens: u64,
    tokens: u64,
}

/// What one token adds.
struct Read {
    piece: Vec<u8>,
    shown: Shown,
    visible: String,
    stopped: Option<usize>,
}

impl<'t> Reader<'t> {
    fn new(text: &'t Text, policy: &Policy, continues: bool) -> Result<Self, Failure> {
        let options = DetokenizeOptions { show_control: false, continues };
        let reasoning = &policy.file().reasoning;
        let reasoning = reasoning.open.as_ref().zip(reasoning.close.as_ref());
        Ok(Self {
            text,
            detokenizer: Detokenizer::new(&text.tokenizer, options),
            reasoning: reasoning.map(|(open, close)| ReasoningSplitter::new(open, close, false)),
            stops: StopMatcher::new(policy.stop_strings()).map_err(Failure::caller)?,
            min_tokens: policy.min_tokens(),
            tokens: 0,
        })
    }

    fn push(&mut self, output: &StepOutput) -> Result<Read, TextError> {
        let token = output.choice.token;
        self.tokens += 1;
        let piece = self.text.tokenizer.piece(token)?.to_vec();
        let text = self.detokenizer.push(token)?;
        let (visible, shown) = match &mut self.reasoning {
            None => (text, Shown::Visible),
            Some(splitter) => {
                let inside = splitter.is_inside();
                let parts = splitter.push(&text);
                let hidden = inside || splitter.is_inside();
                (parts.visible, if hidden { Shown::Reasoning } else { Shown::Visible })
            }
        };
        let emitted = if self.tokens < self.min_tokens {
            self.stops.push_exempt(&visible)
        } else {
            self.stops.push(&visible)
        };
        Ok(Read { piece, shown, visible: emitted.text, stopped: emitted.stopped })
    }

    /// What was held back, when no more tokens come.
    fn finish(self) -> String {
        let mut stops = self.stops;
        let rest = self.detokenizer.finish();
        let mut rest_visible = rest;
        if let Some(mut splitter) = self.reasoning {
            let mut parts = splitter.push(&rest_visible).visible;
            parts.push_str(&splitter.finish().visible);
            rest_visible = parts;
        }
        let mut text = stops.push(&rest_visible).text;
        text.push_str(&stops.finish().text);
        text
    }
}

/// A request ready to run.
pub(crate) struct Job<'a> {
    pub(crate) start: Start,
    pub(crate) policy: Policy,
    pub(crate) text: Option<&'a Text>,
    /// The answer goes on from other text, so that a leading space is its own.
    pub(crate) continues: bool,
}

/// Runs one request to its end, or until `interrupted`.
///
/// The record is complete whatever ended the run; an error of the run is its stop reason.
pub(crate) fn generate(
    engine: &mut Engine,
    job: Job<'_>,
    clock: &Clock,
    interrupted: &AtomicBool,
    watcher: &mut dyn Watcher,
) -> Result<Record, Failure> {
    let Job { start, policy, text, continues } = job;
    let id = RequestId(start.request.id);
    let request = start.request.effective.to_request(id);
    let prompt_tokens = request.tokens.len();
    let mut reader = text.map(|text| Reader::new(text, &policy, continues)).transpose()?;
    let stop_strings = policy.stop_strings().to_vec();
    let arrived_ns = clock.now_ns();
    submit(engine, request, policy, arrived_ns)?;
    let mut builder = RecordBuilder::new(start);
    let mut answer = String::new();
    let first_pass = engine.pass_count();
    let mut prefill_passes = 0;
    let queued_ns = clock.now_ns() - arrived_ns;
    let stop = loop {
        if interrupted.load(Ordering::Relaxed)
            && let Some(stop) = engine.cancel(id, Canceller::Client)
        {
            break stop;
        }
        let outputs = engine.step(&mut || clock.now_ns());
        if builder.step_count() == 0 {
            prefill_passes = engine.pass_count() - first_pass;
        }
        let Some(output) = outputs.into_iter().next() else { continue };
        let output = match output {
            Output::Ended { stop, .. } => break stop,
            Output::Step(output) => output,
        };
        let read = reader.as_mut().map(|reader| reader.push(&output)).transpose();
        let read = read.map_err(Failure::world)?;
        let piece = read.as_ref().map_or(&[][..], |read| &read.piece);
        let shown = read.as_ref().map_or(Shown::Visible, |read| read.shown);
        builder
            .push_shown(&output, piece, shown)
            .map_err(|error: StepError| Failure::world(error))?;
        watcher.step(&output, piece)?;
        let read =
            read.unwrap_or(Read { piece: vec![], shown, visible: String::new(), stopped: None });
        if !read.visible.is_empty() {
            answer.push_str(&read.visible);
            watcher.text(&read.visible)?;
        }
        if let Some(index) = read.stopped {
            engine.end(id);
            break StopReason::StopString { string: stop_strings[index].clone() };
        }
        if let Some(stop) = output.stop {
            break stop;
        }
    };
    let stopped_by_string = matches!(stop, StopReason::StopString { .. });
    if let Some(reader) = reader.filter(|_| !stopped_by_string) {
        let rest = reader.finish();
        if !rest.is_empty() {
            answer.push_str(&rest);
            watcher.text(&rest)?;
        }
    }
    debug_assert!(prompt_tokens > 0, "an empty prompt is refused at submit");
    let measured = Measured {
        scheduled_unix_ms: clock.start_unix_ms + arrived_ns / 1_000_000,
        late_ns: 0,
        queued_ns,
        ended_ns: clock.now_ns() - arrived_ns,
        cached_tokens: 0,
        prefill_passes,
        decode_passes: engine.pass_count() - first_pass - prefill_passes,
    };
    Ok(builder.finish(&stop, &measured, answer))
}

fn submit(
    engine: &mut Engine,
    request: Request,
    policy: Policy,
    arrived_ns: u64,
) -> Result<(), Failure> {
    engine.submit(request, policy, arrived_ns).map_err(|refusal| {
        if refusal.is_callers_mistake() {
            Failure::caller(refusal)
        } else {
            Failure::world(refusal)
        }
    })
}
