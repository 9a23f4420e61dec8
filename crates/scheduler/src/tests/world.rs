//! A room that only counts, and numbers from a seed.

use std::collections::BTreeMap;

use causeway_request::RequestId;

use crate::Room;

/// Positions in a block.
const BLOCK: usize = 16;

/// A pool of blocks that hold nothing.
#[derive(Debug, Clone)]
pub(super) struct Counter {
    blocks: usize,
    pub(super) held: BTreeMap<RequestId, usize>,
    /// Admitted requests find this part (one in so many) of their tokens computed; 0 for none.
    pub(super) hit_part: usize,
}

impl Counter {
    pub(super) fn new(blocks: usize) -> Self {
        Self { blocks, held: BTreeMap::new(), hit_part: 0 }
    }

    pub(super) fn held_count(&self) -> usize {
        self.held.values().sum()
    }

    pub(super) fn remove(&mut self, id: RequestId) {
        self.held.remove(&id);
    }

    /// Whether a request holds room for all positions below `end`.
    pub(super) fn covers(&self, id: RequestId, end: usize) -> bool {
        self.held.get(&id).copied().unwrap_or(0) * BLOCK >= end
    }

    fn take(&mut self, id: RequestId, end: usize, spare: usize) -> bool {
        let held = self.held.get(&id).copied().unwrap_or(0);
        let wanted = end.div_ceil(BLOCK).max(held);
        if self.held_count() - held + wanted + spare > self.blocks {
            return false;
        }
        self.held.insert(id, wanted);
        true
    }
}

impl Room for Counter {
    fn admit(&mut self, id: RequestId, tokens: usize, spare: usize) -> Option<usize> {
        let hit = (tokens - 1).checked_div(self.hit_part).unwrap_or(0) / BLOCK * BLOCK;
        self.take(id, tokens, spare).then_some(hit)
    }

    fn reserve(&mut self, id: RequestId, end: usize) -> bool {
        self.take(id, end, 0)
    }

    fn release(&mut self, id: RequestId) {
        self.held.remove(&id);
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014): one multiply-and-shift chain over a counter.
#[derive(Debug, Clone)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    /// True one time in `count`.
    pub(super) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}
