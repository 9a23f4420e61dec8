//! What an answer is held to beside its policy: tokens that are laid, tokens that may not come.

use std::fmt;

use causeway_request::{Cause, Choice, TokenId};

use crate::choose::{Scratch, StepContext};
use crate::dense::Row;
use crate::error::ChooseError;
use crate::mask::TokenMask;
use crate::mass::Mass;
use crate::policy::Policy;
use crate::whole_row::rank;

/// The field that lays the closing marker of a thought, by its path in the policy file.
pub const THOUGHT_BUDGET: &str = "reasoning.tokens_max";

/// What rules a token out by the form that the answer is held to, as accounts name it.
pub const MASK: &str = "mask";

/// Who lays a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaidBy {
    /// A field of the policy by its path in the file, as in `reasoning.tokens_max`.
    Field(&'static str),
    /// The form that the answer is held to, which leaves no choice.
    Form,
}

impl LaidBy {
    /// What kept another token from being chosen, as accounts name it.
    fn removes(self) -> &'static str {
        match self {
            Self::Field(path) => path,
            Self::Form => MASK,
        }
    }

    /// The field; `None` for the form, which is among the constraints.
    fn field(self) -> Option<&'static str> {
        match self {
            Self::Field(path) => Some(path),
            Self::Form => None,
        }
    }
}

/// A token that must come next, and who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Laid {
    pub token: TokenId,
    pub by: LaidBy,
}

/// Follows one generation prefix and says where the policy has no choice, and what it may choose.
///
/// It may depend on the policy, the prompt and the tokens it has read, and on nothing else: what
/// it says is part of what a replay reproduces.
pub trait Guide: fmt::Debug + Send {
    /// Reads the next token of the generation prefix, chosen or laid; the response prefill is
    /// known to it from the start.
    fn read(&mut self, token: TokenId);

    /// The token that must come next; `None` leaves the choice to the policy.
    fn laid(&mut self) -> Option<Laid>;

    /// Whether it has a `mask` that is worth preparing.
    fn has_mask(&self) -> bool {
        false
    }

    /// Works out what `mask` will say, beside the pass whose row it is for.
    fn prepare(&mut self) {}

    /// The tokens that may come next; `None` where all may.
    ///
    /// # Errors
    /// A sentence that says why the answer cannot be held to its form any longer.
    fn mask(&mut self) -> Result<Option<&TokenMask>, String> {
        Ok(None)
    }

    /// Whether what was read is whole, and nothing may follow it.
    fn is_complete(&self) -> bool {
        false
    }

    /// A second guide that has read the same.
    fn boxed(&self) -> Box<dyn Guide>;
}

impl Clone for Box<dyn Guide> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

impl Policy {
    /// The account of a step whose token is laid: forced, whatever the stages would make of it.
    ///
    /// The token has the probability 1 under the policy and is the one survivor; its
    /// log-probability and its rank are the row's, as for every token.
    ///
    /// # Errors
    /// A row that is not fit to choose from, or a token outside the vocabulary.
    pub fn lay(
        &self,
        logits: &[f32],
        laid: Laid,
        context: &StepContext<'_>,
        scratch: &mut Scratch,
    ) -> Result<Choice, ChooseError> {
        self.check(logits.len(), None, context)?;
        let Laid { token, by } = laid;
        let vocab_size = self.vocab_size;
        let logit = logits.get(token.index()).copied();
        let logit = logit.ok_or(ChooseError::TokenOutside { token, vocab_size })?;
        let row = Row::scan(logits, context.step, &mut scratch.row)?;
        let best = row.best().expect("the scan saw a finite value");
        let raw = Mass::of(&row, best, None);
        let raw_best = TokenId(raw.best.token);
        Ok(Choice {
            token,
            logprob: raw.logprob(f64::from(logit)),
            rank: rank(logits, token),
            probability: 1.0,
            survivors: 1,
            entropy: raw.entropy(),
            raw_best,
            removed_by: (raw_best != token).then_some(by.removes()),
            runner_up: None,
            cause: Cause::Forced,
            forced_by: by.field(),
        })
    }
}

#[cfg(test)]
mod tests;
