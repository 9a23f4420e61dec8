//! SentencePiece's byte pair encoding (`llama` vocabularies): merges by score, bytes as fallback.

use std::collections::HashMap;

use crate::bytes::named_byte;
use crate::merge::{Merger, NO_TOKEN};
use crate::vocabulary::{TokenType, Vocabulary};

/// The mark that spells a space in such a vocabulary, U+2581.
pub(crate) const SPACE_MARK: char = '\u{2581}';

/// The pieces of one vocabulary and their ranks.
#[derive(Debug)]
pub(crate) struct SentencePiece {
    /// Pieces that text may become, to (rank, token): the best score has rank 0.
    pieces: HashMap<Box<str>, (u32, u32)>,
    /// Token of each byte; `NO_TOKEN` where the vocabulary lacks it.
    byte_tokens: [u32; 256],
    /// Pieces that exist only to be merged on; what is left of one is taken apart again.
    unused: Vec<bool>,
    unknown: Option<u32>,
}

impl SentencePiece {
    /// Builds from a vocabulary that `Vocabulary::check` has passed.
    pub(crate) fn new(vocabulary: &Vocabulary) -> Self {
        let ranks = ranks_of(&vocabulary.scores);
        let mut pieces = HashMap::with_capacity(vocabulary.tokens.len());
        let mut byte_tokens = [NO_TOKEN; 256];
        let mut unused = Vec::new();
        for (id, text) in (0u32..).zip(&vocabulary.tokens) {
            let kind = vocabulary.token_type(id as usize);
            match kind {
                TokenType::Normal | TokenType::UserDefined | TokenType::Unused => {
                    let rank = ranks[id as usize];
                    pieces.entry(text.as_str().into()).or_insert((rank, id));
                    if kind == TokenType::Unused {
                        unused.resize(vocabulary.tokens.len(), false);
                        unused[id as usize] = true;
                    }
                }
                TokenType::Byte => {
                    if let Some(byte) = named_byte(text) {
                        byte_tokens[usize::from(byte)] = id;
                    }
                }
                TokenType::Control | TokenType::Unknown => {}
            }
        }
        Self { pieces, byte_tokens, unused, unknown: vocabulary.special.unknown }
    }

    /// Appends the tokens of `text`, in which every space is already a space mark.
    pub(crate) fn encode(&self, text: &str, tokens: &mut Vec<u32>) {
        for part in self.parts(text, usize::MAX) {
            match self.pieces.get(part) {
                Some((_, token)) if self.is_unused(*token) => self.take_apart(part, tokens),
                Some((_, token)) => tokens.push(*token),
                None => self.push_bytes(part, tokens),
            }
        }
    }

    /// What merging leaves of `text`, where only pieces below `below` bytes are made.
    fn parts<'t>(&self, text: &'t str, below: usize) -> Vec<&'t str> {
        let mut merger = Merger::default();
        for letter in text.chars() {
            merger.push(NO_TOKEN, letter.len_utf8());
        }
        let spelling = |start: u32, len: u32| &text[start as usize..(start + len) as usize];
        merger.merge(|left, right| {
            let len = left.len + right.len;
            let fits = (len as usize) < below;
            fits.then(|| self.pieces.get(spelling(left.start, len)).copied()).flatten()
        });
        merger.symbols().map(|symbol| spelling(symbol.start, symbol.len)).collect()
    }

    fn push_bytes(&self, piece: &str, tokens: &mut Vec<u32>) {
        let bytes = piece.bytes().map(|byte| self.byte_tokens[usize::from(byte)]);
        if bytes.clone().any(|token| token == NO_TOKEN) {
            tokens.extend(self.unknown);
        } else {
            tokens.extend(bytes);
        }
    }

    /// Undoes the last merge of an unused piece, and of what that leaves, as long as it is unused.
    ///
    /// The merges inside a piece are the same alone as in its text, so merging the piece again
    /// short of its whole length leaves the two parts it was made of.
    fn take_apart(&self, piece: &str, tokens: &mut Vec<u32>) {
        let mut rest = vec![piece];
        while let Some(piece) = rest.pop() {
            match self.pieces.get(piece) {
                Some((_, token)) if self.is_unused(*token) => {
                    let parts = self.parts(piece, piece.len());
                    if parts.len() < 2 {
                        tokens.push(*token);
                    } else {
                        rest.extend(parts.into_iter().rev());
                    }
                }
                Some((_, token)) => tokens.push(*token),
                None => self.push_bytes(piece, tokens),
            }
        }
    }

    fn is_unused(&self, token: u32) -> bool {
        self.unused.get(token as usize).copied().unwrap_or(false)
    }
}

/// Rank of every score: the highest has 0, equal scores have equal ranks.
fn ranks_of(scores: &[f32]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    let mut ranks = vec![0; scores.len()];
    let mut rank = 0;
    let mut previous = None;
    for index in order {
        let score = scores[index];
        if previous.is_some_and(|previous: f32| score < previous) {
            rank += 1;
        }
        previous = Some(score);
        ranks[index] = rank;
    }
    ranks
}

#[cfg(test)]
mod tests;
