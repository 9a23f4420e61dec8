//! The bounded queue between those who finish records and the thread that writes them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{OnStored, PushError, WriterLimits, Written};
use crate::{Entry, Record, Sha256, StoreError};

/// Most bytes of records that one transaction takes, unless it has one record only.
const BATCH_BYTES_MAX: usize = 16 << 20;
/// Most uses of cached answers that wait to be noted.
const USED_MAX: usize = 4_096;

/// An entry in the queue.
pub(super) struct Queued {
    pub(super) entry: Entry,
    pub(super) on_stored: OnStored,
    /// Memory that it takes, estimated.
    pub(super) bytes: usize,
}

/// What the thread writes in one transaction.
pub(super) struct Batch {
    pub(super) queued: Vec<Queued>,
    pub(super) used: Vec<Sha256>,
}

/// The queue, and what its two sides tell each other.
pub(super) struct Queue {
    limits: WriterLimits,
    state: Mutex<State>,
    /// Something was pushed, or the queue was closed.
    filled: Condvar,
    /// Something left the queue, or the thread ended.
    freed: Condvar,
}

#[derive(Default)]
struct State {
    queued: VecDeque<Queued>,
    used: Vec<Sha256>,
    /// Records in the queue and in the present transaction.
    pending: usize,
    /// Their bytes.
    bytes: usize,
    is_closing: bool,
    has_ended: bool,
    fault: Option<Arc<StoreError>>,
    written: Written,
}

impl Queued {
    pub(super) fn new(entry: Entry, on_stored: OnStored) -> Self {
        let bytes = memory_bytes(&entry.record);
        Self { entry, on_stored, bytes }
    }
}

/// Bytes of memory that a record takes, from its lengths alone, so that a push stays short.
fn memory_bytes(record: &Record) -> usize {
    // A piece is an allocation of its own, mostly of one unit.
    const PIECE_BYTES: usize = 32;
    let Record { start, steps, end } = record;
    let effective = &start.request.effective;
    let tokens = effective.prompt_tokens.len() + effective.prefilled_tokens.len();
    let prompt = effective.prompt.as_ref().map_or(0, String::len);
    let template = start.template.as_ref().map_or(0, |template| template.text.len());
    size_of::<Record>()
        + steps.len() * (size_of_val(steps.as_slice()) / steps.len().max(1) + PIECE_BYTES)
        + tokens * size_of::<u32>()
        // What was received is about as long as the prompt that was made of it.
        + 2 * prompt
        + template
        + start.policy.canonical.len()
        + end.text.len()
}

/// Marks the queue as ended when the thread leaves, in whatever way.
pub(super) struct Ends<'a>(&'a Queue);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.has_ended = true;
        state.is_closing = true;
        drop(state);
        self.0.freed.notify_all();
    }
}

impl Queue {
    pub(super) fn new(limits: WriterLimits) -> Self {
        let limits = WriterLimits {
            records_max: limits.records_max.max(1),
            batch_max: limits.batch_max.max(1),
            ..limits
        };
        Self {
            limits,
            state: Mutex::new(State::default()),
            filled: Condvar::new(),
            freed: Condvar::new(),
        }
    }

    /// The state is plain counts, which a panic elsewhere cannot leave half changed.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_full(&self, state: &State, bytes: usize) -> bool {
        let over = state.bytes.saturating_add(bytes) > self.limits.bytes_max;
        state.pending >= self.limits.records_max || (over && state.pending > 0)
    }

    pub(super) fn push(&self, queued: Queued) -> Result<(), PushError> {
        let mut state = self.lock();
        while !state.is_closing && self.is_full(&state, queued.bytes) {
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        self.add(state, queued)
    }

    pub(super) fn try_push(&self, queued: Queued) -> Result<(), PushError> {
        let state = self.lock();
        if !state.is_closing && self.is_full(&state, queued.bytes) {
            let pending = state.pending;
            return Err(PushError::Full { entry: Box::new(queued.entry), pending });
        }
        self.add(state, queued)
    }

    fn add(&self, mut state: MutexGuard<'_, State>, queued: Queued) -> Result<(), PushError> {
        if state.is_closing {
            return Err(PushError::Closed { entry: Box::new(queued.entry) });
        }
        state.pending += 1;
        state.bytes += queued.bytes;
        state.queued.push_back(queued);
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    pub(super) fn touch(&self, key: Sha256) {
        let mut state = self.lock();
        if state.used.len() < USED_MAX && !state.is_closing {
            state.used.push(key);
            drop(state);
            self.filled.notify_one();
        }
    }

    /// What has gathered while the batch before was written; waits where nothing has. `None`
    /// when the queue is closed and empty.
    pub(super) fn next_batch(&self) -> Option<Batch> {
        let mut state = self.lock();
        while state.queued.is_empty() && state.used.is_empty() {
            if state.is_closing {
                return None;
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let mut bytes = 0;
        let fits = |queued: &&Queued| {
            bytes += queued.bytes;
            bytes <= BATCH_BYTES_MAX
        };
        let fitting = state.queued.iter().take(self.limits.batch_max).take_while(fits).count();
        let count = fitting.max(1).min(state.queued.len());
        let queued = state.queued.drain(..count).collect();
        Some(Batch { queued, used: std::mem::take(&mut state.used) })
    }

    /// Everything that is still queued.
    pub(super) fn drain(&self) -> Vec<Queued> {
        let mut state = self.lock();
        state.used.clear();
        state.queued.drain(..).collect()
    }

    pub(super) fn stored(&self, count: usize, bytes: usize, evicted: u64) {
        self.leave(count, bytes, |state| {
            state.fault = None;
            state.written.stored += count as u64;
            state.written.batches += 1;
            state.written.evicted += evicted;
        });
    }

    pub(super) fn refused(&self, bytes: usize) {
        self.leave(1, bytes, |state| state.written.refused += 1);
    }

    pub(super) fn lost(&self, bytes: usize) {
        self.leave(1, bytes, |state| state.written.lost += 1);
    }

    fn leave(&self, count: usize, bytes: usize, note: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        state.pending -= count;
        state.bytes -= bytes;
        note(&mut state);
        drop(state);
        self.freed.notify_all();
    }

    pub(super) fn failed(&self, error: &Arc<StoreError>) {
        let mut state = self.lock();
        state.fault = Some(Arc::clone(error));
        state.written.retries += 1;
    }

    /// Waits before another try; a queue that closes ends the first such wait early.
    pub(super) fn wait_to_retry(&self, delay: Duration) {
        let state = self.lock();
        let was_closing = state.is_closing;
        let goes_on = |state: &mut State| state.is_closing == was_closing;
        drop(self.filled.wait_timeout_while(state, delay, goes_on));
    }

    pub(super) fn close(&self) {
        self.lock().is_closing = true;
        self.filled.notify_all();
        self.freed.notify_all();
    }

    pub(super) fn ends_with_this(&self) -> Ends<'_> {
        Ends(self)
    }

    pub(super) fn limits(&self) -> WriterLimits {
        self.limits
    }

    pub(super) fn pending(&self) -> usize {
        self.lock().pending
    }

    pub(super) fn is_closing(&self) -> bool {
        self.lock().is_closing
    }

    pub(super) fn is_under_pressure(&self) -> bool {
        let state = self.lock();
        state.has_ended
            || 2 * state.pending >= self.limits.records_max
            || 2 * state.bytes >= self.limits.bytes_max
    }

    pub(super) fn fault(&self) -> Option<Arc<StoreError>> {
        self.lock().fault.clone()
    }

    pub(super) fn written(&self) -> Written {
        self.lock().written
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("pending", &self.pending()).finish_non_exhaustive()
    }
}
