//! Kinds of GGUF vocabulary that the library computes: `t5` (Unigram) and `bert` (WordPiece).
//!
//! They are written down as the `tokenizer.json` that their model's folder would have.

use std::path::PathBuf;

use causeway_weights::{Array, Metadata, Value as Kept};
use serde_json::{Value, json};

use super::vocabulary_of;
use crate::bytes::base64;
use crate::error::{TextError, VocabularyError};
use crate::json::JsonTokenizer;
use crate::tokenizer::Tokenizer;
use crate::vocabulary::{TokenType, Vocabulary, VocabularyKind};

/// SentencePiece's table of characters, as bytes.
const TABLE_KEY: &str = "tokenizer.ggml.precompiled_charsmap";

/// The tokenizer of a Unigram vocabulary, which is SentencePiece's but for its model.
pub(super) fn unigram(metadata: &Metadata) -> Result<Tokenizer, TextError> {
    let vocabulary = &vocabulary_of(metadata, VocabularyKind::SentencePiece)?;
    vocabulary.check()?;
    let flag = |name: &str| metadata.bool(&format!("tokenizer.ggml.{name}"));
    let mut normalizers = Vec::new();
    // Files have it as bytes of either sign.
    let table = match metadata.value(TABLE_KEY) {
        Some(Kept::Array(Array::U8(bytes))) => bytes.clone(),
        Some(Kept::Array(Array::I8(bytes))) => {
            bytes.iter().map(|byte| byte.cast_unsigned()).collect()
        }
        _ => Vec::new(),
    };
    if !table.is_empty() {
        normalizers.push(json!({"type": "Precompiled", "precompiled_charsmap": base64(&table)}));
    }
    if flag("remove_extra_whitespaces")?.unwrap_or(false) {
        normalizers.push(json!({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}));
        normalizers.push(json!({"type": "Strip", "strip_left": true, "strip_right": true}));
    }
    let scheme = if vocabulary.add_space_prefix { "always" } else { "never" };
    let marks = json!({"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": scheme,
                       "split": true});
    let pieces: Vec<Value> = vocabulary
        .tokens
        .iter()
        .zip(&vocabulary.scores)
        .map(|(text, score)| json!([text, score]))
        .collect();
    let has_bytes = vocabulary.types.contains(&TokenType::Byte);
    let model = json!({"type": "Unigram", "unk_id": vocabulary.special.unknown, "vocab": pieces,
                       "byte_fallback": has_bytes});
    let decoder = json!({"type": "Sequence", "decoders": [{"type": "ByteFallback"}, marks]});
    let normalizer = json!({"type": "Sequence", "normalizers": normalizers});
    let parts = [("normalizer", normalizer), ("pre_tokenizer", marks), ("decoder", decoder)];
    let adds_bos = flag("add_bos_token")?.unwrap_or(false);
    let adds_eos = flag("add_eos_token")?.unwrap_or(true);
    tokenizer(vocabulary, &model, parts, (adds_bos, adds_eos))
}

/// The tokenizer of a WordPiece vocabulary, in which a mark of a space begins a word and nothing
/// begins what goes on with one.
pub(super) fn word_piece(metadata: &Metadata) -> Result<Tokenizer, TextError> {
    // It has no scores, and neither kind's rules reach it.
    let mut vocabulary = vocabulary_of(metadata, VocabularyKind::ByteLevel)?;
    let id = |name: &str| metadata.u32(&format!("tokenizer.ggml.{name}_token_id"));
    vocabulary.special.bos = vocabulary.special.bos.or(id("cls")?);
    // So the format's own list of keys spells it.
    vocabulary.special.eos = vocabulary.special.eos.or(id("seperator")?);
    vocabulary.check()?;
    let unknown = vocabulary.special.unknown.and_then(|id| vocabulary.tokens.get(id as usize));
    let Some(unknown) = unknown else {
        return Err(VocabularyError::Missing { what: "unknown token" }.into());
    };
    let lowercase = metadata.bool("tokenizer.ggml.normalizer.lowercase")?.unwrap_or(true);
    let words: serde_json::Map<String, Value> =
        (0_u32..).zip(&vocabulary.tokens).map(|(id, text)| (spelled(text), id.into())).collect();
    let model = json!({"type": "WordPiece", "unk_token": unknown,
                       "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                       "vocab": words});
    let normalizer = json!({"type": "BertNormalizer", "clean_text": true,
                            "handle_chinese_chars": true, "strip_accents": null,
                            "lowercase": lowercase});
    let decoder = json!({"type": "WordPiece", "prefix": "##", "cleanup": true});
    let words = json!({"type": "BertPreTokenizer"});
    let parts = [("normalizer", normalizer), ("pre_tokenizer", words), ("decoder", decoder)];
    let flag = |name: &str| metadata.bool(&format!("tokenizer.ggml.{name}"));
    let adds = (flag("add_bos_token")?.unwrap_or(true), flag("add_sep_token")?.unwrap_or(true));
    tokenizer(&vocabulary, &model, parts, adds)
}

/// A word as BERT's own files have it: `##` before what goes on with one.
fn spelled(text: &str) -> String {
    match text.strip_prefix('\u{2581}') {
        Some(word) => word.to_owned(),
        // Structure stands in brackets.
        None if text.starts_with('[') && text.ends_with(']') => text.to_owned(),
        None => format!("##{text}"),
    }
}

/// The library at work on the file that these parts make; `adds` are BOS and EOS.
fn tokenizer(
    vocabulary: &Vocabulary,
    model: &Value,
    parts: [(&str, Value); 3],
    adds: (bool, bool),
) -> Result<Tokenizer, TextError> {
    let added = (0_u32..).zip(&vocabulary.tokens).filter_map(|(id, text)| {
        let special = match vocabulary.token_type(id as usize) {
            TokenType::Control | TokenType::Unknown => true,
            TokenType::UserDefined => false,
            _ => return None,
        };
        Some(json!({"id": id, "content": text, "single_word": false, "lstrip": false,
                    "rstrip": false, "normalized": false, "special": special}))
    });
    let mut file = json!({"version": "1.0", "truncation": null, "padding": null,
                          "added_tokens": added.collect::<Vec<_>>(), "post_processor": null,
                          "model": model});
    for (name, part) in parts {
        file[name] = part;
    }
    // A refusal names the keys of such a file, which stand for this one's.
    let refuse = |source| {
        let path = PathBuf::from("tokenizer.ggml");
        TextError::TokenizerJson { path, source }
    };
    let json = JsonTokenizer::from_bytes(file.to_string().as_bytes()).map_err(refuse)??;
    let special = vocabulary.special;
    let (adds_bos, adds_eos) = (adds.0 && special.bos.is_some(), adds.1 && special.eos.is_some());
    Ok(Tokenizer::from_json(json, special, &[]).with_ends(adds_bos, adds_eos))
}
