//! The cache as the scheduler's room.

use causeway_kv_cache::Cache;
use causeway_request::RequestId;
use causeway_scheduler::Room;

/// Answers the scheduler from the cache.
#[derive(Debug)]
pub(crate) struct KvRoom<'a> {
    pub(crate) cache: &'a mut Cache,
}

impl Room for KvRoom<'_> {
    fn admit(&mut self, id: RequestId, tokens: usize, _spare: usize) -> Option<usize> {
        if self.cache.reserve(id, tokens).is_ok() {
            return Some(0);
        }
        self.cache.remove(id);
        None
    }

    fn reserve(&mut self, id: RequestId, end: usize) -> bool {
        self.cache.reserve(id, end).is_ok()
    }

    fn release(&mut self, id: RequestId) {
        self.cache.remove(id);
    }
}
