//! What a run needs before its first pass: model, prompt, policy and the record's first half.

use std::collections::BTreeMap;

use causeway_engine::{Engine, Limits};
use causeway_ledger::{
    CacheState, Conditions, Effective, Model, Numerics, PolicyUsed, Request, Sha256, Start,
};
use causeway_policy::{AccountLevel, Policy, PolicyFile, Reasoning};
use causeway_request as request;
use causeway_request::RequestId;
use serde_json::Value;

use crate::failure::Failure;
use crate::loaded::{Loaded, cpu_name};
use crate::prompting::Prompt;

/// Seeds drawn for requests without one stay below this, so that every JSON reader keeps them.
const SEEDS: u64 = 1 << 53;

/// The policy compiled for a model; a pin that names another model is refused.
pub(crate) fn compile(file: &PolicyFile, loaded: &Loaded) -> Result<Policy, Failure> {
    refuse_unheeded(file, loaded)?;
    if let Some(pinned) = &file.model.sha256 {
        let found = loaded.sha256()?.to_string();
        if *pinned != found {
            return Err(Failure::caller(anyhow::anyhow!(
                "the policy is for weights {pinned}, `{}` has {found}",
                loaded.name
            )));
        }
    }
    if let Some(pinned) = &file.model.name {
        let same_path = || crate::model_path::resolve(pinned).ok().as_ref() == Some(&loaded.path);
        if *pinned != loaded.name && !same_path() {
            return Err(Failure::caller(anyhow::anyhow!(
                "the policy is for model `{pinned}`, not for `{}`",
                loaded.name
            )));
        }
    }
    if let Some(pinned) = &file.model.tokenizer_sha256 {
        let found = loaded.tokenizer_sha256().map(|hash| hash.to_string());
        if found.as_ref() != Some(pinned) {
            return Err(Failure::caller(anyhow::anyhow!(
                "the policy is for tokenizer {pinned}, `{}` has {}",
                loaded.name,
                found.as_deref().unwrap_or("none")
            )));
        }
    }
    let vocab_size = loaded.model.config().shape.vocab_size;
    let policy = Policy::from_file(file, vocab_size, &loaded.end_tokens());
    policy.map_err(|error| {
        let is_callers_mistake = error.is_callers_mistake();
        Failure::of(error, is_callers_mistake)
    })
}

/// Refuses what the policy sets and no run of this model would heed.
fn refuse_unheeded(file: &PolicyFile, loaded: &Loaded) -> Result<(), Failure> {
    for (name, is_set) in [
        ("reasoning.tokens_max", file.reasoning.tokens_max.is_some()),
        ("account.level", file.operation.account != AccountLevel::Full),
    ] {
        if is_set {
            return Err(Failure::caller(anyhow::anyhow!(
                "the policy sets `{name}`, which is not supported yet"
            )));
        }
    }
    let Reasoning { open, close, .. } = &file.reasoning;
    if open.is_some() != close.is_some() {
        return Err(Failure::caller(anyhow::anyhow!(
            "the policy sets one of `reasoning.open` and `reasoning.close`, but needs both"
        )));
    }
    for (name, is_set) in
        [("stop.strings", !file.stop.strings.is_empty()), ("reasoning.open", open.is_some())]
    {
        if is_set && loaded.text.is_none() {
            return Err(Failure::caller(anyhow::anyhow!(
                "the policy sets `{name}`, but `{}` has no tokenizer.json to read text with",
                loaded.name
            )));
        }
    }
    Ok(())
}

/// Everything a record says before the first pass.
///
/// The policy's seed goes before the request's; where there is neither, one is drawn.
pub(crate) fn start(
    loaded: &Loaded,
    policy: &Policy,
    prompt: Prompt,
    received: Value,
    seed: Option<u64>,
    chunk: usize,
) -> Result<Start, Failure> {
    let Prompt { text, tokens, prefilled, template, continues: _ } = prompt;
    let context_len = loaded.model.context_len();
    let room = context_len.saturating_sub(tokens.len()).max(1);
    let tokens_max = policy.tokens_max().map_or(Ok(room), usize::try_from);
    let eos = if policy.ignores_eos() { Vec::new() } else { policy.eos_tokens().to_vec() };
    let request = request::Request {
        id: RequestId(1),
        tokens,
        prefilled,
        tokens_max: tokens_max.unwrap_or(usize::MAX),
        stop_tokens: policy.stop_tokens().to_vec(),
        eos_tokens: eos,
        seed: policy.seed().or(seed).unwrap_or_else(drawn_seed),
        choice: 0,
    };
    let stops = policy.stop_strings().to_vec();
    let effective = Effective::from_request(&request, text, stops, context_len);
    Ok(Start {
        request: Request { id: request.id.0, received, effective },
        model: model(loaded)?,
        numerics: numerics(loaded),
        template,
        policy: policy_used(policy),
        conditions: conditions(loaded, chunk),
    })
}

/// The policy as a record holds it.
pub(crate) fn policy_used(policy: &Policy) -> PolicyUsed {
    let canonical = policy.file().to_canonical_json();
    PolicyUsed { sha256: Sha256(policy.hash()), greedy: policy.is_greedy(), canonical }
}

/// The weights as a record names them.
pub(crate) fn model(loaded: &Loaded) -> Result<Model, Failure> {
    Ok(Model {
        name: loaded.name.clone(),
        sha256: loaded.sha256()?,
        tokenizer_sha256: loaded.tokenizer_sha256(),
        quantisation: loaded.quantisation(),
        settings: BTreeMap::new(),
    })
}

/// What fixes the arithmetic.
pub(crate) fn numerics(loaded: &Loaded) -> Numerics {
    Numerics {
        version: causeway_kernels::NUMERICS_VERSION,
        kv_type: loaded.model.settings().kv_type.name().to_owned(),
    }
}

/// The conditions of a run that is alone in its engine.
pub(crate) fn conditions(loaded: &Loaded, chunk: usize) -> Conditions {
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    Conditions {
        engine: env!("CARGO_PKG_VERSION").to_owned(),
        cpu: cpu_name(),
        isa: loaded.model.kernels().isa().name().to_owned(),
        threads: number(loaded.model.threads()),
        batch_occupancy: 1,
        queue: 0,
        concurrency: 1,
        cache: CacheState::Off,
        chunk: number(chunk),
    }
}

/// An engine for one request at a time.
pub(crate) fn engine(model: causeway_model::Model, chunk: usize) -> Engine {
    Engine::new(model, Limits { queue_max: 0, prefix_cache: false, ..Limits::new(1, chunk) })
}

/// A seed from the system's own randomness, which the standard library's hasher is keyed by.
fn drawn_seed() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    std::collections::hash_map::RandomState::new().build_hasher().finish() % SEEDS
}
