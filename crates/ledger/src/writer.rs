//! One thread that writes finished records into the store, off the step's path.

mod queue;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use self::queue::{Batch, Queue, Queued};
use crate::store::Prepared;
use crate::{CacheKey, Entry, Sha256, Store, StoreError};

/// Tries to write what is left after `close`, before it is given up.
const CLOSE_TRIES: u32 = 3;
/// The wait before a second try; it doubles with each further one.
const RETRY_MIN: Duration = Duration::from_millis(10);
/// The longest wait before another try.
const RETRY_MAX: Duration = Duration::from_secs(1);

/// What became of one record: its id once it is on the disk, or why it never will be there.
pub type StoreOutcome = Result<Sha256, Arc<StoreError>>;

/// How much may wait for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterLimits {
    /// Most records that wait, those in the present transaction included.
    pub records_max: usize,
    /// Most bytes of memory that they take, estimated; one record alone may take more.
    pub bytes_max: usize,
    /// Most records of one transaction.
    pub batch_max: usize,
    /// Most bytes of records whose answers may be given again; `None` keeps no results.
    pub result_cache_bytes_max: Option<u64>,
}

impl Default for WriterLimits {
    /// 1,024 records or 256 MiB wait, 64 in a transaction, no result cache.
    fn default() -> Self {
        Self {
            records_max: 1_024,
            bytes_max: 256 << 20,
            batch_max: 64,
            result_cache_bytes_max: None,
        }
    }
}

/// An entry that was not taken, handed back.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    #[error("{pending} records wait to be stored, which is the limit")]
    Full { entry: Box<Entry>, pending: usize },
    #[error("the ledger is closed")]
    Closed { entry: Box<Entry> },
}

/// Records that were given up when the writer closed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{count} records could not be stored")]
pub struct CloseError {
    pub count: u64,
    pub source: Arc<StoreError>,
}

/// What a writer has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// Records that are on the disk.
    pub stored: u64,
    /// Records that no store can hold.
    pub refused: u64,
    /// Records given up at the end.
    pub lost: u64,
    /// Transactions.
    pub batches: u64,
    /// Tries that failed and were made again.
    pub retries: u64,
    /// Answers that the result cache forgot to stay inside its bound.
    pub evicted: u64,
}

/// The way into a store for all threads. Ends its own thread when it is closed or dropped.
#[derive(Debug)]
pub struct Writer {
    queue: Arc<Queue>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl PushError {
    /// The entry, to try again or to keep elsewhere.
    #[must_use]
    pub fn into_entry(self) -> Entry {
        match self {
            Self::Full { entry, .. } | Self::Closed { entry } => *entry,
        }
    }

    /// Never so: how much waits is not the caller's doing.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        false
    }
}

impl CloseError {
    /// Never so: the disk failed.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        false
    }
}

impl Writer {
    /// Starts the thread, which owns the store from here on.
    ///
    /// # Panics
    /// Where the system gives no thread.
    #[must_use]
    pub fn start(store: Store, limits: WriterLimits) -> Self {
        let queue = Arc::new(Queue::new(limits));
        let of_thread = Arc::clone(&queue);
        let thread = std::thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || write_all(store, &of_thread))
            .expect("the system has room for a thread");
        Self { queue, thread: Mutex::new(Some(thread)) }
    }

    /// Hands a record over. Waits while the queue is full: a record is never dropped.
    ///
    /// # Errors
    /// A writer that was closed; the entry comes back.
    pub fn push(&self, entry: impl Into<Entry>) -> Result<(), PushError> {
        self.queue.push(Queued::new(entry.into(), None))
    }

    /// As `push`, and calls `on_stored` from the writer's thread once the record is on the disk,
    /// or once it is sure that it never will be. It must not wait for anything.
    ///
    /// # Errors
    /// As `push`; `on_stored` is not called then.
    pub fn push_then(
        &self,
        entry: impl Into<Entry>,
        on_stored: impl FnOnce(StoreOutcome) + Send + 'static,
    ) -> Result<(), PushError> {
        self.queue.push(Queued::new(entry.into(), Some(Box::new(on_stored))))
    }

    /// As `push_then`, without ever waiting.
    ///
    /// # Errors
    /// A full queue, or a writer that was closed; the entry comes back.
    pub fn try_push_then(
        &self,
        entry: impl Into<Entry>,
        on_stored: impl FnOnce(StoreOutcome) + Send + 'static,
    ) -> Result<(), PushError> {
        self.queue.try_push(Queued::new(entry.into(), Some(Box::new(on_stored))))
    }

    /// Says that a cached answer was given again, so that it is forgotten later than others.
    /// Never waits; where too many uses wait to be noted, this one is not.
    pub fn touch(&self, key: &CacheKey) {
        self.queue.touch(key.sha256());
    }

    /// Records that are not on the disk yet.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.queue.pending()
    }

    /// Whether no further request should be admitted: half the queue is taken, or the writer has
    /// ended. What runs already still has the other half.
    #[must_use]
    pub fn is_under_pressure(&self) -> bool {
        self.queue.is_under_pressure()
    }

    /// Why the last try to write failed; `None` as soon as one succeeds.
    #[must_use]
    pub fn fault(&self) -> Option<Arc<StoreError>> {
        self.queue.fault()
    }

    /// What was done so far.
    #[must_use]
    pub fn written(&self) -> Written {
        self.queue.written()
    }

    /// Takes no more records, waits until all that were taken are on the disk, and ends the
    /// thread. A second call waits for nothing.
    ///
    /// # Errors
    /// Records that could not be written after several tries.
    pub fn close(&self) -> Result<Written, CloseError> {
        self.queue.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // The thread itself never panics: it catches what its callers' closures do.
            thread.join().map_err(drop_payload).ok();
        }
        let written = self.written();
        match (written.lost, self.fault()) {
            (0, _) | (_, None) => Ok(written),
            (count, Some(source)) => Err(CloseError { count, source }),
        }
    }
}

fn drop_payload(_: Box<dyn Any + Send>) {}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close().ok();
    }
}

/// The thread: batch after batch until the queue is closed and empty.
fn write_all(mut store: Store, queue: &Queue) {
    let _ended = queue.ends_with_this();
    while let Some(batch) = queue.next_batch() {
        let Batch { queued, used } = batch;
        let mut waiting = Vec::with_capacity(queued.len());
        for Queued { entry, on_stored, bytes } in queued {
            match Prepared::of(entry) {
                Ok(prepared) => waiting.push(Waiting { prepared, on_stored, bytes }),
                Err(source) => {
                    let error = Arc::new(StoreError::Refused { source });
                    queue.refused(bytes);
                    tell(on_stored, Err(error));
                }
            }
        }
        write_batch(&mut store, queue, waiting, &used);
    }
}

type OnStored = Option<Box<dyn FnOnce(StoreOutcome) + Send>>;

/// A record that is ready for the disk.
struct Waiting {
    prepared: Prepared,
    on_stored: OnStored,
    bytes: usize,
}

/// Writes a batch, however often it takes, and tells each record's sender.
fn write_batch(store: &mut Store, queue: &Queue, mut waiting: Vec<Waiting>, used: &[Sha256]) {
    let cache_bytes_max = queue.limits().result_cache_bytes_max;
    let mut delay = RETRY_MIN;
    let mut tries_closing = 0;
    let mut at_once = waiting.len().max(1);
    let mut used = used;
    while !waiting.is_empty() || !used.is_empty() {
        let count = at_once.min(waiting.len());
        let prepared = waiting[..count].iter().map(|waiting| &waiting.prepared);
        match store.insert_all(prepared, used, cache_bytes_max) {
            Ok(evicted) => {
                used = &[];
                delay = RETRY_MIN;
                let bytes = waiting[..count].iter().map(|waiting| waiting.bytes).sum();
                queue.stored(count, bytes, evicted);
                for Waiting { prepared, on_stored, .. } in waiting.drain(..count) {
                    tell(on_stored, Ok(prepared.id()));
                }
            }
            // One of them can never be written: find it by writing each by itself.
            Err(error) if !error.may_pass() && count > 1 => at_once = 1,
            Err(error) if !error.may_pass() && count == 1 => {
                let Waiting { on_stored, bytes, .. } = waiting.remove(0);
                queue.refused(bytes);
                tell(on_stored, Err(Arc::new(error)));
            }
            Err(error) => {
                let error = Arc::new(error);
                queue.failed(&error);
                tries_closing += u32::from(queue.is_closing());
                if tries_closing > CLOSE_TRIES {
                    return give_up(queue, waiting, &error);
                }
                queue.wait_to_retry(delay);
                delay = RETRY_MAX.min(delay * 2);
            }
        }
    }
}

/// The writer was closed and the disk still fails: what waits is lost, and its senders know.
fn give_up(queue: &Queue, waiting: Vec<Waiting>, error: &Arc<StoreError>) {
    for Waiting { on_stored, bytes, .. } in waiting {
        queue.lost(bytes);
        tell(on_stored, Err(Arc::clone(error)));
    }
    for Queued { on_stored, bytes, .. } in queue.drain() {
        queue.lost(bytes);
        tell(on_stored, Err(Arc::clone(error)));
    }
}

/// Calls back; a panic over there must not end the ledger.
fn tell(on_stored: OnStored, outcome: StoreOutcome) {
    if let Some(on_stored) = on_stored {
        catch_unwind(AssertUnwindSafe(|| on_stored(outcome))).map_err(drop_payload).ok();
    }
}

#[cfg(test)]
mod tests;
