//! How the spellings of a `tokenizer.json`'s tokens become bytes: its decoder, token by token.

use serde_json::Value;
use tokenizers::AddedToken;

use crate::bytes::{LetterBytes, named_byte};
use crate::error::VocabularyError;
use crate::pieces::push_unmarked;

/// How the spelling of a token becomes bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decoding {
    ByteLevel,
    /// Space marks are spaces, `<0xNN>` is a byte, and perhaps one leading space is dropped.
    Marked {
        bytes: bool,
        strips_space: bool,
    },
    /// A space stands before each token, but the first and what goes on with a word.
    Spaced {
        /// What marks a token that goes on with a word.
        prefix: Option<String>,
        cleans: bool,
    },
    /// A token in a row is one token, `pad` is nothing, and `delimiter` parts words.
    Collapsed {
        pad: String,
        delimiter: String,
        cleans: bool,
    },
    /// Spellings as they are.
    Plain,
}

/// What the clean-up of English takes the space away from, in the order of the library.
const CLEANED: &[(&str, &str)] = &[
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" do not", " don't"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
];

impl Decoding {
    pub(super) fn push_bytes(&self, text: &str, letters: &LetterBytes, bytes: &mut Vec<u8>) {
        match self {
            Self::ByteLevel => letters.push_bytes(text, bytes),
            Self::Plain => bytes.extend_from_slice(text.as_bytes()),
            Self::Marked { bytes: has_bytes, .. } => match named_byte(text) {
                Some(byte) if *has_bytes => bytes.push(byte),
                _ => push_unmarked(text, bytes),
            },
            Self::Spaced { prefix, .. } => {
                let rest = prefix.as_ref().and_then(|prefix| text.strip_prefix(prefix.as_str()));
                let word = rest.map_or_else(|| format!(" {text}"), str::to_owned);
                bytes.extend_from_slice(self.cleaned(&word).as_bytes());
            }
            Self::Collapsed { pad, delimiter, cleans } => {
                let mut word = text.replace(pad.as_str(), "");
                if *cleans {
                    word = cleaned(&word).replace(delimiter.as_str(), " ");
                }
                bytes.extend_from_slice(word.as_bytes());
            }
        }
    }

    /// The bytes of an added token: as it is spelled, where it is structure.
    pub(super) fn push_added(&self, token: &AddedToken, bytes: &mut Vec<u8>) {
        match self {
            Self::Spaced { .. } | Self::Collapsed { .. } if !token.special => {
                self.push_bytes(&token.content, &LetterBytes::new(), bytes);
            }
            _ => bytes.extend_from_slice(token.content.as_bytes()),
        }
    }

    /// A word after the clean-up, where there is one.
    pub(super) fn cleaned(&self, word: &str) -> String {
        match self {
            Self::Spaced { cleans: true, .. } => cleaned(word),
            _ => word.to_owned(),
        }
    }
}

fn cleaned(word: &str) -> String {
    CLEANED.iter().fold(word.to_owned(), |word, (from, to)| word.replace(from, to))
}

/// What the file's decoder does, where it works token by token but for the first and for repeats.
pub(super) fn decoding_of(decoder: &Value) -> Result<Decoding, VocabularyError> {
    let steps = match (decoder["type"].as_str(), &decoder["decoders"]) {
        (Some("Sequence"), Value::Array(steps)) => steps.clone(),
        (Some(_), _) => vec![decoder.clone()],
        // Without a decoder, the library puts a space between any two tokens.
        _ => return Ok(Decoding::Spaced { prefix: None, cleans: false }),
    };
    let mut decoding = Decoding::Plain;
    for step in steps.iter().filter(|step| step["type"] != "Fuse") {
        let refusal = || VocabularyError::Decoder { decoder: super::parts::name_of(step) };
        decoding = match &decoding {
            Decoding::Plain => match whole(step) {
                Some(whole) => whole,
                None => marked(step, false, false).ok_or_else(refusal)?,
            },
            Decoding::Marked { bytes, strips_space } => {
                marked(step, *bytes, *strips_space).ok_or_else(refusal)?
            }
            _ => return Err(refusal()),
        };
    }
    Ok(decoding)
}

/// A step that is a decoder by itself.
fn whole(step: &Value) -> Option<Decoding> {
    let text = |key: &str| step[key].as_str().unwrap_or_default().to_owned();
    let cleans = step["cleanup"].as_bool().unwrap_or(true);
    Some(match step["type"].as_str()? {
        "ByteLevel" => Decoding::ByteLevel,
        "WordPiece" => Decoding::Spaced { prefix: Some(text("prefix")), cleans },
        "CTC" => {
            let (pad, delimiter) = (text("pad_token"), text("word_delimiter_token"));
            Decoding::Collapsed { pad, delimiter, cleans }
        }
        _ => return None,
    })
}

/// A step of those that go together: marks, bytes, and a leading space.
fn marked(step: &Value, mut bytes: bool, mut strips_space: bool) -> Option<Decoding> {
    match step["type"].as_str()? {
        "ByteFallback" => bytes = true,
        "Replace" if is_unmarking(step) => {}
        "Strip" if step["content"] == " " && step["stop"] == 0 => {
            strips_space = match step["start"].as_u64() {
                Some(0) => false,
                Some(1) => true,
                _ => return None,
            };
        }
        "Metaspace" if step["replacement"] == "\u{2581}" => {
            strips_space = step["prepend_scheme"] != "never";
        }
        _ => return None,
    }
    Some(Decoding::Marked { bytes, strips_space })
}

/// `Replace` of the space mark by a space.
fn is_unmarking(step: &Value) -> bool {
    step["pattern"]["String"] == "\u{2581}" && step["content"] == " "
}
