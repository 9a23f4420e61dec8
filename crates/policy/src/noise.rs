//! The noise of one draw: for each token a number that depends on nothing but its own key.

use crate::philox::{LANES, philox, philox_lanes};

/// Tokens whose noise is made together: eight blocks of the generator, four words each.
pub(crate) const GROUP: usize = 4 * LANES;

/// The least uniform a token can have, `2^-53`.
pub(crate) const UNIFORM_MIN: f64 = 1.0 / (1_u64 << 53) as f64;

/// One draw's noise, keyed by seed, choice index and step; each token then has its own.
///
/// Key: the seed's low and high word. Counter: `4 * (token / 16) + token % 4`, step, choice, and
/// which half of the token's 52 bits the block holds (0 high, 1 low). The token's word is number
/// `token / 4 % 4`, so that a word of four neighbouring blocks serves four neighbouring tokens.
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

    /// The high words of the tokens `32 * group ..`: that of token [`in_group`] at `[word][lane]`.
    #[inline(always)]
    pub(crate) fn high_words(&self, group: u32) -> [[u32; LANES]; 4] {
        let first = group.wrapping_mul(8);
        let mut blocks = [0; LANES];
        for (block, lane) in blocks.iter_mut().zip(0..) {
            *block = u64::from(first.wrapping_add(lane));
        }
        let (step, choice) = (u64::from(self.step), u64::from(self.choice));
        philox_lanes([blocks, [step; LANES], [choice; LANES], [0; LANES]], self.key)
    }

    /// The high word of one token.
    pub(crate) fn high_word(&self, token: u32) -> u32 {
        self.word(token, 0)
    }

    /// The token's Gumbel noise, `-ln(-ln(1 - v))` for its uniform v.
    pub(crate) fn gumbel(&self, token: u32) -> f64 {
        -libm::log(-libm::log1p(-self.uniform(token)))
    }

    /// The token's uniform, in (0, 1): 52 bits of noise and one half.
    fn uniform(&self, token: u32) -> f64 {
        let (high, low) = (self.word(token, 0), self.word(token, 1));
        let bits = (u64::from(high) << 20) | u64::from(low >> 12);
        #[expect(clippy::cast_precision_loss, reason = "52 bits fit")]
        let uniform = (bits as f64 + 0.5) / (1_u64 << 52) as f64;
        uniform
    }

    fn word(&self, token: u32, half: u32) -> u32 {
        let block = (token / 16).wrapping_mul(4).wrapping_add(token % 4);
        philox([block, self.step, self.choice, half], self.key)[(token / 4 % 4) as usize]
    }
}

/// Place of a token in its group, whose high word stands at `[word][lane]`.
#[inline(always)]
pub(crate) fn in_group(word: usize, lane: usize) -> usize {
    16 * (lane / 4) + 4 * word + lane % 4
}

/// The least that a token's uniform can be, given its high word.
pub(crate) fn uniform_floor(high: u32) -> f64 {
    f64::from(high) / (1_u64 << 32) as f64
}

/// The same rounded down to 31 bits, in `f32`: signed words convert in one instruction.
#[inline(always)]
#[expect(clippy::cast_precision_loss, reason = "a bound with its own slack")]
pub(crate) fn uniform_floor_f32(high: u32) -> f32 {
    (high >> 1).cast_signed() as f32 * (1.0 / (1_u32 << 31) as f32)
}

#[cfg(test)]
mod tests;
