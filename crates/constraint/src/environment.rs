//! A model's vocabulary as the grammar engine reads it: a trie of bytes, and canonical tokens.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use causeway_request::TokenId;
use causeway_text::{SpecialIds, TokenType, Tokenizer, Vocabulary};
use llguidance::ParserFactory;
use llguidance::earley::SlicedBiasComputer;
use toktrie::{InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenizerEnv};

use crate::error::EnvironmentError;

/// Longest token that a grammar may lead to; the trie counts depth in ten bits.
const TOKEN_BYTES_MAX: usize = 1000;
/// Most bytes of all tokens together; the trie counts its nodes in 22 bits.
const VOCABULARY_BYTES_MAX: usize = 4_000_000;
/// A byte that no text holds and no merge crosses, set before text whose start must not get a
/// space of the vocabulary's own.
const GUARD: &str = "\u{2}";

/// What every plan of one model shares; built once per model, cheap to clone.
#[derive(Clone)]
pub struct Environment {
    factory: Arc<ParserFactory>,
    rows: usize,
}

/// The tokenizer, so that forced text becomes the tokens that the model reads as natural.
struct Canonical {
    tokenizer: Arc<Tokenizer>,
    trie: TokTrie,
}

impl Environment {
    /// Reads a vocabulary.
    ///
    /// `rows` is the length of the model's logits, at least the vocabulary's size: rows beyond it
    /// are never allowed. `ends` are the tokens that end an answer; they are allowed exactly
    /// where the constraint is complete.
    ///
    /// # Errors
    /// Fewer rows than tokens, no end token or one outside the vocabulary, a vocabulary beyond
    /// the limits.
    pub fn new(
        tokenizer: Arc<Tokenizer>,
        rows: usize,
        ends: &[TokenId],
    ) -> Result<Self, EnvironmentError> {
        let tokens = tokenizer.vocab_size();
        let vocab_size = match u32::try_from(rows) {
            Ok(count) if rows >= tokens => count,
            _ => return Err(EnvironmentError::Rows { rows, tokens }),
        };
        let ends: Vec<u32> = ends.iter().map(|end| end.0).collect();
        let Some(&first) = ends.first() else {
            return Err(EnvironmentError::NoEnd);
        };
        if let Some(&end) = ends.iter().find(|end| **end >= vocab_size) {
            return Err(EnvironmentError::End { end, rows });
        }
        let words = words(&tokenizer, rows, &ends);
        let bytes = words.iter().map(Vec::len).sum();
        if bytes > VOCABULARY_BYTES_MAX {
            return Err(EnvironmentError::Bytes { bytes, limit: VOCABULARY_BYTES_MAX });
        }
        // The library asserts what it counts in few bits.
        let built = catch_unwind(AssertUnwindSafe(|| {
            let counts = TokRxInfo::new(vocab_size, first);
            let trie = TokTrie::from(&counts, &words).with_eos_tokens(&ends);
            let env: TokEnv = Arc::new(Canonical { tokenizer, trie });
            let slices = SlicedBiasComputer::json_slices();
            ParserFactory::new(&env, capabilities(), &slices).ok()
        }));
        let mut factory = built.ok().flatten().ok_or(EnvironmentError::Trie { tokens })?;
        factory.quiet();
        Ok(Self { factory: Arc::new(factory), rows })
    }

    /// A vocabulary of the 256 bytes and one end token: for checking documents without a model.
    #[must_use]
    pub fn of_bytes() -> Self {
        let first = [
            ("<unk>", TokenType::Unknown),
            ("</s>", TokenType::Control),
            ("\u{2581}", TokenType::Normal),
        ];
        let special = SpecialIds { eos: Some(1), unknown: Some(0), ..SpecialIds::default() };
        let vocabulary = Vocabulary { special, ..Vocabulary::of_bytes(&first) };
        let tokenizer = Tokenizer::from_vocabulary(&vocabulary).expect("the 256 bytes are whole");
        let rows = tokenizer.vocab_size();
        Self::new(Arc::new(tokenizer), rows, &[TokenId(1)])
            .expect("the 256 bytes are within the limits and have an end token")
    }

    /// How many tokens a mask speaks of: the length of the model's logits.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The bytes a token stands for; empty for control tokens and for rows without a token.
    #[must_use]
    pub fn bytes(&self, token: TokenId) -> &[u8] {
        let trie = self.trie();
        if token.index() >= self.rows || trie.is_special_token(token.0) {
            return &[];
        }
        trie.token(token.0)
    }

    pub(crate) fn factory(&self) -> &ParserFactory {
        &self.factory
    }

    pub(crate) fn trie(&self) -> &TokTrie {
        self.factory.tok_env().tok_trie()
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("rows", &self.rows).finish_non_exhaustive()
    }
}

/// Forced tokens are wanted, taking tokens back is not.
pub(crate) fn capabilities() -> InferenceCapabilities {
    InferenceCapabilities { ff_tokens: true, ..InferenceCapabilities::default() }
}

/// The bytes of every row: control tokens behind the library's marker, so that no text is one.
fn words(tokenizer: &Tokenizer, rows: usize, ends: &[u32]) -> Vec<Vec<u8>> {
    let mut words = vec![Vec::new(); rows];
    for (id, word) in (0_u32..).zip(words.iter_mut()) {
        let token = TokenId(id);
        let Ok(piece) = tokenizer.piece(token) else {
            break;
        };
        if tokenizer.is_control(token) || ends.contains(&id) {
            word.push(TokTrie::SPECIAL_TOKEN_MARKER);
        } else if piece.len() > TOKEN_BYTES_MAX || piece.first() == Some(&0xff) {
            // A lone byte 0xff is the library's marker; no UTF-8 text holds one.
            continue;
        }
        let length = piece.len().min(TOKEN_BYTES_MAX);
        word.extend_from_slice(&piece[..length]);
    }
    words
}

impl TokenizerEnv for Canonical {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<u32> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| self.encode(text))
    }

    fn tokenize_is_canonical(&self) -> bool {
        true
    }
}

impl Canonical {
    /// The tokens of text in the middle of an answer: without a space of the vocabulary's own,
    /// and none of them a control token.
    fn encode(&self, text: &str) -> Vec<u32> {
        let guarded = self.tokenizer.adds_space();
        let whole = if guarded { format!("{GUARD}{text}") } else { text.to_owned() };
        let tokens = self.tokenizer.encode(&whole, false, false).unwrap_or_default();
        let is_guard = |token: &TokenId| {
            self.tokenizer.piece(*token).is_ok_and(|piece| piece == GUARD.as_bytes())
        };
        let start =
            if guarded { tokens.iter().position(is_guard).map(|at| at + 1) } else { Some(0) };
        let tokens: Vec<u32> =
            start.map_or_else(Vec::new, |start| tokens[start..].iter().map(|t| t.0).collect());
        // Text that the tokenizer cannot spell keeps its bytes, if need be one by one.
        if self.spells(&tokens, text) { tokens } else { self.trie.greedy_tokenize(text.as_bytes()) }
    }

    fn spells(&self, tokens: &[u32], text: &str) -> bool {
        let mut rest = text.as_bytes();
        tokens.iter().all(|&token| match rest.strip_prefix(self.trie.token(token)) {
            Some(after) => {
                rest = after;
                true
            }
            None => false,
        }) && rest.is_empty()
    }
}

#[cfg(test)]
mod tests;
