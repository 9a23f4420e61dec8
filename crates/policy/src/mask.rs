//! A set of allowed tokens, one bit each: how a grammar enters a step.

use causeway_request::TokenId;

/// Which tokens of a vocabulary are allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenMask {
    words: Vec<u64>,
    vocab_size: usize,
}

impl TokenMask {
    /// A mask that allows nothing yet.
    #[must_use]
    pub fn none(vocab_size: usize) -> Self {
        Self { words: vec![0; vocab_size.div_ceil(64)], vocab_size }
    }

    /// A mask that allows everything.
    #[must_use]
    pub fn all(vocab_size: usize) -> Self {
        let mut mask = Self { words: vec![u64::MAX; vocab_size.div_ceil(64)], vocab_size };
        // Bits past the vocabulary stay 0, so that counting and comparing need no care.
        if let (Some(last), rest @ 1..) = (mask.words.last_mut(), vocab_size % 64) {
            *last = (1 << rest) - 1;
        }
        mask
    }

    /// How many tokens the mask speaks of.
    #[must_use]
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// Allows one token; false where the vocabulary has no such token.
    pub fn allow(&mut self, token: TokenId) -> bool {
        self.set(token, true)
    }

    /// Forbids one token; false where the vocabulary has no such token.
    pub fn forbid(&mut self, token: TokenId) -> bool {
        self.set(token, false)
    }

    /// Takes the bits of another set, 32 tokens a word, lowest token in the lowest bit; words that
    /// are missing allow nothing, and bits beyond the vocabulary are dropped.
    pub fn assign(&mut self, halves: &[u32]) {
        self.words.fill(0);
        for (word, pair) in self.words.iter_mut().zip(halves.chunks(2)) {
            let high = pair.get(1).copied().unwrap_or(0);
            *word = u64::from(high) << 32 | u64::from(pair[0]);
        }
        if let (Some(last), rest @ 1..) = (self.words.last_mut(), self.vocab_size % 64) {
            *last &= (1 << rest) - 1;
        }
    }

    /// Whether the token is allowed; none outside the vocabulary is.
    #[must_use]
    pub fn allows(&self, token: TokenId) -> bool {
        let index = token.index();
        self.words.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// The bits, 64 tokens a word, lowest token in the lowest bit.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// How many tokens are allowed.
    #[must_use]
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    fn set(&mut self, token: TokenId, allowed: bool) -> bool {
        let index = token.index();
        if index >= self.vocab_size {
            return false;
        }
        let (word, bit) = (&mut self.words[index / 64], 1 << (index % 64));
        *word = if allowed { *word | bit } else { *word & !bit };
        true
    }
}
