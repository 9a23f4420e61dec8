//! What a folder says about decoding as the keys of a GGUF file.

use causeway_weights::{ModelFile, Value};

use super::sources::{SAMPLING, generation};
use crate::error::SessionError;

/// Keys of `generation_config.json` and what GGUF files call them below `general.sampling.`.
const NUMBERS: [(&str, &str); 4] = [
    ("temperature", "temp"),
    ("top_p", "top_p"),
    ("min_p", "min_p"),
    ("repetition_penalty", "penalty_repeat"),
];

/// The `general.sampling.*` keys for a folder; none for one whose answers are not drawn, which
/// such files cannot say, and for one that says nothing.
///
/// # Errors
/// A `generation_config.json` that cannot be read.
pub fn sampling_keys(file: &ModelFile) -> Result<Vec<(String, Value)>, SessionError> {
    let Some(folder) = file.folder() else { return Ok(Vec::new()) };
    let config = generation(folder)?;
    if config.get("do_sample") != Some(&serde_json::Value::Bool(true)) {
        return Ok(Vec::new());
    }
    let number = |(theirs, ours): &(&str, &str)| {
        #[expect(clippy::cast_possible_truncation, reason = "such files have numbers of 32 bits")]
        let number = config.get(*theirs)?.as_f64()? as f32;
        Some((format!("{SAMPLING}.{ours}"), Value::F32(number)))
    };
    let mut keys: Vec<_> = NUMBERS.iter().filter_map(number).collect();
    let top_k = config.get("top_k").and_then(serde_json::Value::as_i64);
    let top_k = top_k.and_then(|count| i32::try_from(count).ok());
    keys.extend(top_k.map(|count| (format!("{SAMPLING}.top_k"), Value::I32(count))));
    Ok(keys)
}

#[cfg(test)]
mod tests;
