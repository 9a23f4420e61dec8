//! The bytes every token stands for, in one block of memory.

use crate::bytes::{LetterBytes, named_byte};
use crate::sentence_piece::SPACE_MARK;
use crate::vocabulary::{TokenType, Vocabulary, VocabularyKind};

/// Bytes of each token and whether it is structure.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    bytes: Vec<u8>,
    /// Where each token's bytes end: (vocab_size).
    ends: Vec<usize>,
    /// (vocab_size).
    control: Vec<bool>,
}

impl Pieces {
    pub(crate) fn from_vocabulary(vocabulary: &Vocabulary) -> Self {
        let letters = LetterBytes::new();
        let mut pieces = Self::default();
        for (index, text) in vocabulary.tokens.iter().enumerate() {
            let kind = vocabulary.token_type(index);
            pieces.push(kind == TokenType::Control || kind == TokenType::Unknown, |bytes| {
                push_piece(vocabulary.kind, kind, text, &letters, bytes);
            });
        }
        pieces
    }

    /// Appends the next token, whose bytes `write` appends.
    pub(crate) fn push(&mut self, is_control: bool, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
        self.control.push(is_control);
    }

    pub(crate) fn count(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn bytes(&self, token: u32) -> Option<&[u8]> {
        let index = token as usize;
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start..end])
    }

    pub(crate) fn is_control(&self, token: u32) -> bool {
        self.control.get(token as usize).copied().unwrap_or(false)
    }
}

/// Byte-level letters count in ordinary tokens only; every other spelling is the text itself.
fn push_piece(
    vocabulary: VocabularyKind,
    kind: TokenType,
    text: &str,
    letters: &LetterBytes,
    bytes: &mut Vec<u8>,
) {
    match (vocabulary, kind) {
        (VocabularyKind::ByteLevel, TokenType::Normal) => letters.push_bytes(text, bytes),
        (VocabularyKind::SentencePiece, TokenType::Byte) => match named_byte(text) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(text.as_bytes()),
        },
        (VocabularyKind::SentencePiece, TokenType::Normal | TokenType::UserDefined) => {
            push_unmarked(text, bytes);
        }
        _ => bytes.extend_from_slice(text.as_bytes()),
    }
}

/// Appends the text with spaces for space marks.
pub(crate) fn push_unmarked(text: &str, bytes: &mut Vec<u8>) {
    for (index, part) in text.split(SPACE_MARK).enumerate() {
        if index > 0 {
            bytes.push(b' ');
        }
        bytes.extend_from_slice(part.as_bytes());
    }
}
