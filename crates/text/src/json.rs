//! A `tokenizer.json` at work, by the `tokenizers` library.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;
use tokenizers::{
    Encoding, OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer as _,
    Tokenizer as Library,
};

use crate::bytes::LetterBytes;
use crate::error::{JsonFault, TextError, VocabularyError};
use crate::markers::{Control, Markers, Piece};
use crate::pieces::Pieces;
use crate::vocabulary::TOKENS_MAX;

pub(crate) mod charsmap;
mod decoding;
mod parts;
mod plain;

use self::decoding::{Decoding, decoding_of};
use self::plain::Plain;

/// The library's tokenizer, once for each reading of control tokens.
#[derive(Debug)]
pub(crate) struct JsonTokenizer {
    /// Control tokens in the text become tokens.
    parsing: Library,
    /// Control tokens in the text stay text.
    plain: Library,
    /// Ids that plain text may not become, by whatever name.
    barred: HashSet<u32>,
    decoding: Decoding,
    vocab_size: u32,
}

/// The library panicked.
#[derive(Debug, thiserror::Error)]
#[error("the library gives up on it")]
struct GaveUp;

/// A text spells the name that a control token has where none may be.
#[derive(Debug, thiserror::Error)]
#[error("it spells a control token by a name that nobody may write")]
struct Barred;

impl JsonTokenizer {
    /// Reads the text of a `tokenizer.json`.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Result<Self, VocabularyError>, JsonFault> {
        // The library unwraps some of what a file says.
        let read = catch_unwind(|| Library::from_bytes(bytes));
        let mut parsing = read.map_err(|_| JsonFault(GaveUp.into()))?.map_err(JsonFault)?;
        if let Err(refusal) = parts::check(&parsing)? {
            return Ok(Err(refusal));
        }
        // A stored limit or padding would change the tokens of a long text in silence.
        parsing.with_truncation(None).map_err(JsonFault)?;
        parsing.with_padding(None);
        let decoder = parsing.get_decoder().map(serde_json::to_value).transpose();
        let decoder = decoder.map_err(|error| JsonFault(Box::new(error)))?;
        let Plain { library: plain, barred } = Plain::of(&parsing)?;
        let last = parsing.get_vocab(true).into_values().max();
        let vocab_size = last.map_or(0, |last| last.saturating_add(1));
        let count = vocab_size as usize;
        if count == 0 || count > TOKENS_MAX {
            return Ok(Err(VocabularyError::TokenCount { count, limit: TOKENS_MAX }));
        }
        let decoding = decoding_of(decoder.as_ref().unwrap_or(&Value::Null));
        Ok(decoding.map(|decoding| Self { parsing, plain, barred, decoding, vocab_size }))
    }

    /// The id of a token by its spelling.
    pub(crate) fn token(&self, text: &str) -> Option<u32> {
        self.parsing.token_to_id(text)
    }

    /// The tokens that text must not become unless asked to.
    pub(crate) fn markers(&self) -> Markers {
        let added = self.parsing.get_added_tokens_decoder();
        let special = added.into_iter().filter(|(_, token)| token.special);
        let mut texts: Vec<_> = special.map(|(id, token)| (token.content, id, true)).collect();
        texts.sort_by_key(|(_, id, _)| *id);
        Markers::new(texts)
    }

    /// The bytes of every token; a hole in the ids has none.
    pub(crate) fn pieces(&self) -> Pieces {
        let letters = LetterBytes::new();
        let added = self.parsing.get_added_tokens_decoder();
        let spelled: HashMap<u32, String> =
            self.parsing.get_vocab(true).into_iter().map(|(text, id)| (id, text)).collect();
        let mut pieces = Pieces::default();
        for id in 0..self.vocab_size {
            let added = added.get(&id);
            pieces.push(added.is_some_and(|token| token.special), |bytes| {
                if let Some(token) = added {
                    self.decoding.push_added(token, bytes);
                } else if let Some(text) = spelled.get(&id) {
                    self.decoding.push_bytes(text, &letters, bytes);
                }
            });
        }
        pieces
    }

    /// Whether decoding drops one leading space.
    pub(crate) fn strips_space(&self) -> bool {
        self.spaces_words() || matches!(self.decoding, Decoding::Marked { strips_space: true, .. })
    }

    /// Whether every token that is shown stands apart from the one before it.
    pub(crate) fn spaces_words(&self) -> bool {
        matches!(self.decoding, Decoding::Spaced { .. })
    }

    /// Whether a token that comes again is the same one still.
    pub(crate) fn collapses(&self) -> bool {
        matches!(self.decoding, Decoding::Collapsed { .. })
    }

    /// How a token is spelled where nothing stands before it.
    pub(crate) fn opening(&self, token: u32) -> Option<String> {
        Some(self.decoding.cleaned(&self.parsing.id_to_token(token)?))
    }

    /// Whether the file's own post-processing puts `bos` before a text.
    pub(crate) fn adds_first(&self, bos: Option<u32>) -> bool {
        bos.is_some() && self.around().0.first().copied() == bos
    }

    /// Whether it puts `eos` behind a text.
    pub(crate) fn adds_last(&self, eos: Option<u32>) -> bool {
        eos.is_some() && self.around().1.last().copied() == eos
    }

    /// What post-processing puts before and behind a letter that is one token or more.
    fn around(&self) -> (Vec<u32>, Vec<u32>) {
        let ids = |add| encode(&self.plain, "a", add).map(|found| found.get_ids().to_vec());
        let (bare, full) = (ids(false).unwrap_or_default(), ids(true).unwrap_or_default());
        let inside = full.windows(bare.len().max(1)).position(|part| part == bare);
        let Some(start) = inside else { return (Vec::new(), Vec::new()) };
        (full[..start].to_vec(), full[start + bare.len()..].to_vec())
    }

    /// Where the file's pre-tokenizer cuts a text.
    pub(crate) fn words(&self, text: &str) -> Result<Vec<Range<usize>>, JsonFault> {
        let mut words = PreTokenizedString::from(text);
        if let Some(cutter) = self.parsing.get_pre_tokenizer() {
            let cut = AssertUnwindSafe(|| cutter.pre_tokenize(&mut words));
            catch_unwind(cut).unwrap_or_else(|_| Err(GaveUp.into())).map_err(JsonFault)?;
        }
        let found = words.get_splits(OffsetReferential::Original, OffsetType::Byte);
        Ok(found.into_iter().map(|(_, (start, end), _)| start..end).collect())
    }

    /// Appends the tokens of `text`.
    ///
    /// The library knows no places where control tokens are forbidden, so where a user spells
    /// one the text is cut at the others, and each stretch between them is encoded by itself.
    pub(crate) fn encode(
        &self,
        text: &str,
        markers: &Markers,
        control: Control<'_>,
        tokens: &mut Vec<u32>,
    ) -> Result<(), TextError> {
        let whole = match control {
            Control::Nowhere => Some(&self.plain),
            Control::Everywhere => Some(&self.parsing),
            Control::Outside(_) => {
                let guarded = markers.cut(text, control);
                (guarded == markers.cut(text, Control::Everywhere)).then_some(&self.parsing)
            }
        };
        if let Some(library) = whole {
            return self.push_tokens(library, text, tokens);
        }
        for piece in markers.cut(text, control) {
            match piece {
                Piece::Token(token) => tokens.push(token),
                Piece::Text(range) => self.push_tokens(&self.plain, &text[range], tokens)?,
            }
        }
        Ok(())
    }

    fn push_tokens(
        &self,
        library: &Library,
        text: &str,
        tokens: &mut Vec<u32>,
    ) -> Result<(), TextError> {
        let refuse = |source| TextError::Encode { source };
        let encoding = encode(library, text, false).map_err(refuse)?;
        let ids = encoding.get_ids();
        // Where control tokens count, they are what the caller asked for.
        let is_plain = library.get_encode_special_tokens();
        if is_plain && ids.iter().any(|id| self.barred.contains(id)) {
            return Err(refuse(JsonFault(Barred.into())));
        }
        tokens.extend_from_slice(ids);
        Ok(())
    }
}

/// What the library makes of a text, or the sentence that it panicked.
fn encode(library: &Library, text: &str, add: bool) -> Result<Encoding, JsonFault> {
    let found = AssertUnwindSafe(|| library.encode_fast(text, add));
    catch_unwind(found).unwrap_or_else(|_| Err(GaveUp.into())).map_err(JsonFault)
}

#[cfg(test)]
mod tests;
