//! Rotary position embedding: cosines and sines by position, computed when first needed.

use std::sync::OnceLock;

use crate::RopeConfig;

/// Positions whose angles are computed together.
const PAGE: usize = 64;

/// (cos, sin) of every pair at every position of a page: `(PAGE, d/2)`.
type Page = Box<[(f32, f32)]>;

/// Angles of one RoPE for every position of the context.
#[derive(Debug)]
pub(crate) struct Rope {
    /// `factor^-1 * base^(-2i/d)` for each pair, in f64.
    frequencies: Vec<f64>,
    pages: Vec<OnceLock<Page>>,
}

impl Rope {
    pub(crate) fn new(config: RopeConfig, head_dim: usize, context_len: usize) -> Self {
        let RopeConfig { base, factor } = config;
        #[expect(clippy::cast_precision_loss, reason = "head sizes are small")]
        let frequency = |i: usize| {
            let exponent = -2.0 * i as f64 / head_dim as f64;
            libm::pow(f64::from(base), exponent) / f64::from(factor)
        };
        Self {
            frequencies: (0..head_dim / 2).map(frequency).collect(),
            pages: (0..context_len.div_ceil(PAGE)).map(|_| OnceLock::new()).collect(),
        }
    }

    /// (cos, sin) of each pair at `position`, rounded once from f64.
    ///
    /// The angle is reduced in f64, whose error at position 10^6 is below 10^-10.
    pub(crate) fn angles(&self, position: usize) -> &[(f32, f32)] {
        let page = self.pages[position / PAGE].get_or_init(|| self.page(position / PAGE));
        let pairs = self.frequencies.len();
        &page[position % PAGE * pairs..][..pairs]
    }

    fn page(&self, page: usize) -> Page {
        let positions = page * PAGE..(page + 1) * PAGE;
        #[expect(clippy::cast_precision_loss, reason = "positions are far below 2^53")]
        #[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is what is meant")]
        let angle = |position: usize, frequency: &f64| {
            let (sin, cos) = libm::sincos(position as f64 * frequency);
            (cos as f32, sin as f32)
        };
        positions.flat_map(|p| self.frequencies.iter().map(move |f| angle(p, f))).collect()
    }
}

/// Turns every head of `x`, `(heads, head_dim)`, by the angles of its position: products and
/// their sum or difference rounded one after the other.
pub(crate) fn rotate(x: &mut [f32], angles: &[(f32, f32)]) {
    let pairs = angles.len();
    for head in x.chunks_exact_mut(2 * pairs) {
        let (first, second) = head.split_at_mut(pairs);
        for ((a, b), &(cos, sin)) in first.iter_mut().zip(second).zip(angles) {
            let (x, y) = (*a, *b);
            *a = x * cos - y * sin;
            *b = y * cos + x * sin;
        }
    }
}
