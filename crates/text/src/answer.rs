//! The text side of one answer: tokens in, what may be shown out.

use causeway_request::TokenId;

use crate::detokenizer::{DetokenizeOptions, Detokenizer};
use crate::error::TextError;
use crate::reasoning::{Parts, ReasoningSplitter};
use crate::stop::{Emitted, StopError, StopMatcher};
use crate::tokenizer::Tokenizer;

/// What shapes an answer's text beside its tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerRules {
    /// Strings that end the answer; they are looked for in its visible text only.
    pub stops: Vec<String>,
    /// Tokens before a stop string may end the answer.
    pub min_tokens: u64,
    /// The markers between which text is reasoning: the opening one and the closing one.
    pub markers: Option<(String, String)>,
    /// The prompt ends with the opening marker, so that the first text is reasoning.
    pub starts_inside: bool,
    /// The answer goes on from other text, so that a leading space is its own.
    pub continues: bool,
}

/// What one token, or the end, adds to an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerPart {
    /// Text of the answer that is certain to stay.
    pub visible: String,
    /// Text of the reasoning that is certain to stay.
    pub reasoning: String,
    /// Whether the token belongs to the reasoning, its markers included.
    pub is_reasoning: bool,
    /// Bytes of visible text that became whole, those that are held back for a stop string too.
    pub visible_bytes: usize,
    /// Index of the stop string that ended the answer, as they were given.
    pub stopped: Option<usize>,
}

/// Turns the tokens of one answer into its text: whole characters, reasoning apart, nothing of a
/// stop string.
///
/// What comes out, joined, does not depend on when it is asked for: streamed text is whole text.
#[derive(Debug)]
pub struct Answer<'t> {
    detokenizer: Detokenizer<'t>,
    reasoning: Option<ReasoningSplitter>,
    stops: StopMatcher,
    min_tokens: u64,
    tokens: u64,
    /// The newest token was laid: what is held back is no text of the model's.
    is_laid: bool,
}

impl<'t> Answer<'t> {
    /// An answer before its first token.
    ///
    /// # Errors
    /// Stop strings that are refused.
    pub fn new(tokenizer: &'t Tokenizer, rules: &AnswerRules) -> Result<Self, StopError> {
        let AnswerRules { stops, min_tokens, markers, starts_inside, continues } = rules;
        let options = DetokenizeOptions { show_control: false, continues: *continues };
        let splitter =
            |(open, close): &(String, String)| ReasoningSplitter::new(open, close, *starts_inside);
        Ok(Self {
            detokenizer: Detokenizer::new(tokenizer, options),
            reasoning: markers.as_ref().map(splitter),
            stops: StopMatcher::new(stops)?,
            min_tokens: *min_tokens,
            tokens: 0,
            is_laid: false,
        })
    }

    /// Takes the next token; after a stop string, nothing more is shown.
    ///
    /// # Errors
    /// An id outside the vocabulary.
    pub fn push(&mut self, token: TokenId) -> Result<AnswerPart, TextError> {
        let text = self.detokenizer.push(token)?;
        self.is_laid = false;
        self.tokens += 1;
        let (parts, is_reasoning) = match &mut self.reasoning {
            None => (Parts { visible: text, reasoning: String::new() }, false),
            Some(splitter) => {
                let was_inside = splitter.is_inside();
                let parts = splitter.push(&text);
                (parts, was_inside || splitter.is_inside())
            }
        };
        let Emitted { text, stopped } = if self.tokens < self.min_tokens {
            self.stops.push_exempt(&parts.visible)
        } else {
            self.stops.push(&parts.visible)
        };
        Ok(AnswerPart {
            visible: text,
            reasoning: parts.reasoning,
            is_reasoning,
            visible_bytes: parts.visible.len(),
            stopped,
        })
    }

    /// Takes a token of a closing marker that was laid, not chosen: where the answer ends before
    /// the marker is whole, nothing of it is shown.
    ///
    /// # Errors
    /// As `push`.
    pub fn push_laid(&mut self, token: TokenId) -> Result<AnswerPart, TextError> {
        let part = self.push(token)?;
        self.is_laid = true;
        Ok(part)
    }

    /// Whether the next token is reasoning, as far as can be told.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.reasoning.as_ref().is_some_and(ReasoningSplitter::is_inside)
    }

    /// What was held back, when no more tokens come; a stop string may have been part of it.
    #[must_use]
    pub fn finish(self) -> AnswerPart {
        let Self { detokenizer, reasoning, mut stops, is_laid, .. } = self;
        let mut parts = Parts::default();
        if !is_laid {
            parts.visible = detokenizer.finish();
        }
        if let Some(mut splitter) = reasoning {
            let pushed = splitter.push(&parts.visible);
            let rest = if is_laid { Parts::default() } else { splitter.finish() };
            parts.visible = pushed.visible + &rest.visible;
            parts.reasoning = pushed.reasoning + &rest.reasoning;
        }
        let visible_bytes = parts.visible.len();
        let pushed = stops.push(&parts.visible);
        let rest = stops.finish();
        AnswerPart {
            visible: pushed.text + &rest.text,
            reasoning: parts.reasoning,
            is_reasoning: false,
            visible_bytes,
            stopped: pushed.stopped.or(rest.stopped),
        }
    }
}

#[cfg(test)]
mod tests;
