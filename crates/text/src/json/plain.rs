//! The reading of a `tokenizer.json` in which no text becomes a control token.
//!
//! The library's switch for it only stops the search for added tokens: a model that takes words or
//! pieces whole (Unigram, WordPiece, WordLevel) still finds the control tokens among its own. They
//! get names here that no text spells, and a text that spells one all the same is refused.

use std::collections::HashSet;

use serde_json::Value;
use tokenizers::Tokenizer as Library;

use crate::error::JsonFault;

/// Begins the new names: a code point that is no character, and never will be.
const MARK: char = '\u{fdd0}';

/// The library's tokenizer for plain text, and the ids that it may not give.
pub(super) struct Plain {
    pub(super) library: Library,
    pub(super) barred: HashSet<u32>,
}

impl Plain {
    /// The plain reading of what `parsing` reads.
    pub(super) fn of(parsing: &Library) -> Result<Self, JsonFault> {
        let special: HashSet<String> = parsing
            .get_added_tokens_decoder()
            .into_values()
            .filter(|token| token.special)
            .map(|token| token.content)
            .collect();
        let mut tree = serde_json::to_value(parsing).map_err(|fault| JsonFault(fault.into()))?;
        let barred = rename(&mut tree, &special);
        let mut library = if barred.is_empty() {
            parsing.clone()
        } else {
            Library::from_bytes(tree.to_string()).map_err(JsonFault)?
        };
        library.set_encode_special_tokens(true);
        Ok(Self { library, barred })
    }
}

/// Gives control tokens of a model that takes its tokens whole other names; their ids.
fn rename(tree: &mut Value, special: &HashSet<String>) -> HashSet<u32> {
    let model = &mut tree["model"];
    // Merges never make a control token, unless whole words are looked for before them.
    if model["type"] == "BPE" && model["ignore_merges"] != true {
        return HashSet::new();
    }
    // The unknown token is no structure: it stands for what nothing else can spell.
    let unknown = match model["unk_id"].as_u64().and_then(|id| usize::try_from(id).ok()) {
        Some(id) => &model["vocab"][id][0],
        None => &model["unk_token"],
    };
    let unknown = unknown.as_str().unwrap_or_default().to_owned();
    let is_renamed = |text: &str| special.contains(text) && text != unknown;
    let mut barred = HashSet::new();
    match &mut model["vocab"] {
        Value::Array(pieces) => {
            for (id, piece) in (0_u32..).zip(pieces) {
                let text = piece[0].as_str().unwrap_or_default();
                if is_renamed(text) {
                    piece[0] = renamed(text).into();
                    barred.insert(id);
                }
            }
        }
        Value::Object(words) => {
            let texts: Vec<String> =
                words.keys().filter(|text| is_renamed(text)).cloned().collect();
            for text in texts {
                let id = words.remove(&text).unwrap_or_default();
                barred.extend(id.as_u64().and_then(|id| u32::try_from(id).ok()));
                words.insert(renamed(&text), id);
            }
        }
        _ => {}
    }
    if !barred.is_empty() {
        // An added token keeps the id that the model has for its name.
        for token in tree["added_tokens"].as_array_mut().into_iter().flatten() {
            let id = token["id"].as_u64().and_then(|id| u32::try_from(id).ok());
            if id.is_some_and(|id| barred.contains(&id)) {
                let text = token["content"].as_str().unwrap_or_default();
                token["content"] = renamed(text).into();
            }
        }
    }
    barred
}

fn renamed(text: &str) -> String {
    format!("{MARK}{text}")
}

#[cfg(test)]
mod tests;
