//! Writes a record while the run goes on.

use causeway_request::{StepOutput, StopReason};

use crate::{Account, End, Measured, Record, Shown, Start, Step, Stop};

/// A record that is being made: started, one step after the other, finished.
#[derive(Debug, Clone)]
pub struct RecordBuilder {
    start: Start,
    steps: Vec<Step>,
}

/// A step that does not fit into its record.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StepError {
    #[error("a step of request {found} in the record of request {wanted}")]
    OtherRequest { wanted: u64, found: u64 },
    #[error("step {found} where step {wanted} is due")]
    OutOfOrder { wanted: u64, found: u32 },
    #[error("step {step} at {since_arrival_ns} ns, before the step before it at {previous_ns} ns")]
    TimeWentBack { step: u32, since_arrival_ns: u64, previous_ns: u64 },
    #[error("step {step} has {value} as its `{field}`, which a record cannot hold")]
    NotFinite { step: u32, field: &'static str, value: f64 },
}

impl StepError {
    /// Never so: steps come from the engine or from a file.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        false
    }
}

impl RecordBuilder {
    /// Starts a record with everything known before the run.
    #[must_use]
    pub fn new(start: Start) -> Self {
        Self { start, steps: Vec::new() }
    }

    /// How many steps the record holds so far.
    #[must_use]
    pub fn step_count(&self) -> usize {
        self.steps.len()
    }

    /// Adds a step whose text is part of the answer. `piece` is the token's own text or bytes.
    ///
    /// # Errors
    /// A step of another request, out of order, back in time, or with a number JSON cannot hold;
    /// the record is as before.
    pub fn push(&mut self, output: &StepOutput, piece: impl AsRef<[u8]>) -> Result<(), StepError> {
        self.push_shown(output, piece, Shown::Visible)
    }

    /// Adds a step and says what became of its text.
    ///
    /// # Errors
    /// As `push`.
    pub fn push_shown(
        &mut self,
        output: &StepOutput,
        piece: impl AsRef<[u8]>,
        shown: Shown,
    ) -> Result<(), StepError> {
        let (wanted, found) = (self.start.request.id, output.request.0);
        if wanted != found {
            return Err(StepError::OtherRequest { wanted, found });
        }
        let step = Step::from_output(output, piece.as_ref(), shown)?;
        if let Some(previous) = self.steps.last() {
            follows(previous, &step)?;
        }
        self.steps.push(step);
        Ok(())
    }

    /// Ends the record, whether the run came to its end or was cut short.
    ///
    /// An end token, and every token whose text lies in the stop string that ended the run,
    /// counts as hidden.
    #[must_use]
    pub fn finish(self, stop: &StopReason, measured: &Measured, text: String) -> Record {
        let Self { start, mut steps } = self;
        let stop = Stop::from(stop);
        hide_the_end(&mut steps, &stop);
        let account = Account::new(&start.request.effective, &steps, measured);
        Record { start, steps, end: End { stop, text, account, fields: None, open_field: None } }
    }
}

/// Refuses a step that cannot follow `previous`.
pub(crate) fn follows(previous: &Step, next: &Step) -> Result<(), StepError> {
    let wanted = u64::from(previous.step) + 1;
    if wanted != u64::from(next.step) {
        return Err(StepError::OutOfOrder { wanted, found: next.step });
    }
    if next.since_arrival_ns < previous.since_arrival_ns {
        return Err(StepError::TimeWentBack {
            step: next.step,
            since_arrival_ns: next.since_arrival_ns,
            previous_ns: previous.since_arrival_ns,
        });
    }
    Ok(())
}

/// Marks as hidden the visible tokens at the end that are no part of the answer.
fn hide_the_end(steps: &mut [Step], stop: &Stop) {
    let mut visible: Vec<&mut Step> =
        steps.iter_mut().filter(|step| step.shown == Shown::Visible).collect();
    let hidden_from = match stop {
        stop if stop.is_by_last_token() => visible.len().saturating_sub(1),
        Stop::StopString { string } => first_hidden(&visible, string.as_bytes()),
        _ => return,
    };
    for step in visible.drain(..).skip(hidden_from) {
        step.shown = Shown::Hidden;
    }
}

/// The first step whose text lies wholly in the stop string, or after it; the number of steps
/// where there is none.
fn first_hidden(visible: &[&mut Step], stop: &[u8]) -> usize {
    let mut text = Vec::new();
    let mut offsets = Vec::new();
    for step in visible {
        offsets.push(text.len());
        text.extend_from_slice(&step.piece.0);
    }
    // The string was completed by the last piece: a match that ends before it did not stop
    // the run, be it that a minimum length forbade it.
    let search_from = offsets.last().map_or(0, |last| (last + 1).saturating_sub(stop.len()));
    let found = text[search_from..].windows(stop.len().max(1)).position(|window| window == stop);
    let Some(found) = found else {
        return visible.len();
    };
    offsets.partition_point(|offset| *offset < search_from + found)
}

#[cfg(test)]
mod tests;
