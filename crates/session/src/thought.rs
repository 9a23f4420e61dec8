//! A thought that may not go on for ever: its budget, and the marker that is laid behind it.

use std::sync::Arc;

use causeway_policy::{Guide, Laid, LaidBy, Policy, Reasoning, THOUGHT_BUDGET};
use causeway_request::TokenId;
use causeway_text::{AnswerRules, Text, Thought};

use crate::error::{FitError, SessionError};

/// Lays the closing marker once a thought has used up what the policy gives it.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    text: Arc<Text>,
    thought: Thought,
    /// Tokens that may still be thought, over all thoughts of the answer.
    left: u64,
    /// What is laid, and how many of it are.
    close: Arc<[TokenId]>,
    laid: usize,
}

/// What lays the closing marker of a thought whose budget is used up. `None` where the policy
/// names no budget.
///
/// # Errors
/// A budget without markers, or a closing marker that the vocabulary cannot spell.
pub(crate) fn budget(
    policy: &Policy,
    rules: &AnswerRules,
    text: &Arc<Text>,
) -> Result<Option<Budget>, SessionError> {
    let Reasoning { close, tokens_max, .. } = &policy.file().reasoning;
    let Some(left) = *tokens_max else { return Ok(None) };
    let thought = Thought::new(&text.tokenizer, rules).ok_or(FitError::NoMarkers)?;
    let marker = close.as_deref().unwrap_or_default();
    let spelled = text.tokenizer.spell(marker)?.filter(|tokens| !tokens.is_empty());
    let close = spelled.ok_or_else(|| FitError::Unspelled { marker: marker.to_owned() })?;
    let text = Arc::clone(text);
    Ok(Some(Budget { text, thought, left, close: close.into(), laid: 0 }))
}

impl Budget {
    fn is_due(&self) -> bool {
        self.laid > 0 || (self.left == 0 && self.thought.is_inside())
    }
}

impl Guide for Budget {
    fn read(&mut self, token: TokenId) {
        if self.is_due() {
            self.laid = (self.laid + 1) % self.close.len();
        } else if self.thought.is_inside() {
            self.left -= 1;
        }
        // A row of the model beyond the vocabulary has no text.
        let _ = self.thought.read(&self.text.tokenizer, token);
    }

    fn laid(&mut self) -> Option<Laid> {
        let by = LaidBy::Field(THOUGHT_BUDGET);
        self.is_due().then(|| Laid { token: self.close[self.laid], by })
    }

    fn boxed(&self) -> Box<dyn Guide> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests;
