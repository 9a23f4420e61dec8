//! The key under which a finished answer may be given again, since answers are exact.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::canonical::canonical_json;
use crate::{Effective, Model, Numerics, Sha256, Start, Stop};

/// Who may be given an answer again: never a tenant what another one asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheScope<'a> {
    /// All who ask this server.
    Everyone,
    /// Requests with the same `cache_salt`.
    Salt(&'a str),
    /// Requests under the same API key, by its name or hash.
    ApiKey(&'a str),
}

/// Names a question to the engine: equal keys have equal answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CacheKey {
    /// Over all that the answer depends on.
    pub(crate) question: Sha256,
    /// Over `question` and who asks.
    pub(crate) scoped: Sha256,
}

impl CacheKey {
    /// The key as the store holds it, scope included.
    #[must_use]
    pub fn sha256(&self) -> Sha256 {
        self.scoped
    }
}

/// All that an answer's tokens and text depend on.
#[derive(Serialize)]
struct Question<'a> {
    engine: &'a str,
    model_sha256: Sha256,
    model_settings: &'a BTreeMap<String, String>,
    tokenizer_sha256: Option<Sha256>,
    numerics_version: u32,
    kv_type: &'a str,
    policy_sha256: Sha256,
    template_sha256: Option<Sha256>,
    prompt_tokens: &'a [u32],
    prefilled_tokens: &'a [u32],
    tokens_max: u64,
    stop_tokens: &'a [u32],
    eos_tokens: &'a [u32],
    stop_strings: &'a [String],
    draw: Option<(u64, u32)>,
}

/// The key of a request that is about to run.
///
/// Seed and choice belong to it only where the policy draws: a greedy answer has neither. The
/// engine's version belongs to it, since a new one may read tokens as text or evaluate a policy
/// in another way; the context length does not, since no answer that it cut is ever given again.
#[must_use]
pub fn cache_key(start: &Start, scope: CacheScope<'_>) -> CacheKey {
    let question = question(start);
    let (kind, name) = match scope {
        CacheScope::Everyone => ("everyone", ""),
        CacheScope::Salt(salt) => ("salt", salt),
        CacheScope::ApiKey(name) => ("api_key", name),
    };
    let scoped = canonical_json(&(question, kind, name));
    CacheKey { question, scoped: Sha256::of(scoped.as_bytes()) }
}

/// What is asked, whoever asks.
pub(crate) fn question(start: &Start) -> Sha256 {
    let Start { request, model, numerics, template, policy, conditions } = start;
    let Model { name: _, sha256, tokenizer_sha256, quantisation: _, settings } = model;
    let Numerics { version, kv_type } = numerics;
    let Effective {
        prompt: _, // its tokens say it
        prompt_tokens,
        prefilled_tokens,
        tokens_max,
        stop_tokens,
        eos_tokens,
        stop_strings,
        context_len: _,
        seed,
        choice,
    } = &request.effective;
    let question = Question {
        engine: &conditions.engine,
        model_sha256: *sha256,
        model_settings: settings,
        tokenizer_sha256: *tokenizer_sha256,
        numerics_version: *version,
        kv_type,
        policy_sha256: policy.sha256,
        template_sha256: template.as_ref().map(|template| template.sha256),
        prompt_tokens,
        prefilled_tokens,
        tokens_max: *tokens_max,
        stop_tokens,
        eos_tokens,
        stop_strings,
        draw: (!policy.greedy).then_some((*seed, *choice)),
    };
    Sha256::of(canonical_json(&question).as_bytes())
}

impl Stop {
    /// Whether the run came to an end of its own that the same question always brings about:
    /// by a stop or its budget, not by a cancel, a deadline, an error or the context's end.
    #[must_use]
    pub fn is_natural(&self) -> bool {
        match self {
            Self::Eos { .. }
            | Self::StopToken { .. }
            | Self::StopString { .. }
            | Self::MaxTokens { .. }
            | Self::SchemaComplete {} => true,
            Self::ContextFull { .. }
            | Self::Cancelled { .. }
            | Self::Deadline { .. }
            | Self::Error { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests;
