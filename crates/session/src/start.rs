//! A record's first half: everything known before the first pass.

use causeway_ledger::{CacheState, Effective, PolicyUsed, Request, Sha256, Start};
use causeway_policy::{Policy, Reasoning};
use causeway_request as request;
use causeway_request::{RequestId, TokenId};
use causeway_text::{AnswerRules, DetokenizeOptions, ReasoningSplitter, Text};
use serde_json::Value;

use crate::about::About;
use crate::prompt::Prompt;

/// Seeds drawn for requests without one stay below this, so that every JSON reader keeps them.
const SEEDS: u64 = 1 << 53;

/// Tokens at the end of a prompt in which an opening marker is looked for: a marker of the 256
/// bytes that a policy may have, and white space behind it.
const MARKER_TOKENS: usize = 320;

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
    let Prompt { text, tokens, prefilled, template } = prompt;
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

/// What the text of an answer follows beside its tokens; `text` is the model's text side.
#[must_use]
pub fn answer_rules(policy: &Policy, start: &Start, text: Option<&Text>) -> AnswerRules {
    let Reasoning { open, close, tokens_max: _ } = &policy.file().reasoning;
    let markers = open.clone().zip(close.clone());
    let effective = &start.request.effective;
    let opens = |(open, close): &(String, String)| starts_inside((open, close), effective, text);
    AnswerRules {
        stops: policy.stop_strings().to_vec(),
        min_tokens: policy.min_tokens(),
        starts_inside: markers.as_ref().is_some_and(opens),
        markers,
        // A prompt without a template, and a response prefill, are text that goes on.
        continues: start.template.is_none() || !effective.prefilled_tokens.is_empty(),
    }
}

/// Whether the first token of an answer is reasoning: some templates open it themselves, and so
/// may a response prefill.
fn starts_inside((open, close): (&str, &str), effective: &Effective, text: Option<&Text>) -> bool {
    let decode = |tokens: &[u32], show_control| {
        let tokens: Vec<TokenId> = tokens.iter().copied().map(TokenId).collect();
        let options = DetokenizeOptions { show_control, continues: true };
        text.and_then(|text| text.tokenizer.decode(&tokens, options).ok()).unwrap_or_default()
    };
    let (prompt, prefilled) = (&effective.prompt_tokens, &effective.prefilled_tokens);
    let prompt = match &effective.prompt {
        Some(prompt) if prefilled.is_empty() => prompt.clone(),
        // Where there is a prefill, the text may have it too; the prompt's tokens have not.
        _ => decode(&prompt[prompt.len().saturating_sub(MARKER_TOKENS)..], true),
    };
    let mut splitter =
        ReasoningSplitter::new(open, close, prompt.trim_end().ends_with(open) && !open.is_empty());
    splitter.push(&decode(prefilled, false));
    splitter.is_inside()
}

/// A seed from the system's own randomness, which the standard library's hasher is keyed by.
#[must_use]
pub fn drawn_seed() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    std::collections::hash_map::RandomState::new().build_hasher().finish() % SEEDS
}

#[cfg(test)]
mod tests;
