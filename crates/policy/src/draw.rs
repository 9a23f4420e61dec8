//! One draw from a distribution: Gumbel-max under the tokens' own noise.
//!
//! The drawn token has the largest `score - best + noise`; equal sums go to the higher score,
//! then to the lower token id. A token's noise is at most `-ln(v)` for any v not above its
//! uniform, since `-ln(1 - v) >= v`: that alone rules out nearly every token, and costs no
//! logarithm.

use causeway_kernels::Work;

use crate::arithmetic::exp;
use crate::dense::{BLOCK, Row};
use crate::noise::{GROUP, Noise, UNIFORM_MIN, in_group, uniform_floor, uniform_floor_f32};
use crate::survivors::{Candidate, Survivors};

/// The leader of a draw, and what a token needs to overtake it.
#[derive(Debug)]
struct Lead<'a> {
    noise: &'a Noise,
    /// The score that all sums are relative to.
    best: f64,
    leader: Candidate,
    sum: f64,
    /// A token can only win where its uniform is at most `bound * exp(score - best)`.
    bound: f64,
    /// The same for weights and floors in `f32`.
    bound_f32: f32,
}

impl<'a> Lead<'a> {
    /// Starts with the best token, which wins most often.
    fn new(noise: &'a Noise, best: Candidate) -> Self {
        let sum = f64::NEG_INFINITY;
        let (bound, bound_f32) = (f64::INFINITY, f32::INFINITY);
        let mut lead = Self { noise, best: best.score, leader: best, sum, bound, bound_f32 };
        lead.try_token(best);
        lead
    }

    fn try_token(&mut self, candidate: Candidate) {
        let sum = candidate.score - self.best + self.noise.gumbel(candidate.token);
        let (other, leader) = (&candidate, &self.leader);
        let first = other.score > leader.score
            || (other.score >= leader.score && other.token < leader.token);
        if sum > self.sum || (sum >= self.sum && first) {
            (self.leader, self.sum) = (candidate, sum);
            // The slacks cover every rounding on the way, so that no winner is ruled out.
            self.bound = libm::exp(-sum) * (1.0 + 1e-9);
            #[expect(clippy::cast_possible_truncation, reason = "rounded, with its slack")]
            {
                self.bound_f32 = (libm::exp(-sum) * (1.0 + 1e-4)) as f32;
            }
        }
    }

    /// Tries a token unless its high word rules it out.
    fn offer(&mut self, candidate: Candidate) {
        let limit = self.bound * candidate.weight;
        if limit >= UNIFORM_MIN && uniform_floor(self.noise.high_word(candidate.token)) <= limit {
            self.try_token(candidate);
        }
    }
}

/// Place in the list of the drawn token.
pub(crate) fn draw_from_list(survivors: &Survivors, noise: &Noise) -> usize {
    let list = &survivors.list;
    let mut lead = Lead::new(noise, list[0]);
    // Given probabilities weigh their own value: `best` is then the score of weight 1.
    lead.best = survivors.offset;
    lead.sum = f64::NEG_INFINITY;
    lead.try_token(list[0]);
    for &candidate in &list[1..] {
        lead.offer(candidate);
    }
    let drawn = lead.leader.token;
    list.iter().position(|c| c.token == drawn).expect("the leader is one of the list")
}

/// A draw from a whole row.
#[derive(Debug)]
pub(crate) struct RowDraw<'a> {
    pub row: &'a Row<'a>,
    /// The best token of the row.
    pub best: Candidate,
    /// What `Mass::of` gives: whole blocks.
    pub weights: &'a [f32],
    pub noise: Noise,
}

impl Work for RowDraw<'_> {
    /// The token drawn.
    type Out = Candidate;

    #[inline(always)]
    fn run(self) -> Candidate {
        let Self { row, best, weights, noise } = self;
        let mut lead = Lead::new(&noise, best);
        let blocks = weights.as_chunks::<BLOCK>().0;
        for (block, (weights, &max)) in blocks.iter().zip(row.maxima()).enumerate() {
            if max > f32::NEG_INFINITY && any_is_possible(&lead, block, weights) {
                try_block(&mut lead, row, block, weights);
            }
        }
        for &candidate in row.edited() {
            let weight = exp(candidate.score - best.score);
            lead.offer(Candidate { weight, ..candidate });
        }
        lead.leader
    }
}

/// Whether a high word leaves it open that one of the block's tokens wins, which few do.
#[inline(always)]
fn any_is_possible(lead: &Lead<'_>, block: usize, weights: &[f32; BLOCK]) -> bool {
    let mut possible = false;
    for (group, weights) in (BLOCK / GROUP * block..).zip(weights.as_chunks::<GROUP>().0) {
        let group = u32::try_from(group).expect("token ids are u32");
        for (word, lanes) in lead.noise.high_words(group).iter().enumerate() {
            for (lane, &high) in lanes.iter().enumerate() {
                let limit = lead.bound_f32 * weights[in_group(word, lane)];
                possible |= uniform_floor_f32(high) <= limit;
            }
        }
    }
    possible
}

#[cold]
fn try_block(lead: &mut Lead<'_>, row: &Row<'_>, block: usize, weights: &[f32; BLOCK]) {
    let first = block * BLOCK;
    for (token, &weight) in (first..row.values().len()).zip(weights) {
        let value = row.values()[token];
        let token = u32::try_from(token).expect("token ids are u32");
        let floor = uniform_floor_f32(lead.noise.high_word(token));
        if value > f32::NEG_INFINITY && floor <= lead.bound_f32 * weight {
            lead.try_token(Candidate { token, score: row.score(value), weight: 0.0 });
        }
    }
}
