//! What an answer is held to beside its policy: a thought to its budget, what follows to its form.

use std::sync::Arc;

use causeway_constraint::Held;
use causeway_policy::{Guide, Laid, LaidBy, Policy, TokenMask};
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
    let marker = open.flatten().filter(|marker| prefilled.is_empty() && !marker.is_empty());
    let opening = marker.map(|marker| Opening { marker: marker.into(), read: 0, begun: None });
    let mut free = TokenMask::all(policy.vocab_size());
    for end in policy.eos_tokens() {
        free.forbid(*end);
    }
    let with_open = TokenMask::none(policy.vocab_size());
    let text = Arc::clone(text);
    Ok(Some(Box::new(Thinking { text, budget, thought, opening, held, free, with_open })))
}

/// Lets a thought be free, and holds what follows it to a form.
#[derive(Debug, Clone)]
struct Thinking {
    text: Arc<Text>,
    budget: Option<Budget>,
    thought: Thought,
    /// The marker that may open a thought, as long as nothing else was written.
    opening: Option<Opening>,
    held: Held,
    /// All tokens but those that would end the answer inside a thought.
    free: TokenMask,
    /// What the form allows, and the next token of the marker.
    with_open: TokenMask,
}

/// An opening marker on its way: until it is whole it may also be the form's own text.
#[derive(Debug, Clone)]
struct Opening {
    /// At least one token.
    marker: Arc<[TokenId]>,
    /// Tokens of it that were read; fewer than there are.
    read: usize,
    /// The form before its first token, once any of the marker was read.
    begun: Option<Held>,
}

impl Opening {
    fn next(&self) -> TokenId {
        self.marker[self.read]
    }
}

impl Thinking {
    /// Whether what was written can only be the beginning of a thought.
    fn must_open(&self) -> bool {
        let has_begun = self.opening.as_ref().is_some_and(|opening| opening.read > 0);
        has_begun && self.held.fault().is_some()
    }
}

impl Guide for Thinking {
    fn read(&mut self, token: TokenId) {
        if let Some(budget) = &mut self.budget {
            budget.read(token);
        }
        let was_inside = self.thought.is_inside();
        // A row of the model beyond the vocabulary has no text.
        let _ = self.thought.read(&self.text.tokenizer, token);
        let opening = self.opening.take().filter(|opening| !was_inside && opening.next() == token);
        if was_inside {
            return;
        }
        if self.thought.is_inside() {
            // What the marker looked like before it was whole is undone.
            if let Some(begun) = opening.and_then(|opening| opening.begun) {
                self.held = begun;
            }
            return;
        }
        if let Some(mut opening) = opening.filter(|opening| opening.read + 1 < opening.marker.len())
        {
            opening.begun.get_or_insert_with(|| self.held.clone());
            opening.read += 1;
            self.opening = Some(opening);
        }
        self.held.read(token);
    }

    fn laid(&mut self) -> Option<Laid> {
        if let Some(laid) = self.budget.as_mut().and_then(Guide::laid) {
            return Some(laid);
        }
        if self.thought.is_inside() {
            return None;
        }
        match &self.opening {
            None => self.held.laid(),
            // Where the form cannot have begun like this, the rest of the marker must come.
            Some(opening) => {
                let laid = Laid { token: opening.next(), by: LaidBy::Form };
                self.must_open().then_some(laid)
            }
        }
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
        let Some(open) = self.opening.as_ref().map(Opening::next) else { return self.held.mask() };
        if self.must_open() {
            self.with_open = TokenMask::none(self.with_open.vocab_size());
        } else if let Some(mask) = self.held.mask()? {
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
