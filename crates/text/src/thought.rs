//! Where an answer's thought stands, token by token, and the tokens that spell its markers.

use causeway_request::TokenId;

use crate::answer::AnswerRules;
use crate::detokenizer::{DetokenizeOptions, Joiner};
use crate::error::TextError;
use crate::reasoning::ReasoningSplitter;
use crate::tokenizer::Tokenizer;

/// Follows the tokens of an answer and says which of them are thought, as `Answer` does, but
/// holds no tokenizer: it can go where an answer's text may not.
#[derive(Debug, Clone)]
pub struct Thought {
    joiner: Joiner,
    splitter: ReasoningSplitter,
}

impl Thought {
    /// The thought of an answer before its first token; `None` where the rules have no markers.
    #[must_use]
    pub fn new(tokenizer: &Tokenizer, rules: &AnswerRules) -> Option<Self> {
        let AnswerRules { stops: _, min_tokens: _, markers, starts_inside, continues } = rules;
        let (open, close) = markers.as_ref()?;
        let options = DetokenizeOptions { show_control: false, continues: *continues };
        Some(Self {
            joiner: Joiner::new(tokenizer, options),
            splitter: ReasoningSplitter::new(open, close, *starts_inside),
        })
    }

    /// Whether the next token is thought, as far as can be told.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.splitter.is_inside()
    }

    /// Reads the next token; `tokenizer` is the one that it began with.
    ///
    /// # Errors
    /// An id outside the vocabulary.
    pub fn read(&mut self, tokenizer: &Tokenizer, token: TokenId) -> Result<(), TextError> {
        let text = self.joiner.push(tokenizer, token)?;
        self.splitter.push(&text);
        Ok(())
    }
}

impl Tokenizer {
    /// The tokens whose text an answer shows as this marker; a space that the vocabulary itself
    /// puts first may stand before it. `None` where the vocabulary has no such tokens, for
    /// example because the marker is a control token, whose text no answer shows.
    ///
    /// # Errors
    /// A marker that is too long to be encoded.
    pub fn spell(&self, marker: &str) -> Result<Option<Vec<TokenId>>, TextError> {
        let tokens = self.encode(marker, true, false)?;
        let options = DetokenizeOptions { show_control: false, continues: true };
        let text = self.decode(&tokens, options)?;
        let is_spelled = text == marker || text.strip_prefix(' ') == Some(marker);
        Ok(is_spelled.then_some(tokens))
    }
}

#[cfg(test)]
mod tests;
