//! A policy made ready for one model.

use std::path::PathBuf;

use causeway_policy::{AccountLevel, Policy, PolicyFile, Reasoning};

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
    if about.has_text {
        return Ok(());
    }
    let strings = (!file.stop.strings.is_empty()).then_some("stop.strings");
    let markers = open.is_some().then_some("reasoning.open");
    let asked = strings.into_iter().chain(markers).chain(file.constraints.form.asked()).next();
    match asked {
        Some(field) => Err(FitError::NeedsText { field, model: about.model.name.clone() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
