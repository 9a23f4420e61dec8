//! The tokenizer of a Hugging Face folder as the keys of a GGUF file, which other programs read.

use std::path::Path;

use causeway_weights::{Array, Value};
use serde_json::Value as Json;

use crate::error::TextError;
use crate::gguf::TEMPLATE_KEY;
use crate::json::JsonTokenizer;
use crate::split::{self, PreTokenizer};
use crate::templates::{DEFAULT_TEMPLATE, Templates};
use crate::text::{folder_ends, read, read_json, special_ids};
use crate::tokenizer::Tokenizer;
use crate::vocabulary::{SpecialIds, TOKENS_MAX, TokenType, Vocabulary, VocabularyKind};

mod pieces;
mod probe;

/// Why a folder's tokenizer cannot be written to a GGUF file.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Text(#[from] TextError),
    #[error("{part} cannot be written to a GGUF file yet")]
    Unwritable { part: String },
    #[error(
        "`tokenizer.json` cuts text into words as none of the pre-tokenizers does that a GGUF \
         file can name"
    )]
    PreTokenizer,
    #[error("the tokenizer has {tokens} tokens, the model's embedding {rows} rows")]
    Rows { tokens: usize, rows: usize },
    #[error("written to a GGUF file the tokenizer would give other tokens for `{text}`")]
    OtherTokens { text: String },
}

impl ExportError {
    fn unwritable(part: impl Into<String>) -> Self {
        Self::Unwritable { part: part.into() }
    }
}

/// The `tokenizer.*` keys for a folder whose model has `rows` embedding rows; `None` where the
/// folder has no tokenizer at all.
///
/// What is given makes the same tokens of every text in Unicode's composed form: the pre-tokenizer
/// is the one that cuts a text of thousands of edges as the folder's does, and the whole is held
/// against the folder's on that text and around each added token.
///
/// # Errors
/// A tokenizer that is no BPE, or has parts that a GGUF file cannot say.
pub fn gguf_keys(folder: &Path, rows: usize) -> Result<Option<Vec<(String, Value)>>, ExportError> {
    let path = folder.join("tokenizer.json");
    let Some(bytes) = read(&path)? else {
        if folder.join("tokenizer.model").exists() {
            return Err(ExportError::unwritable("a `tokenizer.model` without `tokenizer.json`"));
        }
        return Ok(None);
    };
    let json = JsonTokenizer::from_bytes(&bytes)
        .map_err(|source| TextError::TokenizerJson { path: path.clone(), source })?
        .map_err(TextError::from)?;
    let file: Json = serde_json::from_slice(&bytes)
        .map_err(|source| TextError::Json { path: path.clone(), source })?;
    let kind = kind(&file)?;
    let config = read_json(&folder.join("tokenizer_config.json"))?;
    let (special, ends) = (special_ids(&config, &json), folder_ends(folder)?);
    let add_space_prefix = kind == VocabularyKind::SentencePiece && pieces::adds_space(&file)?;
    let pre_tokenizer = match kind {
        VocabularyKind::SentencePiece => "default",
        VocabularyKind::ByteLevel => pre_tokenizer(&file, &json)
            .map_err(|source| TextError::TokenizerJson { path, source })?
            .ok_or(ExportError::PreTokenizer)?,
    };
    let (tokens, mut types) = tokens(&file, &json, rows)?;
    let whole = Tokenizer::from_json(json, special, &ends);
    let special = SpecialIds {
        unknown: special.unknown.or_else(|| token_id(&tokens, &file["model"]["unk_token"])),
        eot: special.eot.or_else(|| ends.iter().copied().find(|id| Some(*id) != special.eos)),
        ..special
    };
    let (mut merges, mut scores) = (merges(&file["model"]["merges"])?, Vec::new());
    if kind == VocabularyKind::SentencePiece {
        scores = pieces::scores(&tokens, &std::mem::take(&mut merges));
        pieces::mark(&mut types, &tokens, special.unknown);
    }
    let vocabulary = Vocabulary {
        kind,
        pre_tokenizer: pre_tokenizer.to_owned(),
        tokens,
        scores,
        types,
        merges,
        special,
        add_bos: whole.adds_bos(),
        add_eos: whole.adds_eos(),
        add_space_prefix,
    };
    compare(&vocabulary, &whole)?;
    let mut keys = keys(vocabulary);
    keys.extend(templates(&Templates::from_folder(folder)?));
    Ok(Some(keys))
}

/// How text becomes tokens; refuses all that a GGUF file has no word for.
fn kind(file: &Json) -> Result<VocabularyKind, ExportError> {
    let model = &file["model"];
    let kind = model["type"].as_str().unwrap_or("BPE");
    if kind != "BPE" {
        return Err(ExportError::unwritable(format!("the tokenizer kind `{kind}`")));
    }
    for key in ["continuing_subword_prefix", "end_of_word_suffix"] {
        if model[key].as_str().is_some_and(|text| !text.is_empty()) {
            return Err(ExportError::unwritable(format!("a tokenizer with `{key}`")));
        }
    }
    for token in file["added_tokens"].as_array().into_iter().flatten() {
        for flag in ["lstrip", "rstrip", "single_word"] {
            if token[flag] == true {
                let name = token["content"].as_str().unwrap_or("?");
                let part = format!("the added token `{}` with `{flag}`", shown(name));
                return Err(ExportError::unwritable(part));
            }
        }
    }
    if model["byte_fallback"] == true {
        return Ok(VocabularyKind::SentencePiece);
    }
    // Readers of GGUF files compose nothing; text in use comes composed.
    let normalizer = &file["normalizer"];
    if !normalizer.is_null() && normalizer["type"] != "NFC" {
        let kind = normalizer["type"].as_str().unwrap_or("?");
        return Err(ExportError::unwritable(format!("the normaliser `{kind}`")));
    }
    Ok(VocabularyKind::ByteLevel)
}

fn shown(text: &str) -> String {
    text.escape_debug().take(80).collect()
}

/// The name of the pre-tokenizer that cuts as the file does.
fn pre_tokenizer(
    file: &Json,
    json: &JsonTokenizer,
) -> Result<Option<&'static str>, crate::error::JsonFault> {
    let stays_whole = file["model"]["ignore_merges"] == true;
    let text = probe::text();
    let want = json.words(&text)?;
    let cuts_so = |name: &str| PreTokenizer::named(name).is_ok_and(|own| own.words(&text) == want);
    let mut names = split::names().filter(|(_, whole_words)| *whole_words == stays_whole);
    Ok(names.find(|(name, _)| cuts_so(name)).map(|(name, _)| name))
}

/// Every token and its type, up to the last row of the embedding.
fn tokens(
    file: &Json,
    json: &JsonTokenizer,
    rows: usize,
) -> Result<(Vec<String>, Vec<TokenType>), ExportError> {
    let id = |value: &Json| value.as_u64().and_then(|id| usize::try_from(id).ok());
    let vocab = file["model"]["vocab"].as_object().into_iter().flatten();
    let normal = vocab.filter_map(|(text, at)| Some((id(at)?, text.as_str(), TokenType::Normal)));
    let added = file["added_tokens"].as_array().into_iter().flatten().filter_map(|token| {
        let is_special = token["special"] == true;
        let kind = if is_special { TokenType::Control } else { TokenType::UserDefined };
        // The library gives them the next ids that are free, whatever the file says.
        let text = token["content"].as_str()?;
        Some((usize::try_from(json.token(text)?).ok()?, text, kind))
    });
    let all: Vec<_> = normal.chain(added).collect();
    let count = all.iter().map(|(id, ..)| id + 1).max().unwrap_or_default();
    if count > rows || rows > TOKENS_MAX {
        return Err(ExportError::Rows { tokens: count, rows });
    }
    // A row without a token has a name that no text spells.
    let mut tokens: Vec<String> = (0..rows).map(|id| format!("[PAD{id}]")).collect();
    let mut types = vec![TokenType::Unused; rows];
    for (id, text, kind) in all {
        (tokens[id], types[id]) = (text.to_owned(), kind);
    }
    Ok((tokens, types))
}

fn token_id(tokens: &[String], name: &Json) -> Option<u32> {
    let name = name.as_str()?;
    u32::try_from(tokens.iter().position(|token| token == name)?).ok()
}

/// Merges as `left right`, from either of the two forms that files have.
fn merges(list: &Json) -> Result<Vec<String>, ExportError> {
    let merge = |merge: &Json| match merge {
        Json::String(text) => Some(text.clone()),
        Json::Array(pair) => match &pair[..] {
            [Json::String(left), Json::String(right)] => Some(format!("{left} {right}")),
            _ => None,
        },
        _ => None,
    };
    let merges: Option<Vec<String>> = list.as_array().into_iter().flatten().map(merge).collect();
    merges.ok_or_else(|| ExportError::unwritable("a merge that is no pair of tokens"))
}

/// Refuses a vocabulary that gives other tokens than the folder's tokenizer.
fn compare(vocabulary: &Vocabulary, whole: &Tokenizer) -> Result<(), ExportError> {
    let own = Tokenizer::from_vocabulary(vocabulary).map_err(TextError::from)?;
    let text = probe::text();
    let added = vocabulary.tokens.iter().zip(&vocabulary.types);
    let added =
        added.filter(|(_, kind)| matches!(kind, TokenType::Control | TokenType::UserDefined));
    let mut texts: Vec<String> = added.map(|(token, _)| format!("a {token} b{token}")).collect();
    texts.push(text);
    for text in texts {
        for parses in [false, true] {
            if own.encode(&text, parses, true)? != whole.encode(&text, parses, true)? {
                return Err(ExportError::OtherTokens { text: shown(&text) });
            }
        }
    }
    Ok(())
}

/// A vocabulary as keys.
fn keys(vocabulary: Vocabulary) -> Vec<(String, Value)> {
    let Vocabulary {
        kind,
        pre_tokenizer,
        tokens,
        scores,
        types,
        merges,
        special: SpecialIds { bos, eos, unknown, padding, eot, eom },
        add_bos,
        add_eos,
        add_space_prefix,
    } = vocabulary;
    let strings = |list: &[String]| {
        let list = list.iter().map(String::as_str).collect();
        Value::Array(Array::Strings(Box::new(list)))
    };
    let model = match kind {
        VocabularyKind::ByteLevel => "gpt2",
        VocabularyKind::SentencePiece => "llama",
    };
    let types = types.into_iter().map(TokenType::to_gguf).collect();
    let key = |name: &str, value| (format!("tokenizer.ggml.{name}"), value);
    let mut keys = vec![
        key("model", Value::String(model.to_owned())),
        key("pre", Value::String(pre_tokenizer)),
        key("tokens", strings(&tokens)),
        key("token_type", Value::Array(Array::I32(types))),
    ];
    match kind {
        VocabularyKind::ByteLevel => keys.push(key("merges", strings(&merges))),
        VocabularyKind::SentencePiece => {
            keys.push(key("scores", Value::Array(Array::F32(scores))));
            keys.push(key("add_space_prefix", Value::Bool(add_space_prefix)));
        }
    }
    for (name, id) in [
        ("bos", bos),
        ("eos", eos),
        ("unknown", unknown),
        ("padding", padding),
        ("eot", eot),
        ("eom", eom),
    ] {
        keys.extend(id.map(|id| key(&format!("{name}_token_id"), Value::U32(id))));
    }
    keys.push(key("add_bos_token", Value::Bool(add_bos)));
    keys.push(key("add_eos_token", Value::Bool(add_eos)));
    keys
}

/// Chat templates as keys: the default one, and others by their names, which a list has too.
fn templates(templates: &Templates) -> Vec<(String, Value)> {
    let key = |name: &str| match name {
        DEFAULT_TEMPLATE => TEMPLATE_KEY.to_owned(),
        other => format!("{TEMPLATE_KEY}.{other}"),
    };
    let pair = |(name, text): (&str, &str)| (key(name), Value::String(text.to_owned()));
    let mut keys: Vec<_> = templates.iter().map(pair).collect();
    let names = templates.iter().map(|(name, _)| name).filter(|name| *name != DEFAULT_TEMPLATE);
    let names: causeway_weights::Strings = names.collect();
    if !names.is_empty() {
        let names = Value::Array(Array::Strings(Box::new(names)));
        keys.push(("tokenizer.chat_templates".to_owned(), names));
    }
    keys
}

#[cfg(test)]
mod tests;
