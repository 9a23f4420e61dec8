//! A whole row of logits in token order, as long as no filter has made it a short list.
//!
//! Everything here runs over blocks of 64 tokens. A block's sums are made in 16 lanes and folded
//! by halves, and blocks are added in ascending order: one order on every processor.

use causeway_kernels::{Work, widest};
use causeway_request::TokenId;

use crate::edits::Edit;
use crate::error::ChooseError;
use crate::mask::TokenMask;
use crate::survivors::{Candidate, Survivors, sort};

/// Tokens in a block; a mask's word covers exactly one.
pub(crate) const BLOCK: usize = 64;

/// Buffers of a row, kept from step to step.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowBuffers {
    /// The row with every masked or edited token at minus infinity, once there is one.
    copy: Vec<f32>,
    /// The largest value of each block.
    maxima: Vec<f32>,
    /// Tokens whose logit a constraint changed, ascending, in the row's present scale.
    edited: Vec<Candidate>,
}

/// One row on its way through the stages.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    logits: &'a [f32],
    buffers: &'a mut RowBuffers,
    is_copied: bool,
    /// What scores of the row itself are divided by.
    pub temperature: f64,
}

impl<'a> Row<'a> {
    /// Takes in a row: every value finite or minus infinity, and at least one finite.
    pub(crate) fn scan(
        logits: &'a [f32],
        step: u32,
        buffers: &'a mut RowBuffers,
    ) -> Result<Self, ChooseError> {
        buffers.edited.clear();
        buffers.maxima.clear();
        let has_nan = widest(Scan { logits, maxima: &mut buffers.maxima });
        let max = buffers.maxima.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        if has_nan || max == f32::INFINITY {
            return Err(first_bad(logits, step));
        }
        if max == f32::NEG_INFINITY {
            return Err(ChooseError::NothingGiven { step, vocab_size: logits.len() });
        }
        Ok(Self { logits, buffers, is_copied: false, temperature: 1.0 })
    }

    /// The row as the stages have left it, edited tokens at minus infinity.
    pub(crate) fn values(&self) -> &[f32] {
        if self.is_copied { &self.buffers.copy } else { self.logits }
    }

    /// The edited tokens still in play, ascending.
    pub(crate) fn edited(&self) -> &[Candidate] {
        &self.buffers.edited
    }

    /// Each block's largest value.
    pub(crate) fn maxima(&self) -> &[f32] {
        &self.buffers.maxima
    }

    /// Whether the row is still as it came: no edit, no temperature.
    pub(crate) fn is_raw(&self) -> bool {
        !self.is_copied && self.temperature.to_bits() == 1.0_f64.to_bits()
    }

    /// A value of the row in its present scale.
    pub(crate) fn score(&self, value: f32) -> f64 {
        f64::from(value) / self.temperature
    }

    /// Masks every token that `allowed` leaves out.
    pub(crate) fn allow(&mut self, allowed: &TokenMask) {
        let logits = (!self.is_copied).then_some(self.logits);
        if logits.is_some() {
            self.buffers.copy.resize(self.logits.len(), 0.0);
            self.is_copied = true;
        }
        let RowBuffers { copy, maxima, edited } = &mut *self.buffers;
        widest(Allow { logits, copy, maxima, words: allowed.words() });
        edited.retain(|candidate| allowed.allows(TokenId(candidate.token)));
    }

    /// Applies the changes of one stage.
    pub(crate) fn edit(&mut self, edits: &[(TokenId, Edit)]) {
        if edits.is_empty() {
            return;
        }
        self.own();
        let temperature = self.temperature;
        let RowBuffers { copy, maxima, edited } = &mut *self.buffers;
        let mut merged = Vec::with_capacity(edited.len() + edits.len());
        let mut old = edited.drain(..).peekable();
        for &(token, edit) in edits {
            while let Some(before) = old.next_if(|candidate| candidate.token < token.0) {
                merged.push(before);
            }
            let score = match old.next_if(|candidate| candidate.token == token.0) {
                Some(candidate) => candidate.score,
                None => f64::from(copy[token.index()]) / temperature,
            };
            copy[token.index()] = f32::NEG_INFINITY;
            let score = edit.apply(score);
            if score > f64::NEG_INFINITY {
                merged.push(Candidate { token: token.0, score, weight: 0.0 });
            }
        }
        merged.extend(old);
        *edited = merged;
        let mut refreshed = usize::MAX;
        for &(token, _) in edits {
            let block = token.index() / BLOCK;
            if block != refreshed {
                let end = copy.len().min((block + 1) * BLOCK);
                maxima[block] = block_max(&copy[block * BLOCK..end]).0;
                refreshed = block;
            }
        }
    }

    /// Divides every score.
    pub(crate) fn divide(&mut self, temperature: f64) {
        self.temperature *= temperature;
        for candidate in &mut self.buffers.edited {
            candidate.score /= temperature;
        }
    }

    /// Whether the token is in play.
    pub(crate) fn holds(&self, token: TokenId) -> bool {
        self.values()[token.index()] > f32::NEG_INFINITY
            || self.edited().binary_search_by_key(&token.0, |c| c.token).is_ok()
    }

    /// How many tokens are in play, counted no further than 2.
    pub(crate) fn count_to_two(&self) -> usize {
        let blocks = self.maxima().iter().zip(self.values().chunks(BLOCK));
        let alive = blocks.filter(|(max, _)| **max > f32::NEG_INFINITY);
        let values = alive.flat_map(|(_, block)| block).filter(|v| **v > f32::NEG_INFINITY);
        (self.edited().len() + values.take(2).count()).min(2)
    }

    /// The best token in play; `None` where none is.
    pub(crate) fn best(&self) -> Option<Candidate> {
        let mut top = f32::NEG_INFINITY;
        let mut place = 0;
        for (block, &max) in self.maxima().iter().enumerate() {
            if max > top {
                (top, place) = (max, block);
            }
        }
        let first = self.values()[place * BLOCK..].iter().position(|&value| value >= top);
        let of_row = first.filter(|_| top > f32::NEG_INFINITY).map(|offset| {
            let token = u32::try_from(place * BLOCK + offset).expect("token ids are u32");
            Candidate { token, score: self.score(top), weight: 1.0 }
        });
        let edited = self.edited().iter().copied();
        edited.chain(of_row).reduce(Candidate::first)
    }

    /// The best token in play after `best`.
    pub(crate) fn second(&self, best: &Candidate) -> Option<Candidate> {
        let mut top: Option<(f32, usize)> = None;
        let mut consider = |token: usize, value: f32| {
            if value > top.map_or(f32::NEG_INFINITY, |(value, _)| value) {
                top = Some((value, token));
            }
        };
        let of_best = best.token as usize / BLOCK;
        let mut rival = (f32::NEG_INFINITY, None);
        for (block, &max) in self.maxima().iter().enumerate() {
            if block != of_best && max > rival.0 {
                rival = (max, Some(block));
            }
        }
        // The second is in the best token's own block or in the block with the next maximum.
        let mut blocks: Vec<usize> = rival.1.into_iter().chain([of_best]).collect();
        blocks.sort_unstable();
        for block in blocks {
            let first = block * BLOCK;
            let end = self.values().len().min(first + BLOCK);
            for (token, &value) in (first..).zip(&self.values()[first..end]) {
                if token != best.token as usize {
                    consider(token, value);
                }
            }
        }
        let of_row = top.map(|(value, token)| {
            let token = u32::try_from(token).expect("token ids are u32");
            Candidate { token, score: self.score(value), weight: 0.0 }
        });
        let edited = self.edited().iter().copied().filter(|c| c.token != best.token);
        edited.chain(of_row).reduce(Candidate::first)
    }

    /// How many tokens are in play.
    pub(crate) fn count(&self) -> usize {
        self.edited().len() + widest(Count { values: self.values() })
    }

    /// Every token in play with a score of at least about `threshold`, as a list with weights.
    ///
    /// The list may hold a few more: whoever asks cuts exactly. Its total is its own sum.
    pub(crate) fn collect(&self, threshold: f64, survivors: &mut Survivors) {
        // A millionth below covers the rounding of threshold * temperature to f32.
        let limit = threshold * self.temperature;
        #[expect(clippy::cast_possible_truncation, reason = "rounded, with the margin below")]
        let limit = (limit - limit.abs() * 1e-6 - 1e-30) as f32;
        let keys = &mut survivors.keys;
        keys.clear();
        for (block, &max) in self.maxima().iter().enumerate() {
            if max < limit || max == f32::NEG_INFINITY {
                continue;
            }
            let first = block * BLOCK;
            let end = self.values().len().min(first + BLOCK);
            for (token, &value) in (first..).zip(&self.values()[first..end]) {
                if value >= limit && value > f32::NEG_INFINITY {
                    keys.push(sort_key(value, token));
                }
            }
        }
        keys.sort_unstable();
        let list = &mut survivors.list;
        list.clear();
        for &key in &survivors.keys {
            let (token, value) = from_sort_key(key);
            list.push(Candidate { token, score: self.score(value), weight: 0.0 });
        }
        let sorted = list.len();
        list.extend(self.edited().iter().filter(|candidate| candidate.score >= threshold));
        if list.len() > sorted {
            sort(list);
        }
        survivors.weigh();
    }

    /// From here on the row is the stages' own copy.
    fn own(&mut self) {
        if !self.is_copied {
            self.buffers.copy.clear();
            self.buffers.copy.extend_from_slice(self.logits);
            self.is_copied = true;
        }
    }
}

/// The largest value of each block, and whether one of the row is NaN.
struct Scan<'a> {
    logits: &'a [f32],
    maxima: &'a mut Vec<f32>,
}

impl Work for Scan<'_> {
    type Out = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let mut has_nan = false;
        for block in self.logits.chunks(BLOCK) {
            let (max, nan) = block_max(block);
            has_nan |= nan;
            self.maxima.push(max);
        }
        has_nan
    }
}

/// Masks a row, which is copied on the way where it is still the caller's.
struct Allow<'a> {
    logits: Option<&'a [f32]>,
    copy: &'a mut [f32],
    maxima: &'a mut [f32],
    words: &'a [u64],
}

impl Work for Allow<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Self { logits, copy, maxima, words } = self;
        let places = copy.chunks_mut(BLOCK).zip(maxima).zip(words);
        for (place, ((block, max), &word)) in places.enumerate() {
            if word == 0 {
                block.fill(f32::NEG_INFINITY);
                *max = f32::NEG_INFINITY;
                continue;
            }
            if let Some(logits) = logits {
                block.copy_from_slice(&logits[place * BLOCK..][..block.len()]);
            }
            if word == u64::MAX {
                continue;
            }
            for (bit, value) in block.iter_mut().enumerate() {
                *value = if word >> bit & 1 == 1 { *value } else { f32::NEG_INFINITY };
            }
            *max = block_max(block).0;
        }
    }
}

/// How many values are above minus infinity.
struct Count<'a> {
    values: &'a [f32],
}

impl Work for Count<'_> {
    type Out = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let alive = |block: &[f32]| block.iter().map(|&v| u32::from(v > f32::NEG_INFINITY)).sum();
        // A count per block stays in registers; blocks of 4096 cannot overflow it.
        let counts = self.values.chunks(4096).map(|block| -> u32 { alive(block) });
        counts.map(|count| count as usize).sum()
    }
}

/// A finite value and its token as one number that ascends in the order of tokens: falling value,
/// then rising id. Whole numbers sort several times faster than pairs.
fn sort_key(value: f32, token: usize) -> u64 {
    // Adding zero makes -0.0 tie with 0.0.
    let bits = (value + 0.0).to_bits();
    let falling = if bits >> 31 == 0 { !bits & (u32::MAX >> 1) } else { bits };
    u64::from(falling) << 32 | token as u64
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves of the key")]
fn from_sort_key(key: u64) -> (u32, f32) {
    let falling = (key >> 32) as u32;
    let bits = if falling >> 31 == 0 { !falling & (u32::MAX >> 1) } else { falling };
    (key as u32, f32::from_bits(bits))
}

/// The largest value of a block, and whether one is NaN.
#[inline(always)]
fn block_max(block: &[f32]) -> (f32, bool) {
    const LANES: usize = 8;
    let mut max = [f32::NEG_INFINITY; LANES];
    let mut nan = [false; LANES];
    let (chunks, rest) = block.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            max[lane] = if chunk[lane] > max[lane] { chunk[lane] } else { max[lane] };
            nan[lane] |= chunk[lane].is_nan();
        }
    }
    let max = rest.iter().chain(&max).copied().fold(f32::NEG_INFINITY, f32::max);
    (max, nan.contains(&true) || rest.iter().any(|value| value.is_nan()))
}

#[cold]
fn first_bad(logits: &[f32], step: u32) -> ChooseError {
    let bad = |value: &f32| value.is_nan() || *value == f32::INFINITY;
    let index = logits.iter().position(bad).expect("the scan saw a bad value");
    let token = TokenId(u32::try_from(index).expect("token ids are u32"));
    if logits[index].is_nan() {
        return ChooseError::NotANumber { step, token };
    }
    ChooseError::Infinite { step, token, value: f64::from(logits[index]) }
}
