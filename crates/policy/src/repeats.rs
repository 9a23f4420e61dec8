//! The rules that look for repeats in the tokens so far.

use std::collections::BTreeMap;

use causeway_request::TokenId;

use crate::edits::{Edit, Edits};
use crate::file::Window;

/// The tokens that a window shows, out of prompt and output.
pub(crate) fn seen(tokens: &[TokenId], prompt_tokens: usize, window: Window) -> &[TokenId] {
    match window {
        Window::All => tokens,
        Window::Output => &tokens[prompt_tokens..],
        Window::Last(count) => {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            &tokens[tokens.len().saturating_sub(count)..]
        }
    }
}

/// Each distinct token with how often it occurs, ascending by token.
pub(crate) fn counts(tokens: &[TokenId]) -> Vec<(TokenId, u32)> {
    let mut sorted = tokens.to_vec();
    sorted.sort_unstable();
    sorted
        .chunk_by(|a, b| a == b)
        .map(|run| (run[0], u32::try_from(run.len()).unwrap_or(u32::MAX)))
        .collect()
}

/// Masks every token that would repeat an n-gram of the tokens so far (Paulus et al. 2017).
pub(crate) fn no_repeat_ngram(tokens: &[TokenId], length: usize) -> Edits {
    let Some(start) = (tokens.len() + 1).checked_sub(length) else { return Vec::new() };
    let newest = &tokens[start..];
    let completed = tokens.windows(length).filter(|ngram| ngram[..length - 1] == *newest);
    masks(completed.map(|ngram| ngram[length - 1]).collect())
}

/// Masks the last token of each sequence whose other tokens are the newest ones.
pub(crate) fn bad_words(tokens: &[TokenId], sequences: &[Vec<TokenId>]) -> Edits {
    let completed = sequences.iter().filter_map(|sequence| {
        let (last, before) = sequence.split_last()?;
        tokens.ends_with(before).then_some(*last)
    });
    masks(completed.collect())
}

fn masks(mut tokens: Vec<TokenId>) -> Edits {
    tokens.sort_unstable();
    tokens.dedup();
    tokens.into_iter().map(|token| (token, Edit::Mask)).collect()
}

/// DRY as compiled: every count ready for use.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DryRule {
    pub multiplier: f64,
    pub base: f64,
    pub allowed_length: usize,
    pub length_max: usize,
    pub window: Window,
    pub breakers: Vec<Vec<TokenId>>,
}

/// Largest DRY penalty: beyond any logit, and still finite.
const DRY_MAX: f64 = 1e30;

impl DryRule {
    /// For each token that would lengthen a repeat of at least the allowed length:
    /// `multiplier * base^(length - allowed_length)` off its logit.
    pub(crate) fn edits(&self, tokens: &[TokenId]) -> Edits {
        let newest = self.since_breaker(tokens);
        let mut longest: BTreeMap<TokenId, usize> = BTreeMap::new();
        let backwards: Vec<TokenId> = tokens.iter().rev().copied().collect();
        // `matches[d]`: how many of the newest tokens also stand d places further back.
        let matches = prefix_matches(&backwards);
        for (distance, &length) in matches.iter().enumerate().skip(1) {
            let length = length.min(newest).min(self.length_max);
            if length >= self.allowed_length {
                let entry = longest.entry(backwards[distance - 1]).or_insert(0);
                *entry = length.max(*entry);
            }
        }
        let penalty = |length: usize| {
            #[expect(clippy::cast_precision_loss, reason = "a context is far below 2^53")]
            let power = libm::pow(self.base, (length - self.allowed_length) as f64);
            (self.multiplier * power).min(DRY_MAX)
        };
        longest.into_iter().map(|(token, length)| (token, Edit::Add(-penalty(length)))).collect()
    }

    /// How many of the newest tokens come after the last breaker: no repeat is longer.
    fn since_breaker(&self, tokens: &[TokenId]) -> usize {
        let ends = |end: usize| self.breakers.iter().any(|b| tokens[..end].ends_with(b));
        (0..=tokens.len()).find(|back| ends(tokens.len() - back)).unwrap_or(tokens.len())
    }
}

/// For each place, how long a prefix of the whole starts there (the Z function, Gusfield 1997).
fn prefix_matches(tokens: &[TokenId]) -> Vec<usize> {
    let mut lengths = vec![0; tokens.len()];
    let (mut left, mut right) = (0, 0);
    for place in 1..tokens.len() {
        let mut length = 0;
        if place < right {
            length = lengths[place - left].min(right - place);
        }
        while place + length < tokens.len() && tokens[length] == tokens[place + length] {
            length += 1;
        }
        if place + length > right {
            (left, right) = (place, place + length);
        }
        lengths[place] = length;
    }
    lengths
}
