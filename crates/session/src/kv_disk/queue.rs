//! What is to be written, in order, between the caches and the one thread that writes.
//!
//! A cache never waits for the disk but to read, or when its engine goes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use causeway_kv_cache::ChainHash;

use super::folder::Folder;
use super::index::Index;
use super::{KvDiskCounts, KvDiskError, Told};

/// Most bytes that wait for the disk; what comes then is lost. A quarter of a second of a disk
/// that writes 250 MB/s.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// Most jobs that wait, beyond which no use is noted.
const JOBS_MAX: usize = 4_096;

/// What the writer is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Job {
    Write(ChainHash),
    /// Notes a use; the file had so many bytes.
    Touch(ChainHash, u64),
    Remove(ChainHash),
}

#[derive(Debug, Default)]
struct State {
    index: Index,
    jobs: VecDeque<Job>,
    /// Blocks that are not written yet; they can be read here.
    waiting: BTreeMap<ChainHash, Arc<Vec<u8>>>,
    waiting_bytes: usize,
    counts: KvDiskCounts,
    is_closed: bool,
    /// The disk failed the last time, and that was told.
    is_failing: bool,
}

/// A folder, its index, and what waits for it.
#[derive(Debug)]
pub(super) struct Queue {
    folder: Folder,
    state: Mutex<State>,
    /// Something changed: a job came, a job was done, or the queue was closed.
    changed: Condvar,
    told: Told,
}

/// Closes the queue when the writer is gone, by a panic too, so that nobody waits for it.
struct Presence<'a>(&'a Queue);

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl State {
    fn has_room(&self, bytes: usize) -> bool {
        self.waiting.is_empty() || self.waiting_bytes + bytes <= WAITING_BYTES_MAX
    }

    /// Notes that a file was used; gives its bytes where there is one.
    fn touch(&mut self, name: &ChainHash) -> Option<u64> {
        let bytes = self.index.touch(name)?;
        if self.jobs.len() < JOBS_MAX {
            self.jobs.push_back(Job::Touch(*name, bytes));
        }
        Some(bytes)
    }
}

impl Queue {
    /// # Errors
    /// Files beyond the limit that cannot be removed.
    pub(super) fn new(
        folder: Folder,
        mut index: Index,
        bytes_max: u64,
        told: Told,
    ) -> Result<Self, KvDiskError> {
        let mut counts = KvDiskCounts { bytes_max, ..KvDiskCounts::default() };
        while index.bytes() > bytes_max {
            let Some((name, _)) = index.pop_oldest() else { break };
            folder.remove(&name)?;
            counts.evicted += 1;
        }
        let state = State { index, counts, ..State::default() };
        Ok(Self { folder, state: Mutex::new(state), changed: Condvar::new(), told })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn counts(&self) -> KvDiskCounts {
        let state = self.state();
        KvDiskCounts { bytes: state.index.bytes(), blocks: state.index.count(), ..state.counts }
    }

    pub(super) fn holds(&self, name: &ChainHash) -> bool {
        let state = self.state();
        state.index.contains(name) || state.waiting.contains_key(name)
    }

    /// Whether a block should be put; one that is there already was used until now.
    pub(super) fn wants(&self, name: &ChainHash, bytes: usize) -> bool {
        let mut state = self.state();
        if state.waiting.contains_key(name) {
            return false;
        }
        if state.touch(name).is_some() {
            self.changed.notify_all();
            return false;
        }
        let fits = bytes as u64 <= state.counts.bytes_max;
        let is_wanted = fits && !state.is_closed && state.has_room(bytes);
        state.counts.lost += u64::from(!is_wanted);
        is_wanted
    }

    pub(super) fn put(&self, name: &ChainHash, bytes: Vec<u8>) {
        let mut state = self.state();
        let is_there = state.index.contains(name) || state.waiting.contains_key(name);
        // Another cache may have been quicker, or may have taken the room.
        if is_there || state.is_closed || !state.has_room(bytes.len()) {
            state.counts.lost += u64::from(!is_there);
            return;
        }
        state.waiting_bytes += bytes.len();
        state.waiting.insert(*name, Arc::new(bytes));
        state.jobs.push_back(Job::Write(*name));
        self.changed.notify_all();
    }

    /// Waits until half of what may wait is written.
    pub(super) fn wait_for_room(&self) {
        let mut state = self.state();
        while state.waiting_bytes > WAITING_BYTES_MAX / 2 && !state.is_closed {
            state = self.wait(state);
        }
    }

    /// A block, as it was put or as the disk gives it.
    pub(super) fn get(&self, name: &ChainHash) -> Option<Vec<u8>> {
        let mut state = self.state();
        if let Some(bytes) = state.waiting.get(name).cloned() {
            state.counts.read += 1;
            drop(state);
            return Some(bytes.to_vec());
        }
        let bytes = state.touch(name)?;
        self.changed.notify_all();
        drop(state);
        let read = self.folder.read(name, bytes);
        let mut state = self.state();
        match read {
            Ok(block) => {
                state.counts.read += 1;
                Some(block)
            }
            Err(error) => {
                // Where it is not in the index any more, its room was needed meanwhile.
                if state.index.remove(name).is_some() {
                    state.counts.lost += 1;
                    state.jobs.push_back(Job::Remove(*name));
                    self.changed.notify_all();
                    drop(state);
                    (self.told)(&error);
                }
                None
            }
        }
    }

    pub(super) fn discard(&self, name: &ChainHash) {
        let mut state = self.state();
        if state.index.remove(name).is_none() {
            return;
        }
        state.counts.damaged += 1;
        state.jobs.push_back(Job::Remove(*name));
        self.changed.notify_all();
        drop(state);
        (self.told)(&KvDiskError::Damaged { path: self.folder.path_of(name) });
    }

    /// Takes nothing more; the writer does what is left and ends.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }

    /// Gives the folder back, when the writer is gone.
    pub(super) fn unlock(&self) {
        self.folder.unlock();
    }

    /// The writer's thread, until the queue is closed and empty.
    pub(super) fn run(&self) {
        let _presence = Presence(self);
        while let Some(job) = self.next_job() {
            match job {
                Job::Write(name) => self.write(&name),
                Job::Touch(name, bytes) => self.folder.touch(&name, bytes),
                Job::Remove(name) => {
                    let removed = self.folder.remove(&name);
                    self.tell(removed);
                }
            }
        }
    }

    fn next_job(&self) -> Option<Job> {
        let mut state = self.state();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.is_closed {
                return None;
            }
            state = self.wait(state);
        }
    }

    /// Writes a block that waits, where room can be made for it.
    fn write(&self, name: &ChainHash) {
        let Some(bytes) = self.state().waiting.get(name).cloned() else { return };
        let written = self.make_room(bytes.len() as u64);
        let written = written.and_then(|()| self.folder.write(name, &bytes));
        let mut state = self.state();
        state.waiting.remove(name);
        state.waiting_bytes -= bytes.len();
        if written.is_ok() {
            state.index.insert(*name, bytes.len() as u64);
            state.counts.written += 1;
        } else {
            state.counts.lost += 1;
        }
        self.changed.notify_all();
        drop(state);
        self.tell(written);
    }

    /// Removes the longest unused files until so many bytes more are within the limit.
    fn make_room(&self, wanted: u64) -> Result<(), KvDiskError> {
        loop {
            let mut state = self.state();
            if state.index.bytes() + wanted <= state.counts.bytes_max {
                return Ok(());
            }
            // A block larger than the limit is never wanted, so that something is there.
            let Some((name, bytes)) = state.index.pop_oldest() else { return Ok(()) };
            drop(state);
            let removed = self.folder.remove(&name);
            let mut state = self.state();
            if let Err(error) = removed {
                // It still takes its room.
                state.index.insert(name, bytes);
                return Err(error);
            }
            state.counts.evicted += 1;
        }
    }

    /// Tells of a disk that begins to fail, once.
    fn tell(&self, done: Result<(), KvDiskError>) {
        let was_failing = std::mem::replace(&mut self.state().is_failing, done.is_err());
        if let Err(error) = done
            && !was_failing
        {
            (self.told)(&error);
        }
    }
}
