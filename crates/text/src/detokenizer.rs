//! Tokens to text as they come: whole characters only, and nothing lost at the end.

use causeway_request::TokenId;

use crate::error::TextError;
use crate::tokenizer::Tokenizer;

/// What a detokenizer shows, and where its text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DetokenizeOptions {
    /// Control tokens appear as they are spelled; otherwise they leave no text.
    pub show_control: bool,
    /// The text goes on from other text, so that a leading space is the writer's own.
    pub continues: bool,
}

/// Turns a stream of tokens into text.
///
/// Whatever the calls of `push`, their texts and `finish` joined are the same as for all tokens
/// at once: the tokens' bytes, with U+FFFD for each maximal part of a character that is not valid
/// UTF-8. A byte is held back only while it can still become a character.
#[derive(Debug)]
pub struct Detokenizer<'t> {
    tokenizer: &'t Tokenizer,
    joiner: Joiner,
}

/// A detokenizer without its tokenizer.
#[derive(Debug, Clone)]
pub(crate) struct Joiner {
    show_control: bool,
    /// The vocabulary's own leading space is still to come.
    strips_space: bool,
    /// The token that was pushed last, of those that are shown.
    last: Option<TokenId>,
    /// Bytes of a character that is not whole yet: at most three.
    held: Vec<u8>,
}

impl<'t> Detokenizer<'t> {
    /// A detokenizer at the start of its text.
    #[must_use]
    pub fn new(tokenizer: &'t Tokenizer, options: DetokenizeOptions) -> Self {
        Self { tokenizer, joiner: Joiner::new(tokenizer, options) }
    }

    /// The text that this token completes; often empty.
    ///
    /// # Errors
    /// An id outside the vocabulary.
    pub fn push(&mut self, token: TokenId) -> Result<String, TextError> {
        self.joiner.push(self.tokenizer, token)
    }

    /// The rest of the text: U+FFFD where a character never became whole.
    #[must_use]
    pub fn finish(self) -> String {
        String::from_utf8_lossy(&self.joiner.held).into_owned()
    }
}

impl Joiner {
    /// The state at the start of a text.
    pub(crate) fn new(tokenizer: &Tokenizer, options: DetokenizeOptions) -> Self {
        let DetokenizeOptions { show_control, continues } = options;
        let strips_space = tokenizer.adds_space() && !continues;
        Self { show_control, strips_space, last: None, held: Vec::new() }
    }

    /// As `Detokenizer::push`, by the tokenizer that it began with.
    pub(crate) fn push(
        &mut self,
        tokenizer: &Tokenizer,
        token: TokenId,
    ) -> Result<String, TextError> {
        let mut bytes = tokenizer.piece(token)?;
        let is_control = tokenizer.is_control(token);
        if is_control && !self.show_control {
            return Ok(String::new());
        }
        if self.last.replace(token) == Some(token) && tokenizer.collapses() {
            return Ok(String::new());
        }
        if tokenizer.spaces_words() {
            self.push_word(tokenizer, token);
            return Ok(self.take_whole());
        }
        if self.strips_space && !is_control && !bytes.is_empty() {
            self.strips_space = false;
            bytes = bytes.strip_prefix(b" ").unwrap_or(bytes);
        }
        self.held.extend_from_slice(bytes);
        Ok(self.take_whole())
    }

    /// Every token shown is a word or goes on with one; the first is as it is spelled.
    fn push_word(&mut self, tokenizer: &Tokenizer, token: TokenId) {
        let is_control = tokenizer.is_control(token);
        let bytes = tokenizer.piece(token).unwrap_or_default();
        let is_first = std::mem::take(&mut self.strips_space);
        match tokenizer.opening(token).filter(|_| is_first && !is_control) {
            Some(opening) => self.held.extend_from_slice(opening.as_bytes()),
            None => {
                self.held.extend((is_control && !is_first).then_some(b' '));
                self.held.extend_from_slice(bytes);
            }
        }
    }

    /// Moves all but an unfinished character out of the held bytes.
    fn take_whole(&mut self) -> String {
        let mut whole = self.held.len();
        let mut chunks = self.held.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            let tail = chunk.invalid();
            if chunks.peek().is_none() && could_become_character(tail) {
                whole -= tail.len();
            }
        }
        let text = String::from_utf8_lossy(&self.held[..whole]).into_owned();
        self.held.drain(..whole);
        text
    }
}

/// Whether an invalid tail is the beginning of some character, rather than no character at all.
fn could_become_character(tail: &[u8]) -> bool {
    let wanted = match tail.first() {
        Some(0xC2..=0xDF) => 2,
        Some(0xE0..=0xEF) => 3,
        Some(0xF0..=0xF4) => 4,
        _ => return false,
    };
    // The standard library ends a chunk at the first byte that cannot follow, so a tail with
    // bytes to come is a prefix of a character.
    tail.len() < wanted
}

impl Tokenizer {
    /// All tokens at once: what a `Detokenizer` gives in pieces.
    ///
    /// # Errors
    /// An id outside the vocabulary.
    pub fn decode(
        &self,
        tokens: &[TokenId],
        options: DetokenizeOptions,
    ) -> Result<String, TextError> {
        let mut detokenizer = Detokenizer::new(self, options);
        let mut text = String::new();
        for token in tokens {
            text.push_str(&detokenizer.push(*token)?);
        }
        text.push_str(&detokenizer.finish());
        Ok(text)
    }
}

#[cfg(test)]
mod tests;
