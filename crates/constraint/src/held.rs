//! An answer that is held to a constraint: a matcher as the guide of a run.

use std::collections::VecDeque;

use causeway_policy::{Guide, Laid, LaidBy, TokenMask};
use causeway_request::TokenId;

use crate::compile::Plan;
use crate::error::MatchError;
use crate::matcher::Matcher;

/// Follows one answer; lays what the constraint leaves no choice about, and masks the rest.
///
/// What it cannot follow it never lets go on: the fault is what `mask` says from then on.
#[derive(Debug, Clone)]
pub struct Held {
    matcher: Matcher,
    /// Tokens that must come next, and that are still to be read.
    ahead: VecDeque<TokenId>,
    fault: Option<MatchError>,
}

impl Held {
    /// An answer before its first token.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        Self { matcher: plan.matcher(), ahead: VecDeque::new(), fault: None }
    }

    /// Why the answer cannot go on, if it cannot.
    #[must_use]
    pub fn fault(&self) -> Option<&MatchError> {
        self.fault.as_ref()
    }

    /// What a matcher gives, unless there is a fault, which is kept.
    fn ask<T>(&mut self, ask: impl FnOnce(&mut Matcher) -> Result<T, MatchError>) -> Option<T> {
        if self.fault.is_some() {
            return None;
        }
        ask(&mut self.matcher).map_err(|fault| self.fault = Some(fault)).ok()
    }
}

impl Guide for Held {
    fn read(&mut self, token: TokenId) {
        if self.ahead.pop_front() != Some(token) {
            self.ahead.clear();
        }
        self.ask(|matcher| matcher.advance(token));
    }

    fn laid(&mut self) -> Option<Laid> {
        if self.ahead.is_empty() {
            self.ahead = self.ask(Matcher::forced)?.into();
        }
        self.ahead.front().map(|&token| Laid { token, by: LaidBy::Form })
    }

    fn has_mask(&self) -> bool {
        true
    }

    fn prepare(&mut self) {
        self.ask(|matcher| matcher.mask().map(drop));
    }

    fn mask(&mut self) -> Result<Option<&TokenMask>, String> {
        if let Some(fault) = &self.fault {
            return Err(fault.to_string());
        }
        self.matcher.mask().map(Some).map_err(|fault| fault.to_string())
    }

    fn is_complete(&self) -> bool {
        self.fault.is_none() && self.matcher.is_complete()
    }

    fn boxed(&self) -> Box<dyn Guide> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests;
