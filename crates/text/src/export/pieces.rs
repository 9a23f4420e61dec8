//! BPE over spelled-out spaces with bytes to fall back on: `llama` in a GGUF file.

use std::collections::HashMap;

use serde_json::Value as Json;

use super::ExportError;
use crate::bytes::named_byte;
use crate::vocabulary::TokenType;

/// The mark that spells a space.
const MARK: &str = "\u{2581}";

/// Score of a token that no merge makes: behind all that one does.
const SCORE_LAST: f32 = -1e9;

/// Whether the file puts a space before a text; refuses steps that such GGUF files cannot say.
pub(super) fn adds_space(file: &Json) -> Result<bool, ExportError> {
    let mut adds = false;
    for step in steps(&file["normalizer"], "normalizers") {
        match step["type"].as_str().unwrap_or("?") {
            "Prepend" if step["prepend"] == MARK => adds = true,
            "Replace" if step["pattern"]["String"] == " " && step["content"] == MARK => {}
            kind => return Err(ExportError::unwritable(format!("the normaliser `{kind}`"))),
        }
    }
    for step in steps(&file["pre_tokenizer"], "pretokenizers") {
        match step["type"].as_str().unwrap_or("?") {
            "Metaspace" if step["replacement"] == MARK => {
                adds |= step["prepend_scheme"] != "never";
            }
            // Spaces are marks by then, and nothing is cut.
            "Split" if step["pattern"]["String"] == " " => {}
            kind => {
                let part = format!("the pre-tokenizer `{kind}` of a tokenizer with byte fallback");
                return Err(ExportError::unwritable(part));
            }
        }
    }
    Ok(adds)
}

/// The steps of a part, sequences opened.
fn steps<'a>(part: &'a Json, list: &str) -> Vec<&'a Json> {
    match &part[list] {
        Json::Array(inner) => inner.iter().flat_map(|step| steps(step, list)).collect(),
        _ if part.is_null() => Vec::new(),
        _ => vec![part],
    }
}

/// A score for each token by the first merge that makes it, so that merging by score takes the
/// same order as merging by rank.
#[expect(clippy::cast_precision_loss, reason = "merges in use are far below 2^24")]
pub(super) fn scores(tokens: &[String], merges: &[String]) -> Vec<f32> {
    let mut ranks = HashMap::with_capacity(merges.len());
    for (rank, merge) in merges.iter().enumerate() {
        ranks.entry(merge.replacen(' ', "", 1)).or_insert(rank);
    }
    tokens.iter().map(|token| ranks.get(token).map_or(SCORE_LAST, |rank| -(*rank as f32))).collect()
}

/// Gives bytes and the unknown token the types that they have in such files.
pub(super) fn mark(types: &mut [TokenType], tokens: &[String], unknown: Option<u32>) {
    for (token, kind) in tokens.iter().zip(types.iter_mut()) {
        if *kind == TokenType::Normal && named_byte(token).is_some() {
            *kind = TokenType::Byte;
        }
    }
    if let Some(kind) = unknown.and_then(|id| types.get_mut(id as usize)) {
        *kind = TokenType::Unknown;
    }
}
