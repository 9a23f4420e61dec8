//! A policy made ready for one model.

use std::path::PathBuf;

use causeway_policy::{AccountLevel, Form, Policy, PolicyFile, Reasoning};

use crate::about::About;
use crate::error::{FitError, SessionError};

/// The policy compiled for a model; a pin that names another model is refused.
///
/// `resolve` says which file a pinned name means, where it means one.
///
/// # Errors
/// A pin of another model, a field that no run of this model would heed, or tokens it lacks.
pub fn compile(
    file: &PolicyFile,
    about: &About,
    resolve: &dyn Fn(&str) -> Option<PathBuf>,
) -> Result<Policy, SessionError> {
    refuse_unheeded(file, about)?;
    let model = &about.model;
    let other = |what, pinned: &String, found: Option<String>| FitError::OtherHash {
        what,
        pinned: pinned.clone(),
        model: model.name.clone(),
        found: found.unwrap_or_else(|| "none".to_owned()),
    };
    if let Some(pinned) = &file.model.sha256 {
        let found = model.sha256.to_string();
        if *pinned != found {
            return Err(other("weights", pinned, Some(found)).into());
        }
    }
    if let Some(pinned) = &file.model.name
        && *pinned != model.name
        && resolve(pinned).as_ref() != Some(&about.path)
    {
        let (pinned, model) = (pinned.clone(), model.name.clone());
        return Err(FitError::OtherModel { pinned, model }.into());
    }
    if let Some(pinned) = &file.model.tokenizer_sha256 {
        let found = model.tokenizer_sha256.map(|hash| hash.to_string());
        if found.as_ref() != Some(pinned) {
            return Err(other("tokenizer", pinned, found).into());
        }
    }
    Ok(Policy::from_file(file, about.vocab_size, &about.end_tokens)?)
}

/// Refuses what the policy sets and no run of this model would heed.
fn refuse_unheeded(file: &PolicyFile, about: &About) -> Result<(), FitError> {
    if file.operation.account != AccountLevel::Full {
        return Err(FitError::Unsupported { field: "account.level" });
    }
    let Reasoning { open, close, tokens_max } = &file.reasoning;
    if open.is_some() != close.is_some() {
        return Err(FitError::OneMarker);
    }
    if tokens_max.is_some() && open.is_none() {
        return Err(FitError::NoMarkers);
    }
    let Form { schema, json_object, regex, grammar, choice, tools, whitespace: _ } =
        &file.constraints.form;
    for (field, is_set) in [
        ("stop.strings", !file.stop.strings.is_empty()),
        ("reasoning.open", open.is_some()),
        ("constraints.schema", schema.is_some()),
        ("constraints.json_object", *json_object),
        ("constraints.regex", regex.is_some()),
        ("constraints.grammar", grammar.is_some()),
        ("constraints.choice", !choice.is_empty()),
        ("constraints.tools", tools.is_some()),
    ] {
        if is_set && !about.has_text {
            return Err(FitError::NeedsText { field, model: about.model.name.clone() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
