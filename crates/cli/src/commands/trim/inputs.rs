//! What the variants are compared on.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::policy_choice;

/// Most inputs: each is answered three times.
const INPUTS_MAX: usize = 10_000;

/// One prompt, and the fields of the right answer where they are known.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    pub(super) prompt: String,
    #[serde(default)]
    pub(super) expect: Map<String, Value>,
}

impl Input {
    /// Whether an answer has every field that is known, with its value.
    pub(super) fn is_met_by(&self, text: &str) -> bool {
        let answer: Value = serde_json::from_str(text).unwrap_or_default();
        self.expect.iter().all(|(name, value)| answer.get(name) == Some(value))
    }
}

/// Prompts from the command line, then those of a file.
pub(super) fn read(prompts: &[String], file: Option<&Path>) -> Result<Vec<Input>, Failure> {
    let plain = |prompt: &String| Input { prompt: prompt.clone(), expect: Map::new() };
    let mut inputs: Vec<Input> = prompts.iter().map(plain).collect();
    if let Some(path) = file {
        let text = policy_choice::text(path, "file")?;
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let place = || format!("`{}`, line {}", path.display(), index + 1);
            let input = serde_json::from_str(line).with_context(place);
            inputs.push(input.map_err(Failure::Caller)?);
        }
    }
    if inputs.is_empty() {
        return Err(Failure::caller(anyhow!("give a --prompt, or an --eval file with prompts")));
    }
    if inputs.len() > INPUTS_MAX {
        let count = inputs.len();
        return Err(Failure::caller(anyhow!("{count} inputs, the limit is {INPUTS_MAX}")));
    }
    Ok(inputs)
}
