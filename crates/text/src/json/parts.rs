//! Parts of a `tokenizer.json` that the library takes and then panics on, or draws lots with.

use regex::Regex;
use serde_json::Value;
use tokenizers::{ModelWrapper, Tokenizer as Library};

use crate::error::{JsonFault, VocabularyError};

/// Most bytes that one part puts in place of what it finds; files in use have one character.
const CONTENT_BYTES_MAX: usize = 64;
/// Most parts in a row that make a text longer: 64 bytes a part would make 64 times 64 of one.
const GROWING_MAX: usize = 1;
const SECOND: &str = "is the second to make a text longer";
/// Texts in which an expression that can match nothing does so somewhere.
const PROBES: [&str; 4] = ["", "a b", "\n1. \u{2581}\u{e9}\u{4e2d}", "Aa-_ \t'"];

/// Refuses a normaliser, pre-tokenizer or model that gives no tokens, or not always the same.
pub(super) fn check(library: &Library) -> Result<Result<(), VocabularyError>, JsonFault> {
    let tree = |part: Result<Option<Value>, serde_json::Error>| {
        part.map(Option::unwrap_or_default).map_err(|error| JsonFault(Box::new(error)))
    };
    let normalizer = tree(library.get_normalizer().map(serde_json::to_value).transpose())?;
    let pre_tokenizer = tree(library.get_pre_tokenizer().map(serde_json::to_value).transpose())?;
    let mut growing = 0;
    let parts = steps(&normalizer, "normalizers").into_iter();
    let fault = parts
        .chain(steps(&pre_tokenizer, "pretokenizers"))
        .find_map(|step| fault_of(step, &mut growing).map(|fault| (step, fault)));
    if let Some((step, fault)) = fault {
        return Ok(Err(VocabularyError::Part { part: name_of(step), fault }));
    }
    let drops = match library.get_model() {
        ModelWrapper::BPE(model) => model.dropout.is_some_and(|share| share > 0.0),
        _ => false,
    };
    let part = || "BPE".to_owned();
    let fault = "leaves merges out at random (dropout)";
    Ok(if drops { Err(VocabularyError::Part { part: part(), fault }) } else { Ok(()) })
}

/// The steps of a part, sequences opened.
fn steps<'a>(part: &'a Value, list: &str) -> Vec<&'a Value> {
    match &part[list] {
        Value::Array(inner) => inner.iter().flat_map(|step| steps(step, list)).collect(),
        _ if part.is_null() => Vec::new(),
        _ => vec![part],
    }
}

fn fault_of(step: &Value, growing: &mut usize) -> Option<&'static str> {
    match step["type"].as_str().unwrap_or_default() {
        "Precompiled" => {
            *growing += 1;
            let table = step["precompiled_charsmap"].as_str().unwrap_or_default();
            let second = (*growing > GROWING_MAX).then_some(SECOND);
            super::charsmap::fault(table, CONTENT_BYTES_MAX).or(second)
        }
        "FixedLength" if step["length"] == 0 => Some("cuts text into pieces of no length"),
        "Replace" | "Prepend" => {
            let content = ["content", "prepend"].iter().find_map(|key| step[*key].as_str());
            let content = content.unwrap_or_default().len();
            let pattern = &step["pattern"];
            if step["type"] == "Replace" && matches_nothing(pattern) {
                return Some("replaces what may be empty");
            }
            if content > CONTENT_BYTES_MAX {
                return Some("puts in more than 64 bytes");
            }
            // One character for another is no growth that could add up.
            *growing += usize::from(content > 4 && step["type"] == "Replace");
            (*growing > GROWING_MAX).then_some(SECOND)
        }
        _ => None,
    }
}

/// Whether a pattern can match no text at all, or is beyond telling.
fn matches_nothing(pattern: &Value) -> bool {
    if let Some(text) = pattern["String"].as_str() {
        return text.is_empty();
    }
    let Some(expression) = pattern["Regex"].as_str().and_then(|text| Regex::new(text).ok()) else {
        return true;
    };
    PROBES.iter().any(|probe| expression.find_iter(probe).any(|found| found.is_empty()))
}

/// What a step calls itself.
pub(super) fn name_of(step: &Value) -> String {
    step["type"].as_str().unwrap_or("?").to_owned()
}

#[cfg(test)]
mod tests;
