//! One draw from a distribution: Gumbel-max under the tokens' own noise.

use crate::noise::{Noise, uniform_floor};
use crate::survivors::Survivors;

/// Place in the list of the drawn token: the largest `score + noise`, ties to the earlier place.
///
/// A token's noise is at most `-ln(v)` for any lower bound v of its uniform, since
/// `-ln(1 - v) >= v`; most tokens are ruled out by that alone, and cost no logarithm.
pub(crate) fn draw(survivors: &Survivors, noise: &Noise) -> usize {
    let mut best = (f64::NEG_INFINITY, 0);
    // A token can only win if `v <= bound * exp(score - offset)`.
    let mut bound = f64::INFINITY;
    let list = &survivors.list;
    if list.len() == 1 {
        return 0;
    }
    for (index, candidate) in list.iter().enumerate() {
        let relative = candidate.score - survivors.offset;
        if bound.is_finite() {
            let floor = uniform_floor(noise.high_word(candidate.token));
            if floor > bound * candidate.weight {
                continue;
            }
        }
        let sum = relative + noise.gumbel(candidate.token);
        if sum > best.0 {
            best = (sum, index);
            // The slack covers every rounding on the way, so no winner is ruled out.
            bound = libm::exp(-sum) * (1.0 + 1e-9);
        }
    }
    best.1
}
