//! The vocabulary of a GGUF file: its `tokenizer.*` keys as a `Vocabulary`.

use causeway_weights::Metadata;

use crate::error::{TextError, VocabularyError};
use crate::split;
use crate::tokenizer::Tokenizer;
use crate::vocabulary::{SpecialIds, TokenType, Vocabulary, VocabularyKind};

mod library;

/// What kind of vocabulary a file has.
const MODEL_KEY: &str = "tokenizer.ggml.model";

/// Where the chat template of a GGUF file stands.
pub(crate) const TEMPLATE_KEY: &str = "tokenizer.chat_template";

/// The tokenizer of a GGUF file.
pub(crate) fn tokenizer(metadata: &Metadata) -> Result<Tokenizer, TextError> {
    match metadata.string(MODEL_KEY)? {
        Some("t5") => library::unigram(metadata),
        Some("bert") => library::word_piece(metadata),
        _ => Ok(Tokenizer::from_vocabulary(&vocabulary(metadata)?)?),
    }
}

/// Reads every key a vocabulary is made of; absent ones take the defaults of their kind.
fn vocabulary(metadata: &Metadata) -> Result<Vocabulary, TextError> {
    let kind = kind(metadata)?;
    vocabulary_of(metadata, kind)
}

/// The same, of a kind that is known.
fn vocabulary_of(metadata: &Metadata, kind: VocabularyKind) -> Result<Vocabulary, TextError> {
    let tokens = strings(metadata, "tokenizer.ggml.tokens")?;
    if tokens.is_empty() {
        return Err(VocabularyError::Missing { what: "tokens" }.into());
    }
    let scores = metadata.f32s("tokenizer.ggml.scores")?.map(<[f32]>::to_vec);
    let types = types(metadata)?;
    let pre_tokenizer = metadata.string("tokenizer.ggml.pre")?.unwrap_or("default").to_owned();
    let id = |name: &str| metadata.u32(&format!("tokenizer.ggml.{name}_token_id"));
    let special = SpecialIds {
        bos: id("bos")?,
        eos: id("eos")?,
        unknown: id("unknown")?,
        padding: id("padding")?,
        eot: id("eot")?,
        eom: id("eom")?,
    };
    let flag = |name: &str| metadata.bool(&format!("tokenizer.ggml.{name}"));
    let is_pieces = kind == VocabularyKind::SentencePiece;
    let adds_bos = is_pieces || split::adds_bos(&pre_tokenizer);
    Ok(Vocabulary {
        kind,
        tokens,
        scores: scores.unwrap_or_default(),
        types,
        merges: strings(metadata, "tokenizer.ggml.merges")?,
        special,
        add_bos: flag("add_bos_token")?.unwrap_or(adds_bos && special.bos.is_some()),
        add_eos: flag("add_eos_token")?.unwrap_or(false),
        add_space_prefix: flag("add_space_prefix")?.unwrap_or(is_pieces),
        pre_tokenizer,
    })
}

fn kind(metadata: &Metadata) -> Result<VocabularyKind, TextError> {
    match metadata.string(MODEL_KEY)? {
        None => Err(VocabularyError::Missing { what: "`tokenizer.ggml.model`" }.into()),
        Some("gpt2") => Ok(VocabularyKind::ByteLevel),
        Some("llama") => Ok(VocabularyKind::SentencePiece),
        Some(other) => Err(VocabularyError::Model { model: other.to_owned() }.into()),
    }
}

fn strings(metadata: &Metadata, key: &str) -> Result<Vec<String>, TextError> {
    let list = metadata.string_list(key)?;
    Ok(list.map(|list| list.iter().map(str::to_owned).collect()).unwrap_or_default())
}

fn types(metadata: &Metadata) -> Result<Vec<TokenType>, TextError> {
    let numbers = metadata.i32s("tokenizer.ggml.token_type")?.unwrap_or_default();
    let types = numbers.iter().enumerate().map(|(token, number)| {
        let number = i64::from(*number);
        TokenType::from_gguf(number).ok_or(VocabularyError::TokenType { token, number })
    });
    Ok(types.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests;
