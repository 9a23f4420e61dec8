//! Text to tokens: one type over the three ways a vocabulary can work.

use std::ops::Range;

use causeway_request::TokenId;

use crate::byte_level::ByteLevel;
use crate::error::{TextError, VocabularyError};
use crate::json::JsonTokenizer;
use crate::markers::{Control, Markers, Piece};
use crate::pieces::Pieces;
use crate::sentence_piece::{SPACE_MARK, SentencePiece};
use crate::vocabulary::{SpecialIds, TokenType, Vocabulary, VocabularyKind};

/// Most bytes of one text to tokenise: offsets inside it are 32 bits wide.
pub const TEXT_BYTES_MAX: usize = 1 << 30;

/// Names under which vocabularies keep tokens that end a turn or a text, beside `eos` and `eot`.
const END_NAMES: &[&str] = &[
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<end_of_turn>",
    "<turn|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|endofturn|>",
    "<end_of_utterance>",
    "<|return|>",
    "<|call|>",
    "<｜end▁of▁sentence｜>",
    "<|eot|>",
    "<EOT>",
    "_<EOT>",
    "< EOT >",
    "[EOT]",
    "<eos>",
    "</s>",
];

/// How the text between markers becomes tokens.
#[derive(Debug)]
enum Model {
    ByteLevel(Box<ByteLevel>),
    SentencePiece { pieces: Box<SentencePiece>, adds_space: bool },
    Json(Box<JsonTokenizer>),
}

/// A vocabulary at work. Encoding takes time linear in the text but for a logarithm.
#[derive(Debug)]
pub struct Tokenizer {
    model: Model,
    markers: Markers,
    pieces: Pieces,
    special: SpecialIds,
    adds_bos: bool,
    adds_eos: bool,
    end_tokens: Vec<TokenId>,
}

impl Tokenizer {
    /// Builds a tokenizer from a vocabulary.
    ///
    /// # Errors
    /// Any fault of the vocabulary, in one sentence.
    pub fn from_vocabulary(vocabulary: &Vocabulary) -> Result<Self, VocabularyError> {
        vocabulary.check()?;
        let model = match vocabulary.kind {
            VocabularyKind::ByteLevel => Model::ByteLevel(Box::new(ByteLevel::new(vocabulary)?)),
            VocabularyKind::SentencePiece => Model::SentencePiece {
                pieces: Box::new(SentencePiece::new(vocabulary)),
                adds_space: vocabulary.add_space_prefix,
            },
        };
        let pieces = Pieces::from_vocabulary(vocabulary);
        Ok(Self {
            model,
            markers: markers_of(vocabulary, &pieces),
            end_tokens: end_tokens(&pieces, vocabulary.special, &[]),
            pieces,
            special: vocabulary.special,
            adds_bos: vocabulary.add_bos,
            adds_eos: vocabulary.add_eos,
        })
    }

    /// Takes over a `tokenizer.json`; `ends` are the end tokens its folder names.
    pub(crate) fn from_json(json: JsonTokenizer, special: SpecialIds, ends: &[u32]) -> Self {
        let pieces = json.pieces();
        Self {
            markers: json.markers(),
            end_tokens: end_tokens(&pieces, special, ends),
            pieces,
            special,
            adds_bos: json.adds_first(special.bos),
            adds_eos: json.adds_last(special.eos),
            model: Model::Json(Box::new(json)),
        }
    }

    /// The same tokenizer, with BOS before and EOS behind a text where the file asks for them.
    pub(crate) fn with_ends(self, adds_bos: bool, adds_eos: bool) -> Self {
        Self { adds_bos, adds_eos, ..self }
    }

    /// Text to tokens.
    ///
    /// With `parse_special`, control tokens spelled in the text become those tokens; without it
    /// they stay text (user-defined tokens match either way). With `add_special`, BOS and EOS are
    /// added as the model says, whatever the text begins with.
    ///
    /// # Errors
    /// A text beyond `TEXT_BYTES_MAX`, or one that a `tokenizer.json` cannot take.
    pub fn encode(
        &self,
        text: &str,
        parse_special: bool,
        add_special: bool,
    ) -> Result<Vec<TokenId>, TextError> {
        let control = if parse_special { Control::Everywhere } else { Control::Nowhere };
        self.encode_where(text, control, add_special)
    }

    /// Text to tokens, where control tokens count only outside `users`: ascending byte ranges
    /// that somebody else wrote. Words may span the edges of a range, control tokens may not.
    ///
    /// # Errors
    /// As `encode`.
    pub fn encode_guarded(
        &self,
        text: &str,
        users: &[Range<usize>],
    ) -> Result<Vec<TokenId>, TextError> {
        self.encode_where(text, Control::Outside(users), false)
    }

    fn encode_where(
        &self,
        text: &str,
        control: Control<'_>,
        add_special: bool,
    ) -> Result<Vec<TokenId>, TextError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(TextError::TextLength { bytes: text.len(), limit: TEXT_BYTES_MAX });
        }
        let mut tokens = Vec::new();
        if add_special && self.adds_bos {
            tokens.extend(self.special.bos);
        }
        match &self.model {
            Model::ByteLevel(model) => {
                for piece in self.markers.cut(text, control) {
                    match piece {
                        Piece::Token(token) => tokens.push(token),
                        Piece::Text(range) => model.encode(&text[range], &mut tokens),
                    }
                }
            }
            Model::SentencePiece { pieces, adds_space } => {
                self.encode_pieces(pieces, *adds_space, text, control, &mut tokens);
            }
            Model::Json(json) => json.encode(text, &self.markers, control, &mut tokens)?,
        }
        if add_special && self.adds_eos {
            tokens.extend(self.special.eos);
        }
        Ok(tokens.into_iter().map(TokenId).collect())
    }

    /// SentencePiece's way: spaces are marks, and where the model says so, one more stands before
    /// the text and before text that follows a marker.
    fn encode_pieces(
        &self,
        model: &SentencePiece,
        adds_space: bool,
        text: &str,
        control: Control<'_>,
        tokens: &mut Vec<u32>,
    ) {
        for piece in self.markers.cut(text, control) {
            match piece {
                Piece::Token(token) => tokens.push(token),
                Piece::Text(range) => {
                    let mut marked = String::with_capacity(range.len() + 8);
                    if adds_space {
                        marked.push(SPACE_MARK);
                    }
                    marked
                        .extend(text[range].chars().map(|c| if c == ' ' { SPACE_MARK } else { c }));
                    model.encode(&marked, tokens);
                }
            }
        }
    }

    /// How many tokens the vocabulary has.
    #[must_use]
    pub fn vocab_size(&self) -> usize {
        self.pieces.count()
    }

    /// The bytes a token stands for, control tokens as they are spelled.
    ///
    /// # Errors
    /// An id outside the vocabulary.
    pub fn piece(&self, token: TokenId) -> Result<&[u8], TextError> {
        let count = self.pieces.count();
        self.pieces.bytes(token.0).ok_or(TextError::TokenId { id: token.0, count })
    }

    /// Whether a token is structure rather than text.
    #[must_use]
    pub fn is_control(&self, token: TokenId) -> bool {
        self.pieces.is_control(token.0)
    }

    /// Whether text starts with a space that is the vocabulary's, not the writer's.
    #[must_use]
    pub fn adds_space(&self) -> bool {
        match &self.model {
            Model::ByteLevel(_) => false,
            Model::SentencePiece { adds_space, .. } => *adds_space,
            Model::Json(json) => json.strips_space(),
        }
    }

    /// Whether every token that is shown stands apart from the one before it.
    pub(crate) fn spaces_words(&self) -> bool {
        matches!(&self.model, Model::Json(json) if json.spaces_words())
    }

    /// Whether a token that comes again is the same one still, as a recogniser of speech has it.
    pub(crate) fn collapses(&self) -> bool {
        matches!(&self.model, Model::Json(json) if json.collapses())
    }

    /// How a token is spelled where nothing stands before it, where that differs from its bytes.
    pub(crate) fn opening(&self, token: TokenId) -> Option<String> {
        match &self.model {
            Model::Json(json) if json.spaces_words() => json.opening(token.0),
            _ => None,
        }
    }

    /// The tokens that have a role of their own.
    #[must_use]
    pub fn special(&self) -> SpecialIds {
        self.special
    }

    /// Whether `add_special` puts BOS before the text.
    #[must_use]
    pub fn adds_bos(&self) -> bool {
        self.adds_bos
    }

    /// Whether `add_special` puts EOS behind the text.
    pub(crate) fn adds_eos(&self) -> bool {
        self.adds_eos
    }

    /// The tokens that end an answer, ascending: EOS, end of turn, and those known by name.
    #[must_use]
    pub fn end_tokens(&self) -> &[TokenId] {
        &self.end_tokens
    }

    /// The id of a control token by its spelling.
    #[must_use]
    pub fn control_token(&self, text: &str) -> Option<TokenId> {
        match self.markers.cut(text, Control::Everywhere)[..] {
            [Piece::Token(token)] if self.pieces.is_control(token) => Some(TokenId(token)),
            _ => None,
        }
    }

    /// The spellings of all control tokens.
    pub(crate) fn control_texts(&self) -> impl Iterator<Item = &str> {
        self.markers.control_texts()
    }
}

/// Control and user-defined tokens under the text they stand for.
fn markers_of(vocabulary: &Vocabulary, pieces: &Pieces) -> Markers {
    let ids = 0u32..;
    Markers::new(ids.zip(&vocabulary.tokens).filter_map(|(id, text)| {
        match vocabulary.token_type(id as usize) {
            TokenType::Control => Some((text.clone(), id, true)),
            TokenType::UserDefined => {
                let bytes = pieces.bytes(id).unwrap_or_default();
                let text = String::from_utf8(bytes.to_vec()).unwrap_or_else(|_| text.clone());
                Some((text, id, false))
            }
            _ => None,
        }
    }))
}

/// EOS, EOT, EOM, what the files name, and control tokens with a known name.
///
/// A model with both `<|return|>` and `<|call|>` uses `<|end|>` between messages of one answer.
fn end_tokens(pieces: &Pieces, special: SpecialIds, named: &[u32]) -> Vec<TokenId> {
    let mut ends: Vec<u32> = named.to_vec();
    ends.extend([special.eos, special.eot, special.eom].into_iter().flatten());
    let mut message_end = None;
    let mut answer_ends = 0;
    for id in 0..u32::try_from(pieces.count()).expect("vocabularies are limited in size") {
        if !pieces.is_control(id) {
            continue;
        }
        let text = pieces.bytes(id).unwrap_or_default();
        if END_NAMES.iter().any(|name| name.as_bytes() == text) {
            ends.push(id);
        }
        match text {
            b"<|end|>" => message_end = Some(id),
            b"<|return|>" | b"<|call|>" => answer_ends += 1,
            _ => {}
        }
    }
    if answer_ends == 2 {
        ends.retain(|id| Some(*id) != message_end);
    }
    ends.sort_unstable();
    ends.dedup();
    ends.into_iter().map(TokenId).collect()
}

#[cfg(test)]
mod tests;
