//! Drafts: tokens that may come next, looked up in what the run has read (prompt lookup).
//!
//! A draft is computed in the pass of the token before it, and belongs to nobody until that
//! token's row has chosen it. The next row is then its own; else it and all behind it are
//! forgotten. A row depends on the tokens before it alone, so that no bit of any answer depends
//! on what was drafted.

use causeway_request::TokenId;

/// Which runs are drafted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Drafts {
    /// None: each token that is chosen has a pass of its own.
    #[default]
    Off,
    /// Those that are held to a form, which mostly repeats what was asked.
    Forms,
    All,
}

/// Newest positions of all runs that a pass computes at little more than the price of one: the
/// weights are read for all of them together.
const ROWS_MAX: usize = 4;

/// Tokens that have to be found again before what followed them is drafted.
const MATCH_MIN: usize = 2;
/// The same for a run whose drafts fail again and again.
const MATCH_MAX: usize = 6;

/// How many drafts each of `running` decodes may have.
pub(crate) fn for_each(running: usize) -> usize {
    (ROWS_MAX / running.max(1)).saturating_sub(1)
}

/// What one run drafts.
#[derive(Debug)]
pub(crate) struct Drafted {
    /// What stands behind the newest known token, for the pass to come.
    tokens: Vec<TokenId>,
    /// How many of them the pass has seen chosen.
    accepted: usize,
    /// Tokens that have to be found again.
    match_len: usize,
}

impl Drafted {
    pub(crate) fn none() -> Self {
        Self { tokens: Vec::new(), accepted: 0, match_len: MATCH_MIN }
    }

    /// Drafts at most `count` tokens behind `tokens`; says how many.
    pub(crate) fn look_up(&mut self, tokens: &[TokenId], count: usize) -> usize {
        self.accepted = 0;
        self.tokens.clear();
        self.tokens.extend_from_slice(found(tokens, self.match_len, count));
        self.tokens.len()
    }

    /// What stands behind the newest known token.
    pub(crate) fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Keeps those that a pass has room for.
    pub(crate) fn keep(&mut self, count: usize) {
        self.tokens.truncate(count);
    }

    /// Whether the next draft is this token.
    pub(crate) fn is_next(&self, token: TokenId) -> bool {
        self.tokens.get(self.accepted) == Some(&token)
    }

    /// Takes the next draft as the token that it is.
    pub(crate) fn accept(&mut self) {
        self.accepted += 1;
    }

    /// Ends a pass: how many drafts were chosen. Where none of some was, the next ones need more
    /// tokens that are found again.
    pub(crate) fn settle(&mut self) -> usize {
        let accepted = std::mem::take(&mut self.accepted);
        if accepted > 0 {
            self.match_len = MATCH_MIN;
        } else if !self.tokens.is_empty() {
            self.match_len = MATCH_MAX.min(self.match_len + 1);
        }
        self.tokens.clear();
        accepted
    }
}

/// At most `count` tokens that followed where the last `match_len` tokens stood before, the last
/// such place.
fn found(tokens: &[TokenId], match_len: usize, count: usize) -> &[TokenId] {
    if count == 0 || tokens.len() <= match_len {
        return &[];
    }
    let last = &tokens[tokens.len() - match_len..];
    let place = tokens[..tokens.len() - 1].windows(match_len).rposition(|seen| seen == last);
    let next = place.map_or(tokens.len(), |place| place + match_len);
    &tokens[next..tokens.len().min(next + count)]
}

#[cfg(test)]
mod tests;
