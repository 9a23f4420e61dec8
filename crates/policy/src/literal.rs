//! A row as a caller writes it down: logits of full precision, or probabilities as they are.

use causeway_request::TokenId;

use crate::error::ChooseError;
use crate::survivors::{Candidate, Survivors};

/// A row of scores as a caller writes them down, not rounded to `f32`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Literal<'a> {
    Logits(&'a [f64]),
    /// Probabilities, used as they are: no logarithm and back.
    Probabilities(&'a [f64]),
}

impl Literal<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Logits(row) | Self::Probabilities(row) => row.len(),
        }
    }

    /// The row as a list, best first, with raw weights.
    pub(crate) fn to_survivors(self, step: u32) -> Result<Survivors, ChooseError> {
        let vocab_size = self.len();
        let mut survivors = Survivors::default();
        match self {
            Self::Logits(row) => {
                survivors.list = scored(row, step)?;
                survivors.soften();
            }
            Self::Probabilities(row) => {
                survivors.list = given(row)?;
                (survivors.total, survivors.total_unfiltered) = (1.0, 1.0);
            }
        }
        if survivors.list.is_empty() {
            return Err(ChooseError::NothingGiven { step, vocab_size });
        }
        Ok(survivors)
    }
}

/// Logits as candidates, in token order and without weights.
fn scored(row: &[f64], step: u32) -> Result<Vec<Candidate>, ChooseError> {
    let mut list = Vec::new();
    for (token, &score) in (0..).zip(row) {
        if score.is_nan() {
            return Err(ChooseError::NotANumber { step, token: TokenId(token) });
        }
        if score == f64::NEG_INFINITY {
            continue;
        }
        if score.abs() > f64::from(f32::MAX) {
            return Err(ChooseError::Infinite { step, token: TokenId(token), value: score });
        }
        list.push(Candidate { token, score, weight: 0.0 });
    }
    Ok(list)
}

/// Farthest that given probabilities may sum from 1: what six written digits of each can cost.
const SUM_SLACK: f64 = 1e-4;

/// Probabilities as candidates: ordered by the probability itself, the score its logarithm.
fn given(row: &[f64]) -> Result<Vec<Candidate>, ChooseError> {
    let mut list = Vec::new();
    for (token, &value) in (0..).zip(row) {
        if !(0.0..=1.0).contains(&value) {
            return Err(ChooseError::Probability { token: TokenId(token), value });
        }
        if value > 0.0 {
            list.push(Candidate { token, score: libm::log(value), weight: value });
        }
    }
    let sum: f64 = list.iter().map(|candidate| candidate.weight).sum();
    if (sum - 1.0).abs() > SUM_SLACK {
        return Err(ChooseError::ProbabilitySum { sum });
    }
    list.sort_unstable_by(|a, b| b.weight.total_cmp(&a.weight).then(a.token.cmp(&b.token)));
    Ok(list)
}
