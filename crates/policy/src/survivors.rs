//! The tokens still in play, best first, and every filter as its definition on that list.

use std::cmp::Ordering;

use crate::arithmetic::exp;
use crate::like::{TopKTies, TopPCut, TypicalCut};

/// Relative slack of a comparison with a threshold, about 64 roundings.
///
/// Sums of decimals then land where the decimals say: 0.4 + 0.3 + 0.2 reaches 0.9.
pub(crate) const SLACK: f64 = 64.0 * f64::EPSILON;

/// One token in play.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Candidate {
    pub token: u32,
    /// Its logit as far as the stages have changed it; always finite.
    pub score: f64,
    /// `exp(score - offset)`, or the probability as given.
    pub weight: f64,
}

impl Candidate {
    /// The one of two that comes first: the higher score, then the lower token id.
    pub(crate) fn first(self, other: Self) -> Self {
        let other_first =
            other.score > self.score || (other.score >= self.score && other.token < self.token);
        if other_first { other } else { self }
    }
}

/// Tokens in play by falling score, ties by rising token id; never empty between stages.
#[derive(Debug, Clone, Default)]
pub(crate) struct Survivors {
    pub list: Vec<Candidate>,
    /// The score whose weight is 1.
    pub offset: f64,
    /// Sum of the weights, added in the order of the list.
    pub total: f64,
    /// What `total` was when the weights were last computed, before any filter.
    pub total_unfiltered: f64,
    /// Room for sorting.
    pub keys: Vec<u64>,
}

impl Survivors {
    /// Sorts the list and computes every weight anew: a stable softmax, not yet divided.
    pub(crate) fn soften(&mut self) {
        sort(&mut self.list);
        self.weigh();
    }

    /// The same for a list already in order.
    pub(crate) fn weigh(&mut self) {
        self.offset = self.list.first().map_or(0.0, |best| best.score);
        for candidate in &mut self.list {
            candidate.weight = exp(candidate.score - self.offset);
        }
        self.sum();
        self.total_unfiltered = self.total;
    }

    /// Adds the weights up again, after a filter.
    pub(crate) fn sum(&mut self) {
        self.total = self.list.iter().map(|candidate| candidate.weight).sum();
    }

    /// Natural logarithm of the probability of one of the list.
    pub(crate) fn logprob(&self, candidate: &Candidate) -> f64 {
        candidate.score - self.offset - libm::log(self.total)
    }

    /// Entropy in nats: `ln Z - sum of w (s - offset) / Z`.
    pub(crate) fn entropy(&self) -> f64 {
        let term = |c: &Candidate| c.weight * (c.score - self.offset);
        let mean: f64 = self.list.iter().map(term).sum::<f64>() / self.total;
        // A single token gives -0.0 or a rounding below 0.
        (libm::log(self.total) - mean).max(0.0)
    }

    pub(crate) fn temperature(&mut self, temperature: f64) {
        if temperature > 0.0 {
            for candidate in &mut self.list {
                candidate.score /= temperature;
            }
            self.soften();
        } else {
            self.truncate(1);
        }
    }

    pub(crate) fn top_k(&mut self, count: usize, ties: TopKTies) {
        if count >= self.list.len() {
            return;
        }
        let last = self.list[count - 1].score;
        let tied = match ties {
            TopKTies::Cut => 0,
            TopKTies::Keep => self.list[count..].iter().take_while(|c| c.score >= last).count(),
        };
        self.truncate(count + tied);
    }

    pub(crate) fn top_p(&mut self, mass: f64, cut: TopPCut) {
        let mut before = 0.0;
        for index in 0..self.list.len() {
            let reached = match cut {
                TopPCut::Reached => before >= mass * self.total * (1.0 - SLACK),
                TopPCut::Passed => before > mass * self.total_unfiltered * (1.0 + SLACK),
            };
            if reached && index > 0 {
                self.truncate(index);
                return;
            }
            before += self.list[index].weight;
        }
    }

    pub(crate) fn min_p(&mut self, share: f64, drops_equal: bool) {
        let slack = if drops_equal { 1.0 + SLACK } else { 1.0 - SLACK };
        self.keep_weights_from(share * self.list[0].weight * slack);
    }

    /// Locally typical sampling (Meister et al. 2022): nearest to the entropy first.
    pub(crate) fn typical(&mut self, mass: f64, cut: TypicalCut) {
        let entropy = self.entropy();
        let mut ranked: Vec<(f64, usize)> = (0..self.list.len())
            .map(|index| ((-self.logprob(&self.list[index]) - entropy).abs(), index))
            .collect();
        ranked.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut sum = 0.0;
        let reached = ranked.iter().position(|&(_, index)| {
            sum += self.list[index].weight;
            match cut {
                TypicalCut::ReachedWithTies => sum >= mass * self.total * (1.0 - SLACK),
                TypicalCut::Passed => sum > mass * self.total * (1.0 + SLACK),
            }
        });
        let last = reached.unwrap_or(ranked.len() - 1);
        let kept = match cut {
            TypicalCut::ReachedWithTies => {
                let distance = ranked[last].0;
                ranked.partition_point(|&(other, _)| other <= distance)
            }
            TypicalCut::Passed => last + 1,
        };
        ranked.truncate(kept);
        ranked.sort_unstable_by_key(|&(_, index)| index);
        self.list = ranked.iter().map(|&(_, index)| self.list[index]).collect();
        self.sum();
    }

    /// Top-n-sigma (Tang et al. 2024): scores within n standard deviations of the best.
    pub(crate) fn top_n_sigma(&mut self, n: f64) {
        #[expect(clippy::cast_precision_loss, reason = "a vocabulary is far below 2^53")]
        let count = self.list.len() as f64;
        let best = self.list[0].score;
        // Distances from the best keep large offsets from eating the digits.
        let mean = self.list.iter().map(|c| c.score - best).sum::<f64>() / count;
        let square = |c: &Candidate| (c.score - best - mean) * (c.score - best - mean);
        let deviation = (self.list.iter().map(square).sum::<f64>() / count).sqrt();
        let kept = self.list.partition_point(|c| c.score - best >= -n * deviation);
        self.truncate(kept);
    }

    /// Epsilon sampling (Hewitt et al. 2022): probabilities of at least epsilon.
    pub(crate) fn epsilon(&mut self, epsilon: f64) {
        self.keep_weights_from_share(epsilon, self.total);
    }

    /// Eta sampling (Hewitt et al. 2022): epsilon, lowered where the entropy is high.
    pub(crate) fn eta(&mut self, epsilon: f64) {
        let bound = Self::eta_bound(epsilon, self.entropy());
        self.keep_weights_from_share(bound, self.total);
    }

    /// The least probability that eta sampling keeps: `min(e, sqrt(e) * exp(-entropy))`.
    pub(crate) fn eta_bound(epsilon: f64, entropy: f64) -> f64 {
        epsilon.min(epsilon.sqrt() * libm::exp(-entropy))
    }

    /// Keeps what has at least `share` of `total`, and always what ties with the best.
    pub(crate) fn keep_weights_from_share(&mut self, share: f64, total: f64) {
        self.keep_weights_from(share * total * (1.0 - SLACK));
    }

    fn keep_weights_from(&mut self, threshold: f64) {
        let best = self.list[0].score;
        let kept = self.list.partition_point(|c| c.weight >= threshold || c.score >= best);
        self.truncate(kept);
    }

    fn truncate(&mut self, count: usize) {
        if count < self.list.len() {
            self.list.truncate(count);
            self.sum();
        }
    }
}

/// Falling score, ties by rising token id: the one order of tokens.
pub(crate) fn sort(list: &mut [Candidate]) {
    // Scores are never NaN, and -0.0 ties with 0.0.
    list.sort_unstable_by(|a, b| {
        b.score.partial_cmp(&a.score).unwrap_or(Ordering::Equal).then(a.token.cmp(&b.token))
    });
}
