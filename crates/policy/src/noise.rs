//! The noise of one draw: for each token a number that depends on nothing but its own key.

use crate::philox::philox;

/// Tokens that share one block of the generator, a word each.
pub(crate) const BLOCK: u32 = 4;

/// Smallest distance from 0 of a token's uniform, `2^-53`.
pub(crate) const UNIFORM_MIN: f64 = 1.0 / (1_u64 << 53) as f64;

/// One draw's noise, keyed by seed, choice index and step; each token then has its own.
///
/// Key: the seed's low and high word. Counter: `token / 4`, step, choice, and which half of the
/// token's 52 bits the block holds (0 high, 1 low). The token's word is number `token % 4`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Noise {
    key: [u32; 2],
    step: u32,
    choice: u32,
}

impl Noise {
    #[expect(clippy::cast_possible_truncation, reason = "the two halves of the seed")]
    pub(crate) fn new(seed: u64, choice: u32, step: u32) -> Self {
        Self { key: [seed as u32, (seed >> 32) as u32], step, choice }
    }

    /// The high words of the four tokens `4 * block ..`.
    #[inline(always)]
    pub(crate) fn high_words(&self, block: u32) -> [u32; 4] {
        philox([block, self.step, self.choice, 0], self.key)
    }

    /// The high word of one token.
    pub(crate) fn high_word(&self, token: u32) -> u32 {
        self.high_words(token / BLOCK)[(token % BLOCK) as usize]
    }

    /// The token's uniform, in (0, 1): 52 bits of noise and one half.
    fn uniform(&self, token: u32) -> f64 {
        let high = self.high_word(token);
        let low = philox([token / BLOCK, self.step, self.choice, 1], self.key);
        let low = low[(token % BLOCK) as usize] >> 12;
        let bits = (u64::from(high) << 20) | u64::from(low);
        #[expect(clippy::cast_precision_loss, reason = "52 bits fit")]
        let uniform = (bits as f64 + 0.5) / (1_u64 << 52) as f64;
        uniform
    }

    /// The token's Gumbel noise, `-ln(-ln(1 - v))` for its uniform v.
    pub(crate) fn gumbel(&self, token: u32) -> f64 {
        -libm::log(-libm::log1p(-self.uniform(token)))
    }
}

/// The least that a token's uniform can be, given its high word.
#[inline(always)]
pub(crate) fn uniform_floor(high: u32) -> f64 {
    f64::from(high) / (1_u64 << 32) as f64
}
