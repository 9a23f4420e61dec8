//! A record's first half: everything known before the first pass.

use causeway_ledger::{CacheState, Effective, PolicyUsed, Request, Sha256, Start};
use causeway_policy::{Policy, Reasoning};
use causeway_request as request;
use causeway_request::RequestId;
use causeway_text::AnswerRules;
use serde_json::Value;

use crate::about::About;
use crate::prompt::Prompt;

/// Seeds drawn for requests without one stay below this, so that every JSON reader keeps them.
const SEEDS: u64 = 1 << 53;

/// What was asked beside prompt and policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    pub id: RequestId,
    /// What the caller sent, verbatim: the body, or the command's arguments by name.
    pub received: Value,
    pub seed: Option<u64>,
    /// Which of the parallel choices this is.
    pub choice: u32,
}

/// Where a run takes place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Requests that waited when it arrived.
    pub queue: usize,
    /// Requests that the engine would run at once.
    pub concurrency: usize,
    pub cache: CacheState,
    /// Most prompt positions computed in one pass.
    pub chunk: usize,
}

impl Place {
    /// An engine with no other request and no prefix cache.
    #[must_use]
    pub fn alone(chunk: usize) -> Self {
        Self { queue: 0, concurrency: 1, cache: CacheState::Off, chunk }
    }
}

/// Everything a record says before the first pass; its effective request is the engine's.
///
/// The policy's seed goes before the request's; where there is neither, one is drawn.
#[must_use]
pub fn start(about: &About, policy: &Policy, prompt: Prompt, asked: Asked, place: &Place) -> Start {
    let Prompt { text, tokens, prefilled, template, continues: _ } = prompt;
    let Asked { id, received, seed, choice } = asked;
    let room = about.context_len.saturating_sub(tokens.len()).max(1);
    let tokens_max = policy.tokens_max().map_or(Ok(room), usize::try_from);
    let eos = if policy.ignores_eos() { Vec::new() } else { policy.eos_tokens().to_vec() };
    let request = request::Request {
        id,
        tokens,
        prefilled,
        tokens_max: tokens_max.unwrap_or(usize::MAX),
        stop_tokens: policy.stop_tokens().to_vec(),
        eos_tokens: eos,
        seed: policy.seed().or(seed).unwrap_or_else(drawn_seed),
        choice,
    };
    let stops = policy.stop_strings().to_vec();
    let effective = Effective::from_request(&request, text, stops, about.context_len);
    Start {
        request: Request { id: request.id.0, received, effective },
        model: about.model.clone(),
        numerics: about.numerics.clone(),
        template,
        policy: policy_used(policy),
        conditions: about.conditions(place),
    }
}

/// The policy as a record holds it.
#[must_use]
pub fn policy_used(policy: &Policy) -> PolicyUsed {
    let canonical = policy.file().to_canonical_json();
    PolicyUsed { sha256: Sha256(policy.hash()), greedy: policy.is_greedy(), canonical }
}

/// What the text of an answer follows beside its tokens; `prompt` is the text before it.
#[must_use]
pub fn answer_rules(policy: &Policy, prompt: Option<&str>, continues: bool) -> AnswerRules {
    let Reasoning { open, close, tokens_max: _ } = &policy.file().reasoning;
    let markers = open.clone().zip(close.clone());
    // Some templates open the reasoning themselves.
    let opens = |(open, _): &(String, String)| {
        prompt.is_some_and(|prompt| prompt.trim_end().ends_with(open.as_str()))
    };
    AnswerRules {
        stops: policy.stop_strings().to_vec(),
        min_tokens: policy.min_tokens(),
        starts_inside: markers.as_ref().is_some_and(opens),
        markers,
        continues,
    }
}

/// A seed from the system's own randomness, which the standard library's hasher is keyed by.
#[must_use]
pub fn drawn_seed() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    std::collections::hash_map::RandomState::new().build_hasher().finish() % SEEDS
}
