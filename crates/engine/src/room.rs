//! The cache as the scheduler's room.

use std::collections::BTreeMap;

use causeway_kv_cache::{Cache, CacheError};
use causeway_request::RequestId;
use causeway_scheduler::Room;

use crate::run::Run;

/// Positions that parallel choices hold of their sibling's prompt before they run.
pub(crate) type Holds = BTreeMap<RequestId, usize>;

/// Answers the scheduler from the cache.
#[derive(Debug)]
pub(crate) struct KvRoom<'a> {
    pub(crate) cache: &'a mut Cache,
    pub(crate) runs: &'a mut BTreeMap<RequestId, Run>,
    pub(crate) holds: &'a mut Holds,
    pub(crate) keeps_prefixes: bool,
}

impl KvRoom<'_> {
    /// Tries once more without what those who wait hold: they can compute it again.
    fn insist(
        &mut self,
        id: RequestId,
        attempt: impl Fn(&mut Cache) -> Result<(), CacheError>,
    ) -> bool {
        if attempt(self.cache).is_ok() {
            return true;
        }
        let others: Vec<RequestId> =
            self.holds.keys().copied().filter(|other| *other != id).collect();
        for &other in &others {
            self.holds.remove(&other);
            self.cache.remove(other);
        }
        !others.is_empty() && attempt(self.cache).is_ok()
    }
}

impl Room for KvRoom<'_> {
    fn admit(&mut self, id: RequestId, tokens: usize, spare: usize) -> Option<usize> {
        let run = self.runs.get(&id).expect("invariant: who waits is here");
        let held = self.holds.get(&id).copied();
        let computed = match held {
            Some(held) => held,
            // What was told of needs no row again, and what follows it does.
            None if self.keeps_prefixes => self.cache.attach(id, &run.chain, run.told()),
            None => 0,
        };
        if !self.insist(id, |cache| cache.promise(id, tokens, spare)) {
            if held.is_none() {
                self.cache.remove(id);
            }
            return None;
        }
        self.holds.remove(&id);
        let run = self.runs.get_mut(&id).expect("invariant: who waits is here");
        if run.is_unscheduled() {
            let shared = held.unwrap_or(0);
            run.account.shared_tokens = shared;
            run.account.cached_tokens = computed - shared;
        }
        Some(computed)
    }

    fn reserve(&mut self, id: RequestId, end: usize) -> bool {
        self.insist(id, |cache| cache.reserve(id, end))
    }

    fn release(&mut self, id: RequestId) {
        self.cache.remove(id);
    }
}
