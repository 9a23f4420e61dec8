//! Byte pair encoding's one loop: join the best neighbouring pair until none is left.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Marks a symbol that no token spells; it joins nothing.
pub(crate) const NO_TOKEN: u32 = u32::MAX;
const NONE: u32 = u32::MAX;

/// A run of the text that is one token so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Symbol {
    pub(crate) token: u32,
    /// First byte of the run.
    pub(crate) start: u32,
    /// Bytes of the run; 0 once it has been joined to its left neighbour.
    pub(crate) len: u32,
    previous: u32,
    next: u32,
}

/// A pair that can be joined: lowest `rank` first, then leftmost.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    rank: u32,
    left: u32,
    right: u32,
    /// Bytes of both when the pair was seen: a pair that has grown since is stale.
    len: u32,
    token: u32,
}

/// The working storage, kept between words so that a word allocates nothing.
#[derive(Default)]
pub(crate) struct Merger {
    symbols: Vec<Symbol>,
    pairs: BinaryHeap<Reverse<Pair>>,
}

impl Merger {
    /// Forgets the last word.
    pub(crate) fn clear(&mut self) {
        self.symbols.clear();
        self.pairs.clear();
    }

    /// Appends a symbol of `len` bytes behind the last one.
    pub(crate) fn push(&mut self, token: u32, len: usize) {
        let index = to_u32(self.symbols.len());
        let start = self.symbols.last().map_or(0, |last| last.start + last.len);
        if let Some(last) = self.symbols.last_mut() {
            last.next = index;
        }
        let previous = index.checked_sub(1).unwrap_or(NONE);
        self.symbols.push(Symbol { token, start, len: to_u32(len), previous, next: NONE });
    }

    /// Joins pairs until none is left; `join` gives rank and token of a pair, or nothing.
    ///
    /// Every join removes a symbol and queues at most two pairs, so the work is
    /// O(n log n) in the symbols.
    pub(crate) fn merge(&mut self, join: impl Fn(&Symbol, &Symbol) -> Option<(u32, u32)>) {
        for left in 0..self.symbols.len().saturating_sub(1) {
            self.queue(to_u32(left), to_u32(left + 1), &join);
        }
        while let Some(Reverse(pair)) = self.pairs.pop() {
            let (left, right) = (self.at(pair.left), self.at(pair.right));
            if left.len == 0 || right.len == 0 || left.len + right.len != pair.len {
                continue;
            }
            let next = right.next;
            self.symbols[pair.right as usize].len = 0;
            let joined = &mut self.symbols[pair.left as usize];
            joined.token = pair.token;
            joined.len = pair.len;
            joined.next = next;
            let previous = joined.previous;
            if next != NONE {
                self.symbols[next as usize].previous = pair.left;
                self.queue(pair.left, next, &join);
            }
            if previous != NONE {
                self.queue(previous, pair.left, &join);
            }
        }
    }

    /// The symbols that are left, in order.
    pub(crate) fn symbols(&self) -> impl Iterator<Item = &Symbol> {
        self.symbols.iter().filter(|symbol| symbol.len > 0)
    }

    fn at(&self, index: u32) -> Symbol {
        self.symbols[index as usize]
    }

    fn queue(
        &mut self,
        left: u32,
        right: u32,
        join: &impl Fn(&Symbol, &Symbol) -> Option<(u32, u32)>,
    ) {
        let (a, b) = (self.at(left), self.at(right));
        if let Some((rank, token)) = join(&a, &b) {
            self.pairs.push(Reverse(Pair { rank, left, right, len: a.len + b.len, token }));
        }
    }
}

fn to_u32(count: usize) -> u32 {
    u32::try_from(count).expect("callers cut texts far below 4 GiB")
}
