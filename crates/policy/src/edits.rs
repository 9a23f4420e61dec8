//! What a constraint does to single tokens: masks, additions and scalings.

use causeway_request::TokenId;

use crate::survivors::Survivors;

/// One change to one token's logit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Edit {
    Mask,
    Add(f64),
    /// Repetition penalty (Keskar et al. 2019): `l / r` where `l > 0`, else `l * r`.
    Scale(f64),
}

/// The changes of one stage, ascending by token, each token once.
pub(crate) type Edits = Vec<(TokenId, Edit)>;

impl Edit {
    /// The logit after the change; minus infinity is a mask.
    pub(crate) fn apply(self, score: f64) -> f64 {
        match self {
            Self::Mask => f64::NEG_INFINITY,
            Self::Add(bias) => score + bias,
            Self::Scale(penalty) if score > 0.0 => score / penalty,
            Self::Scale(penalty) => score * penalty,
        }
    }
}

impl Survivors {
    /// Applies the changes of one stage to the tokens in play.
    pub(crate) fn edit(&mut self, edits: &[(TokenId, Edit)]) {
        let mut moved = false;
        for candidate in &mut self.list {
            let token = TokenId(candidate.token);
            if let Ok(index) = edits.binary_search_by_key(&token, |&(token, _)| token) {
                candidate.score = edits[index].1.apply(candidate.score);
                moved |= candidate.score > f64::NEG_INFINITY;
            }
        }
        self.settle(moved);
    }

    /// Keeps the tokens that `allowed` says.
    pub(crate) fn retain(&mut self, allowed: impl Fn(TokenId) -> bool) {
        self.list.retain(|candidate| allowed(TokenId(candidate.token)));
        self.settle(false);
    }

    /// Drops what is masked; computes weights anew only where a score moved, so that
    /// probabilities given by the caller stay as they were given.
    fn settle(&mut self, moved: bool) {
        self.list.retain(|candidate| candidate.score > f64::NEG_INFINITY);
        if moved {
            self.soften();
        } else {
            self.sum();
            self.total_unfiltered = self.total;
        }
    }
}
