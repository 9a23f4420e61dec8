//! The small sampling program that NumPy users write, draw for draw.
//!
//! `scaled = logits / temperature`, keep the top k, softmax over the kept, then
//! `default_rng(seed).choice(keep, p = probs)`: one uniform of PCG64 seeded by `SeedSequence`.

mod pcg64;

use causeway_request::TokenId;
use thiserror::Error;

use crate::survivors::{Candidate, sort};

pub use pcg64::{Pcg64, Seed, SeedError};

/// The array type the program computes in; `choice` itself always sums in `f64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FloatType {
    F32,
    #[default]
    F64,
}

/// What the program is given beside the logits.
#[derive(Debug, Clone, PartialEq)]
pub struct NumpyProgram<'a> {
    /// Above 0.
    pub temperature: f64,
    /// How many to keep; 0 keeps all.
    pub top_k: usize,
    /// The kept ids in NumPy's own order; `None` for falling logits, ties by rising id.
    ///
    /// NumPy's order comes out of `argpartition` and depends on the processor it runs on.
    pub keep: Option<&'a [TokenId]>,
    pub float_type: FloatType,
    pub seed: &'a Seed,
}

/// What the program gives.
#[derive(Debug, Clone, PartialEq)]
pub struct NumpyChoice {
    pub token: TokenId,
    /// The one uniform drawn, in [0, 1).
    pub uniform: f64,
    /// The kept ids, in the order that the draw runs over.
    pub keep: Vec<TokenId>,
    /// Their probabilities, in the same order.
    pub probabilities: Vec<f64>,
}

/// Why the program cannot run.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum NumpyError {
    /// Division by a temperature that is none.
    #[error("`temperature` is {temperature}, but the NumPy program divides by it: above 0 only")]
    Temperature { temperature: f64 },
    /// A logit that no softmax can take.
    #[error("the logit of token {token} is {value}, but must be finite or -inf")]
    Logit { token: TokenId, value: f64 },
    /// Nothing to choose from.
    #[error("there is no token to keep: every one of the {logits} logits is -inf")]
    Nothing { logits: usize },
    /// A kept id that no logit belongs to.
    #[error("`keep` names token {token}, but there are {logits} logits")]
    KeepOutside { token: TokenId, logits: usize },
    /// A kept id that stands twice.
    #[error("`keep` names token {token} twice")]
    KeepTwice { token: TokenId },
    /// The kept ids are not k.
    #[error("`keep` has {found} ids, but `top_k` keeps {top_k}")]
    KeepCount { found: usize, top_k: usize },
}

impl NumpyError {
    /// Always: every number comes from the caller.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        true
    }
}

/// Runs the program on one row of logits.
///
/// # Errors
/// [`NumpyError`] where NumPy would raise or give NaN.
pub fn numpy_choice(logits: &[f64], program: &NumpyProgram<'_>) -> Result<NumpyChoice, NumpyError> {
    let temperature = program.temperature;
    if !(temperature > 0.0 && temperature.is_finite()) {
        return Err(NumpyError::Temperature { temperature });
    }
    let scaled = scale(logits, temperature, program.float_type)?;
    let keep = match program.keep {
        Some(keep) => checked(keep, logits.len(), program.top_k)?,
        None => best(&scaled, program.top_k),
    };
    let kept: Vec<f64> = keep.iter().map(|token| scaled[token.index()]).collect();
    let probabilities = match program.float_type {
        FloatType::F32 => softmax_f32(&kept),
        FloatType::F64 => softmax_f64(&kept),
    };
    if probabilities.is_empty() || probabilities.iter().any(|p| p.is_nan()) {
        return Err(NumpyError::Nothing { logits: logits.len() });
    }
    let uniform = Pcg64::new(program.seed).next_f64();
    let token = keep[search(&probabilities, uniform)];
    Ok(NumpyChoice { token, uniform, keep, probabilities })
}

/// The division, rounded to the array's type; a float32 array divides by a float32.
fn scale(logits: &[f64], temperature: f64, float_type: FloatType) -> Result<Vec<f64>, NumpyError> {
    let mut scaled = Vec::with_capacity(logits.len());
    for (token, &value) in (0..).zip(logits) {
        let quotient = match float_type {
            #[expect(clippy::cast_possible_truncation, reason = "the program rounds to float32")]
            FloatType::F32 => f64::from(value as f32 / temperature as f32),
            FloatType::F64 => value / temperature,
        };
        if quotient.is_nan() || quotient == f64::INFINITY {
            return Err(NumpyError::Logit { token: TokenId(token), value });
        }
        scaled.push(quotient);
    }
    Ok(scaled)
}

fn checked(keep: &[TokenId], logits: usize, top_k: usize) -> Result<Vec<TokenId>, NumpyError> {
    if let Some(&token) = keep.iter().find(|token| token.index() >= logits) {
        return Err(NumpyError::KeepOutside { token, logits });
    }
    let mut sorted = keep.to_vec();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(NumpyError::KeepTwice { token: pair[0] });
    }
    if top_k != 0 && keep.len() != top_k.min(logits) {
        return Err(NumpyError::KeepCount { found: keep.len(), top_k });
    }
    Ok(keep.to_vec())
}

fn best(scaled: &[f64], top_k: usize) -> Vec<TokenId> {
    let mut list: Vec<Candidate> =
        (0..).zip(scaled).map(|(token, &score)| Candidate { token, score, weight: 0.0 }).collect();
    sort(&mut list);
    let count = if top_k == 0 { list.len() } else { top_k.min(list.len()) };
    list[..count].iter().map(|candidate| TokenId(candidate.token)).collect()
}

fn softmax_f64(scaled: &[f64]) -> Vec<f64> {
    let max = scaled.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = scaled.iter().map(|&score| libm::exp(score - max)).collect();
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|power| power / sum).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "the program computes in float32")]
fn softmax_f32(scaled: &[f64]) -> Vec<f64> {
    let max = scaled.iter().copied().fold(f64::NEG_INFINITY, f64::max) as f32;
    let power = |score: f64| libm::exp(f64::from(score as f32 - max)) as f32;
    let powers: Vec<f32> = scaled.iter().map(|&score| power(score)).collect();
    let sum: f32 = powers.iter().sum();
    powers.iter().map(|power| f64::from(power / sum)).collect()
}

/// `searchsorted(cumsum(p) / sum, u, side = "right")`: the first place whose sum is above `u`.
fn search(probabilities: &[f64], uniform: f64) -> usize {
    let mut sum = 0.0;
    let sums: Vec<f64> = probabilities
        .iter()
        .map(|p| {
            sum += p;
            sum
        })
        .collect();
    let place = sums.partition_point(|&running| running / sum <= uniform);
    // The last quotient is exactly 1 and the uniform below it, so the place is inside.
    place.min(probabilities.len() - 1)
}

#[cfg(test)]
mod tests;
