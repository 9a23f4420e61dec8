//! Random numbers without a state: each is a function of the seed and of what it is drawn for.

/// What a number is drawn for; two purposes never share a number.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    /// The gap before an arrival.
    Gap,
    /// How many words a prompt has.
    PromptWords,
    /// How many tokens an answer may have.
    OutputTokens,
    /// Whether and when a client hangs up.
    HangUp,
    /// The words of one prompt.
    Words,
    /// The words that all prompts begin with.
    SharedWords,
    /// The words of one block of a trace, the same wherever the block appears.
    BlockWords,
    /// The seed that a request carries.
    RequestSeed,
}

/// The numbers of one seed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draws {
    seed: u64,
}

/// The increment of `SplitMix64`: 2^64 over the golden ratio, made odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// One output of `SplitMix64` (Steele, Lea and Flood 2014) for the state `state`.
pub(crate) fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Draws {
    pub(crate) fn of(seed: u64) -> Self {
        Self { seed }
    }

    /// 64 bits for place `place` of item `item`.
    pub(crate) fn bits(&self, purpose: Purpose, item: u64, place: u64) -> u64 {
        let chain = mix(self.seed ^ mix(purpose as u64));
        mix(mix(chain ^ item) ^ place)
    }

    /// A number in the open interval (0, 1), one of 2^53.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit an f64")]
    pub(crate) fn uniform(&self, purpose: Purpose, item: u64, place: u64) -> f64 {
        const STEP: f64 = 1.0 / (1u64 << 53) as f64;
        ((self.bits(purpose, item, place) >> 11) as f64 + 0.5) * STEP
    }

    /// A number in `0..count`; the bias is below count / 2^64.
    pub(crate) fn below(&self, purpose: Purpose, item: u64, place: u64, count: usize) -> usize {
        let wide = u128::from(self.bits(purpose, item, place)) * count as u128;
        usize::try_from(wide >> 64).expect("the high half is below `count`")
    }
}

#[cfg(test)]
mod tests;
