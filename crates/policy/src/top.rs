//! The best tokens of a row by the model alone, for those who ask to see them.

use causeway_request::TokenId;

use crate::choose::Scratch;
use crate::dense::Row;
use crate::error::ChooseError;
use crate::mass::Mass;

/// The `count` best tokens of raw logits with their log-probabilities, in nats, best first; among
/// equals the lower token id comes first. Tokens that the logits rule out are left out.
///
/// The numbers are those that a choice from the same row gives as its `logprob`.
///
/// # Errors
/// A row that no token can be chosen from; `step` names it.
pub fn top_logprobs(
    logits: &[f32],
    step: u32,
    count: usize,
    scratch: &mut Scratch,
) -> Result<Vec<(TokenId, f64)>, ChooseError> {
    let row = Row::scan(logits, step, &mut scratch.row)?;
    let best = row.best().expect("the scan saw a finite value");
    let mass = Mass::of(&row, best, None);
    let mut top: Vec<(u32, f32)> = Vec::with_capacity(count + 1);
    for (token, &logit) in (0..).zip(logits) {
        let is_out = logit == f32::NEG_INFINITY
            || (top.len() >= count && top.last().is_none_or(|&(_, worst)| logit <= worst));
        if is_out {
            continue;
        }
        let place = top.partition_point(|&(_, better)| better >= logit);
        top.insert(place, (token, logit));
        top.truncate(count);
    }
    Ok(top.into_iter().map(|(id, logit)| (TokenId(id), mass.logprob(f64::from(logit)))).collect())
}

#[cfg(test)]
mod tests;
