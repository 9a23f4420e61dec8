//! Rotary position embedding: cosines and sines by position, computed when first needed.

use std::f64::consts::PI;
use std::sync::OnceLock;

use crate::ConfigError;

/// Positions whose angles are computed together.
const PAGE: usize = 64;

/// (cos, sin) of every pair at every position of a page: `(PAGE, dims/2)`.
type Page = Box<[(f32, f32)]>;

/// Rotary position embedding (`RoPE`, Su et al. 2021); pairs are (i, i + dims/2).
#[derive(Debug, Clone, PartialEq)]
pub struct RopeConfig {
    pub base: f32,
    /// Dimensions of a head that are turned, the first ones; the others stay as they are.
    pub dims: usize,
    pub scaling: RopeScaling,
    /// Cosines and sines are multiplied by this; 1 for most models.
    pub magnitude: f32,
}

/// What becomes of the frequencies `base^(-2i/dims)`.
#[derive(Debug, Clone, PartialEq)]
pub enum RopeScaling {
    None,
    /// Each is divided by the factor (Chen et al. 2023).
    Linear {
        factor: f32,
    },
    /// Low frequencies are divided by the factor, high ones kept, and those between are mixed
    /// (Llama 3.1): wavelengths are low above `original / low` and high below `original / high`.
    /// What each is divided by is rounded to f32, as GGUF files keep it.
    Llama3 {
        factor: f32,
        low: f32,
        high: f32,
        original: usize,
    },
    /// The same by how often a pair turns within the original context (YaRN, Peng et al. 2023):
    /// those that turn more often than `fast` are kept, those less often than `slow` divided.
    Yarn {
        factor: f32,
        original: usize,
        fast: f32,
        slow: f32,
        truncate: bool,
    },
    /// Each is divided by a factor of its own.
    Factors(Vec<f32>),
    /// The same, by the long factors where the model is loaded for a context above the original
    /// one (LongRoPE, Ding et al. 2024): never by a request's own length.
    LongRope {
        short: Vec<f32>,
        long: Vec<f32>,
        original: usize,
    },
}

impl RopeConfig {
    /// A plain RoPE that turns whole heads.
    pub(crate) fn plain(base: f32, dims: usize) -> Self {
        Self { base, dims, scaling: RopeScaling::None, magnitude: 1.0 }
    }

    /// Refuses what cannot turn heads of this size.
    pub(crate) fn check(&self, head_dim: usize) -> Result<(), ConfigError> {
        let Self { base, dims, scaling, magnitude } = self;
        if *dims == 0 || *dims > head_dim {
            let name = "rotated dimensions of a head";
            return Err(ConfigError::Size { name, value: *dims, most: head_dim });
        }
        if !dims.is_multiple_of(2) {
            return Err(ConfigError::OddHead { head_dim: *dims });
        }
        let original = |original: &usize| ("original context length", to_f32(*original));
        // Equal bounds would leave a frequency between them divided by nothing.
        let (mut numbers, lists): (_, &[&Vec<f32>]) = match scaling {
            RopeScaling::None | RopeScaling::Linear { .. } => (vec![], &[]),
            RopeScaling::Llama3 { low, high, original: of, factor: _ } => {
                (vec![("high less low frequency factor", high - low), original(of)], &[])
            }
            RopeScaling::Yarn { original: of, .. } => {
                (vec![("RoPE base less 1", base - 1.0), original(of)], &[])
            }
            RopeScaling::Factors(factors) => (vec![], &[factors]),
            RopeScaling::LongRope { short, long, .. } => (vec![], &[short, long]),
        };
        numbers.push(("RoPE attention factor", *magnitude));
        for factors in lists {
            if factors.len() != dims / 2 {
                let (found, wanted) = (factors.len(), dims / 2);
                return Err(ConfigError::RopeFactors { found, wanted });
            }
            numbers.extend(factors.iter().map(|factor| ("RoPE factor of a pair", *factor)));
        }
        match numbers.into_iter().find(|(_, value)| !(value.is_finite() && *value > 0.0)) {
            Some((name, value)) => Err(ConfigError::Number { name, value }),
            None => Ok(()),
        }
    }

    /// What Llama 3 divides a frequency by; 1 for every other scaling.
    fn divisor(&self, plain: f64) -> f32 {
        let RopeScaling::Llama3 { factor, low, high, original } = self.scaling else { return 1.0 };
        let turns = to_f64(original) * plain / (2.0 * PI);
        let (low, high) = (f64::from(low), f64::from(high));
        let divisor = 1.0 / mixed(1.0, f64::from(factor), (turns - low) / (high - low));
        #[expect(clippy::cast_possible_truncation, reason = "rounding is what is meant")]
        let divisor = divisor as f32;
        divisor
    }

    /// The same of each pair.
    pub(crate) fn divisors(&self) -> Vec<f32> {
        (0..self.dims / 2).map(|pair| self.divisor(self.plain_frequency(pair))).collect()
    }

    fn plain_frequency(&self, pair: usize) -> f64 {
        libm::pow(f64::from(self.base), -2.0 * to_f64(pair) / to_f64(self.dims))
    }

    /// Radians by which each pair turns from one position to the next, in f64.
    fn frequencies(&self, context_len: usize) -> Vec<f64> {
        let base = f64::from(self.base);
        let dims = to_f64(self.dims);
        let scaled = |pair: usize| {
            let plain = self.plain_frequency(pair);
            match &self.scaling {
                RopeScaling::None => plain,
                RopeScaling::Linear { factor } => plain / f64::from(*factor),
                RopeScaling::Llama3 { .. } => plain / f64::from(self.divisor(plain)),
                RopeScaling::Yarn { factor, original, fast, slow, truncate } => {
                    // The pair that turns so often within the original context, as a real number.
                    let pair_of = |turns: f32| {
                        let length = to_f64(*original) / (f64::from(turns) * 2.0 * PI);
                        dims * libm::log(length) / (2.0 * libm::log(base))
                    };
                    let (mut first, mut last) = (pair_of(*fast), pair_of(*slow));
                    if *truncate {
                        (first, last) = (first.floor(), last.ceil());
                    }
                    (first, last) = (first.max(0.0), last.min(dims - 1.0));
                    let width = if first < last { last - first } else { 0.001 };
                    let share = (to_f64(pair) - first) / width;
                    mixed(plain, f64::from(*factor), 1.0 - share)
                }
                RopeScaling::Factors(factors) => plain / f64::from(factors[pair]),
                RopeScaling::LongRope { short, long, original } => {
                    let factors = if context_len > *original { long } else { short };
                    plain / f64::from(factors[pair])
                }
            }
        };
        (0..self.dims / 2).map(scaled).collect()
    }
}

/// `kept` of a frequency as it is, within 0 and 1, and the rest of it divided.
fn mixed(plain: f64, factor: f64, kept: f64) -> f64 {
    let kept = kept.clamp(0.0, 1.0);
    plain * kept + plain / factor * (1.0 - kept)
}

/// The attention factor that YaRN's paper fits: `0.1 m ln(factor) + 1`.
pub(crate) fn yarn_magnitude(factor: f32, m: f32) -> f32 {
    if factor <= 1.0 { 1.0 } else { 0.1 * m * libm::logf(factor) + 1.0 }
}

/// LongRoPE's attention factor for a context `factor` times the original one.
pub(crate) fn long_magnitude(factor: f32, original: usize) -> f32 {
    if factor <= 1.0 {
        return 1.0;
    }
    (1.0 + libm::logf(factor) / libm::logf(to_f32(original))).sqrt()
}

#[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^53")]
fn to_f64(size: usize) -> f64 {
    size as f64
}

#[expect(clippy::cast_precision_loss, reason = "context lengths are at most 2^24")]
pub(crate) fn to_f32(size: usize) -> f32 {
    size as f32
}

/// Angles of one RoPE for every position of the context.
#[derive(Debug)]
pub(crate) struct Rope {
    frequencies: Vec<f64>,
    magnitude: f64,
    pages: Vec<OnceLock<Page>>,
}

impl Rope {
    pub(crate) fn new(config: &RopeConfig, context_len: usize) -> Self {
        Self {
            frequencies: config.frequencies(context_len),
            magnitude: f64::from(config.magnitude),
            pages: (0..context_len.div_ceil(PAGE)).map(|_| OnceLock::new()).collect(),
        }
    }

    /// (cos, sin) of each pair at `position`, times the magnitude, rounded once from f64.
    ///
    /// The angle is reduced in f64, whose error at position 10^6 is below 10^-10.
    pub(crate) fn angles(&self, position: usize) -> &[(f32, f32)] {
        let page = self.pages[position / PAGE].get_or_init(|| self.page(position / PAGE));
        let pairs = self.frequencies.len();
        &page[position % PAGE * pairs..][..pairs]
    }

    fn page(&self, page: usize) -> Page {
        let positions = page * PAGE..(page + 1) * PAGE;
        #[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is what is meant")]
        let angle = |position: usize, frequency: &f64| {
            let (sin, cos) = libm::sincos(to_f64(position) * frequency);
            ((cos * self.magnitude) as f32, (sin * self.magnitude) as f32)
        };
        positions.flat_map(|p| self.frequencies.iter().map(move |f| angle(p, f))).collect()
    }
}

/// Turns the first dimensions of every head of `x`, `(heads, head_dim)`, by the angles of its
/// position: products and their sum or difference rounded one after the other.
pub(crate) fn rotate(x: &mut [f32], head_dim: usize, angles: &[(f32, f32)]) {
    let pairs = angles.len();
    for head in x.chunks_exact_mut(head_dim) {
        let (first, second) = head[..2 * pairs].split_at_mut(pairs);
        for ((a, b), &(cos, sin)) in first.iter_mut().zip(second).zip(angles) {
            let (x, y) = (*a, *b);
            *a = x * cos - y * sin;
            *b = y * cos + x * sin;
        }
    }
}

#[cfg(test)]
mod tests;
