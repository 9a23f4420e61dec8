//! PCG64 (O'Neill 2014, XSL-RR 128/64) seeded as NumPy's `default_rng` seeds it.

use std::str::FromStr;

use thiserror::Error;

const POOL: usize = 4;
const INIT_A: u32 = 0x43b0_d7e5;
const MULT_A: u32 = 0x931e_8875;
const INIT_B: u32 = 0x8b51_f9dd;
const MULT_B: u32 = 0x58f3_8ded;
const MIX_LEFT: u32 = 0xca01_f9dd;
const MIX_RIGHT: u32 = 0x4973_f715;
const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;

/// A seed of any length, as 32-bit words, the lowest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed(Vec<u32>);

/// Most decimal digits of a seed.
const DIGITS_MAX: usize = 1000;

/// Why a text is no seed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SeedError {
    /// Something else than digits.
    #[error("the seed is `{text}`, but must be a whole number from 0, in decimal digits")]
    NotDigits { text: String },
    /// Longer than any seed in use.
    #[error("the seed has {digits} digits, but may have 1000")]
    TooLong { digits: usize },
}

impl From<u64> for Seed {
    #[expect(clippy::cast_possible_truncation, reason = "the two halves of the seed")]
    fn from(seed: u64) -> Self {
        let (low, high) = (seed as u32, (seed >> 32) as u32);
        Self(if high == 0 { vec![low] } else { vec![low, high] })
    }
}

impl FromStr for Seed {
    type Err = SeedError;

    fn from_str(text: &str) -> Result<Self, SeedError> {
        let digits = text.trim();
        if digits.len() > DIGITS_MAX {
            return Err(SeedError::TooLong { digits: digits.len() });
        }
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(SeedError::NotDigits { text: text.to_owned() });
        }
        let mut words = vec![0_u32];
        for digit in digits.bytes() {
            let mut carry = u64::from(digit - b'0');
            for word in &mut words {
                let sum = u64::from(*word) * 10 + carry;
                #[expect(clippy::cast_possible_truncation, reason = "the low half; high carries")]
                {
                    *word = sum as u32;
                }
                carry = sum >> 32;
            }
            if let Some(word) = u32::try_from(carry).ok().filter(|&word| word > 0) {
                words.push(word);
            }
        }
        Ok(Self(words))
    }
}

impl Seed {
    /// NumPy's `SeedSequence(seed).generate_state(count)`, 32-bit words.
    #[must_use]
    pub fn to_state_words(&self, count: usize) -> Vec<u32> {
        let pool = self.mix();
        let mut constant = INIT_B;
        (0..count)
            .map(|index| {
                let word = pool[index % POOL] ^ constant;
                constant = constant.wrapping_mul(MULT_B);
                let word = word.wrapping_mul(constant);
                word ^ (word >> 16)
            })
            .collect()
    }

    /// The seed's words hashed into the pool, each into every place.
    fn mix(&self) -> [u32; POOL] {
        let mut constant = INIT_A;
        let mut hash = |word: u32| {
            let word = word ^ constant;
            constant = constant.wrapping_mul(MULT_A);
            let word = word.wrapping_mul(constant);
            word ^ (word >> 16)
        };
        let combine = |left: u32, right: u32| {
            let word = MIX_LEFT.wrapping_mul(left).wrapping_sub(MIX_RIGHT.wrapping_mul(right));
            word ^ (word >> 16)
        };
        let mut pool = [0; POOL];
        for (index, place) in pool.iter_mut().enumerate() {
            *place = hash(self.0.get(index).copied().unwrap_or(0));
        }
        for source in 0..POOL {
            for target in (0..POOL).filter(|&target| target != source) {
                pool[target] = combine(pool[target], hash(pool[source]));
            }
        }
        for &word in self.0.iter().skip(POOL) {
            for place in &mut pool {
                *place = combine(*place, hash(word));
            }
        }
        pool
    }
}

/// The generator: a 128-bit linear congruence with a permuted output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pcg64 {
    state: u128,
    increment: u128,
}

impl Pcg64 {
    /// The generator of `default_rng(seed)`.
    #[must_use]
    pub fn new(seed: &Seed) -> Self {
        let words = seed.to_state_words(8);
        let wide = |at: usize| (u128::from(words[at + 1]) << 32) | u128::from(words[at]);
        let (start, stream) = ((wide(0) << 64) | wide(2), (wide(4) << 64) | wide(6));
        let mut generator = Self { state: 0, increment: (stream << 1) | 1 };
        generator.advance();
        generator.state = generator.state.wrapping_add(start);
        generator.advance();
        generator
    }

    /// State and increment, as NumPy shows them.
    #[must_use]
    pub fn state(&self) -> (u128, u128) {
        (self.state, self.increment)
    }

    /// The next 64 bits.
    #[expect(clippy::cast_possible_truncation, reason = "the two halves of the state")]
    pub fn next_u64(&mut self) -> u64 {
        self.advance();
        let folded = (self.state >> 64) as u64 ^ self.state as u64;
        folded.rotate_right((self.state >> 122) as u32)
    }

    /// The next uniform in [0, 1): the upper 53 bits over 2^53.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn advance(&mut self) {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(self.increment);
    }
}
