//! What an answer is held to beside its policy: a thought to its budget, what follows to its form.

use std::sync::Arc;

use causeway_constraint::Held;
use causeway_policy::{Guide, Laid, Policy, TokenMask};
use causeway_request::TokenId;
use causeway_text::{AnswerRules, Text, Thought};

use crate::error::SessionError;
use crate::forms::FormPlan;
use crate::thought::{Budget, budget};

/// What lays and masks tokens of an answer under this policy; `None` where the policy alone
/// decides. `form` is the plan of the policy's form, `prefilled` the response prefill.
///
/// # Errors
/// A budget without markers, a closing marker that the vocabulary cannot spell, or a response
/// prefill that breaks the form.
pub fn guide(
    policy: &Policy,
    rules: &AnswerRules,
    form: Option<&FormPlan>,
    prefilled: &[u32],
    text: &Arc<Text>,
) -> Result<Option<Box<dyn Guide>>, SessionError> {
    let budget = budget(policy, rules, text)?;
    let Some(form) = form else {
        return Ok(budget.map(|budget| Box::new(budget) as Box<dyn Guide>));
    };
    // What is thought, in a prefill too, is free.
    let prefilled = if rules.starts_inside { &[] } else { prefilled };
    let held = form.held(prefilled)?;
    let Some(thought) = Thought::new(&text.tokenizer, rules) else {
        return Ok(Some(Box::new(held)));
    };
    let open = rules.markers.as_ref().map(|(open, _)| text.tokenizer.spell(open)).transpose()?;
    let open = match open.flatten().as_deref() {
        Some([open]) if prefilled.is_empty() => Some(*open),
        // A marker of several tokens would look like a part of the answer until it is whole.
        _ => None,
    };
    let mut free = TokenMask::all(policy.vocab_size());
    for end in policy.eos_tokens() {
        free.forbid(*end);
    }
    let with_open = TokenMask::none(policy.vocab_size());
    let text = Arc::clone(text);
    Ok(Some(Box::new(Thinking { text, budget, thought, open, held, free, with_open })))
}

/// Lets a thought be free, and holds what follows it to a form.
#[derive(Debug, Clone)]
struct Thinking {
    text: Arc<Text>,
    budget: Option<Budget>,
    thought: Thought,
    /// The token that may open a thought, as long as nothing was written.
    open: Option<TokenId>,
    held: Held,
    /// All tokens but those that would end the answer inside a thought.
    free: TokenMask,
    /// What the form allows at its beginning, and `open`.
    with_open: TokenMask,
}

impl Guide for Thinking {
    fn read(&mut self, token: TokenId) {
        if let Some(budget) = &mut self.budget {
            budget.read(token);
        }
        let was_inside = self.thought.is_inside();
        // A row of the model beyond the vocabulary has no text.
        let _ = self.thought.read(&self.text.tokenizer, token);
        self.open = None;
        if !was_inside && !self.thought.is_inside() {
            self.held.read(token);
        }
    }

    fn laid(&mut self) -> Option<Laid> {
        if let Some(laid) = self.budget.as_mut().and_then(Guide::laid) {
            return Some(laid);
        }
        if self.thought.is_inside() || self.open.is_some() { None } else { self.held.laid() }
    }

    fn has_mask(&self) -> bool {
        true
    }

    fn prepare(&mut self) {
        if !self.thought.is_inside() {
            self.held.prepare();
        }
    }

    fn mask(&mut self) -> Result<Option<&TokenMask>, String> {
        if self.thought.is_inside() {
            return Ok(Some(&self.free));
        }
        let mask = self.held.mask()?;
        let Some(open) = self.open else { return Ok(mask) };
        if let Some(mask) = mask {
            self.with_open.clone_from(mask);
        }
        self.with_open.allow(open);
        Ok(Some(&self.with_open))
    }

    fn is_complete(&self) -> bool {
        !self.thought.is_inside() && self.held.is_complete()
    }

    fn boxed(&self) -> Box<dyn Guide> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests;
