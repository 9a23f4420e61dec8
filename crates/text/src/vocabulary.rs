//! What a model file says of its tokens, as plain values, checked before anything is built on it.

use crate::error::VocabularyError;

/// Most tokens a vocabulary may hold; the largest in use have about 262,000.
pub const TOKENS_MAX: usize = 4 << 20;
/// Most bytes one token's text may hold; the longest in use have a few hundred.
pub const TOKEN_BYTES_MAX: usize = 16 << 10;
/// Most bytes of a token that is looked for in the text itself (control and user-defined tokens).
pub const MARKER_BYTES_MAX: usize = 1 << 10;

/// How a vocabulary's text becomes tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VocabularyKind {
    /// Byte-level byte pair encoding: `gpt2` in a GGUF file.
    ByteLevel,
    /// SentencePiece's byte pair encoding by score, with byte fallback: `llama` in a GGUF file.
    SentencePiece,
}

/// What a token is for; the numbers are GGUF's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenType {
    /// 1: ordinary text.
    Normal,
    /// 2: stands for what nothing else can spell.
    Unknown,
    /// 3: structure, such as the end of a turn; text never becomes one unless asked to.
    Control,
    /// 4: text that always becomes this one token.
    UserDefined,
    /// 5: a hole in the vocabulary.
    Unused,
    /// 6: one byte, spelled `<0xNN>`.
    Byte,
}

/// The tokens that have a role of their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpecialIds {
    pub bos: Option<u32>,
    pub eos: Option<u32>,
    pub unknown: Option<u32>,
    pub padding: Option<u32>,
    /// End of turn.
    pub eot: Option<u32>,
    /// End of message.
    pub eom: Option<u32>,
}

/// A vocabulary as its file states it; `Tokenizer::from_vocabulary` checks and builds.
#[derive(Debug, Clone, PartialEq)]
pub struct Vocabulary {
    pub kind: VocabularyKind,
    /// Name of the pre-tokenizer; used by byte-level vocabularies only.
    pub pre_tokenizer: String,
    /// Spelling of every token, byte-level letters or U+2581 included: (vocab_size).
    pub tokens: Vec<String>,
    /// (vocab_size); needed by SentencePiece vocabularies, empty elsewhere.
    pub scores: Vec<f32>,
    /// (vocab_size), or empty where every token is normal.
    pub types: Vec<TokenType>,
    /// `left right`, the best first; needed by byte-level vocabularies.
    pub merges: Vec<String>,
    pub special: SpecialIds,
    /// Whether `add_special` puts BOS before the text.
    pub add_bos: bool,
    /// Whether `add_special` puts EOS behind the text.
    pub add_eos: bool,
    /// Whether text gets one leading space mark (SentencePiece's dummy prefix).
    pub add_space_prefix: bool,
}

impl TokenType {
    /// The type of GGUF's number, or nothing where it names none.
    #[must_use]
    pub fn from_gguf(number: i64) -> Option<Self> {
        Some(match number {
            1 => Self::Normal,
            2 => Self::Unknown,
            3 => Self::Control,
            4 => Self::UserDefined,
            5 => Self::Unused,
            6 => Self::Byte,
            _ => return None,
        })
    }
}

impl TokenType {
    /// GGUF's number.
    pub(crate) fn to_gguf(self) -> i32 {
        match self {
            Self::Normal => 1,
            Self::Unknown => 2,
            Self::Control => 3,
            Self::UserDefined => 4,
            Self::Unused => 5,
            Self::Byte => 6,
        }
    }
}

impl Vocabulary {
    /// Some tokens, then one for each byte: any text has tokens, and a space is a space.
    ///
    /// A SentencePiece vocabulary of equal scores without special ids: whoever makes it sets
    /// those that its tokens have.
    #[must_use]
    pub fn of_bytes(first: &[(&str, TokenType)]) -> Self {
        let bytes = (0..=255u8).map(|byte| (format!("<0x{byte:02X}>"), TokenType::Byte));
        let first = first.iter().map(|&(token, kind)| (token.to_owned(), kind));
        let (tokens, types): (Vec<String>, Vec<TokenType>) = first.chain(bytes).unzip();
        Self {
            kind: VocabularyKind::SentencePiece,
            pre_tokenizer: String::new(),
            scores: vec![0.0; tokens.len()],
            tokens,
            types,
            merges: Vec::new(),
            special: SpecialIds::default(),
            add_bos: false,
            add_eos: false,
            add_space_prefix: false,
        }
    }

    /// The type of token `index`.
    #[must_use]
    pub fn token_type(&self, index: usize) -> TokenType {
        self.types.get(index).copied().unwrap_or(TokenType::Normal)
    }

    /// Refuses what no tokenizer can be built on.
    ///
    /// # Errors
    /// The first fault found: counts that differ, ids outside the vocabulary, scores that are not
    /// finite, tokens beyond the limits.
    pub fn check(&self) -> Result<(), VocabularyError> {
        let count = self.tokens.len();
        if count == 0 || count > TOKENS_MAX {
            return Err(VocabularyError::TokenCount { count, limit: TOKENS_MAX });
        }
        check_length("token types", self.types.len(), count)?;
        check_length("scores", self.scores.len(), count)?;
        if self.kind == VocabularyKind::SentencePiece && self.scores.is_empty() {
            return Err(VocabularyError::Missing { what: "scores" });
        }
        self.check_tokens()?;
        if let Some(token) = self.scores.iter().position(|score| !score.is_finite()) {
            return Err(VocabularyError::Score { token, score: self.scores[token] });
        }
        self.check_special()
    }

    fn check_tokens(&self) -> Result<(), VocabularyError> {
        for (token, text) in self.tokens.iter().enumerate() {
            let is_marker =
                matches!(self.token_type(token), TokenType::Control | TokenType::UserDefined);
            let limit = if is_marker { MARKER_BYTES_MAX } else { TOKEN_BYTES_MAX };
            if text.len() > limit {
                return Err(VocabularyError::TokenLength { token, bytes: text.len(), limit });
            }
        }
        Ok(())
    }

    fn check_special(&self) -> Result<(), VocabularyError> {
        let SpecialIds { bos, eos, unknown, padding, eot, eom } = self.special;
        let named = [
            ("bos", bos),
            ("eos", eos),
            ("unknown", unknown),
            ("padding", padding),
            ("eot", eot),
            ("eom", eom),
        ];
        for (name, id) in named {
            if let Some(id) = id
                && id as usize >= self.tokens.len()
            {
                let limit = self.tokens.len();
                return Err(VocabularyError::SpecialId { name, id, count: limit });
            }
        }
        if self.add_bos && bos.is_none() {
            return Err(VocabularyError::Missing { what: "BOS token, which add_bos asks for" });
        }
        if self.add_eos && eos.is_none() {
            return Err(VocabularyError::Missing { what: "EOS token, which add_eos asks for" });
        }
        Ok(())
    }
}

/// A list beside the tokens is empty or as long as they are.
fn check_length(what: &'static str, count: usize, tokens: usize) -> Result<(), VocabularyError> {
    if count == 0 || count == tokens {
        return Ok(());
    }
    Err(VocabularyError::Length { what, count, tokens })
}

#[cfg(test)]
mod tests;
