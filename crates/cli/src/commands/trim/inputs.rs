//! What the variants are compared on.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use causeway_ledger::shown_name;
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
    /// The file and the line it stands in; empty for a prompt of the command line.
    #[serde(skip)]
    place: String,
}

impl Input {
    /// Refuses to expect what no answer could have: a field that is not declared, or the one that
    /// is left out.
    pub(super) fn check(&self, schema: &Value, field: &str) -> Result<(), Failure> {
        let declared = schema.get("properties").and_then(Value::as_object);
        for name in self.expect.keys() {
            let why = if name == field.strip_prefix('/').unwrap_or(field) {
                "which is the field to leave out, so that no answer without it could be right"
            } else if declared.is_some_and(|declared| !declared.contains_key(name)) {
                "which the schema does not declare"
            } else {
                continue;
            };
            let (place, name) = (&self.place, shown_name(name));
            return Err(Failure::caller(anyhow!("{place}: `expect` names `{name}`, {why}")));
        }
        Ok(())
    }

    /// Whether an answer has every field that is known, with its value.
    pub(super) fn is_met_by(&self, text: &str) -> bool {
        let answer: Value = serde_json::from_str(text).unwrap_or_default();
        self.expect.iter().all(|(name, value)| answer.get(name) == Some(value))
    }
}

/// Prompts from the command line, then those of a file.
pub(super) fn read(prompts: &[String], file: Option<&Path>) -> Result<Vec<Input>, Failure> {
    let plain = |prompt: &String| Input {
        prompt: prompt.clone(),
        expect: Map::new(),
        place: String::new(),
    };
    let mut inputs: Vec<Input> = prompts.iter().map(plain).collect();
    if let Some(path) = file {
        let text = policy_choice::text(path, "file")?;
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let place = format!("`{}`, line {}", path.display(), index + 1);
            let input = serde_json::from_str(line).with_context(|| place.clone());
            let input: Input = input.map_err(Failure::Caller)?;
            inputs.push(Input { place, ..input });
        }
    }
    if inputs.is_empty() {
        return Err(Failure::caller(anyhow!(
            "0 inputs, where at least 1 is needed: give --prompt, or --eval with prompts"
        )));
    }
    if inputs.len() > INPUTS_MAX {
        let count = inputs.len();
        return Err(Failure::caller(anyhow!("{count} inputs, the limit is {INPUTS_MAX}")));
    }
    Ok(inputs)
}
