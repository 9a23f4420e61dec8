//! A record: everything known before a run, every step of it, and how it ended.

use causeway_request as request;
use causeway_request::TokenId;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::{Account, FieldSpent, Sha256, Step, Stop, canonical};

/// The form this room writes and the only one it reads.
pub const SCHEMA: u64 = 1;

/// Most bytes of JSON that `Request::received` may take. Parsed JSON of nothing but small
/// numbers is 16 times as large in memory, so this bounds what a hostile file can ask for.
pub const RECEIVED_BYTES_MAX: usize = 8 << 20;

/// All that is needed to explain an answer and to play it again.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub start: Start,
    /// In order; the index of each is one above that of the step before it.
    pub steps: Vec<Step>,
    pub end: End,
}

/// Everything known before the first pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    pub request: Request,
    pub model: Model,
    pub numerics: Numerics,
    /// `None` where no template was used: a raw prompt, or token ids.
    pub template: Option<Template>,
    pub policy: PolicyUsed,
    pub conditions: Conditions,
}

/// The request, as it came and as it was made effective.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The engine's own number for the request; means nothing after the engine ended.
    pub id: u64,
    /// What the caller sent, verbatim: the body, or the command's arguments by name.
    #[serde(deserialize_with = "bounded")]
    pub received: serde_json::Value,
    pub effective: Effective,
}

/// The request with every default filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effective {
    /// The prompt's text after the template; `None` where token ids came in its place.
    pub prompt: Option<String>,
    /// Every token of the prompt, without the response prefill.
    pub prompt_tokens: Vec<u32>,
    /// The response prefill: follows the prompt, and is generation prefix to the policy.
    pub prefilled_tokens: Vec<u32>,
    /// Most tokens to generate, the response prefill not counted.
    pub tokens_max: u64,
    pub stop_tokens: Vec<u32>,
    /// The model's end-of-text tokens; empty where the caller ignores them.
    pub eos_tokens: Vec<u32>,
    pub stop_strings: Vec<String>,
    /// Most tokens the context holds, prompt and generation prefix together.
    pub context_len: u64,
    /// The seed of every draw, drawn by the engine where the caller gave none.
    pub seed: u64,
    /// Which of the parallel choices this is.
    pub choice: u32,
}

/// Which weights, and what was fixed when they were loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The name it was asked for by.
    pub name: String,
    /// SHA-256 of the weights file.
    pub sha256: Sha256,
    /// SHA-256 of the tokenizer as its room defines it; `None` for a model that has none.
    pub tokenizer_sha256: Option<Sha256>,
    /// The weights' quantisation, as in `Q4_K_M`.
    pub quantisation: String,
    /// Settings fixed at load that reach the logits, by name, such as the RoPE factor set.
    pub settings: std::collections::BTreeMap<String, String>,
}

/// What fixes the arithmetic beside the weights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Numerics {
    /// Version of the numerics definition.
    pub version: u32,
    /// The type that keys and values are rounded to: `f16`, `f32` or `q8_0`.
    pub kv_type: String,
}

/// A chat template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Template {
    pub text: String,
    /// SHA-256 of `text`.
    pub sha256: Sha256,
}

/// The effective policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyUsed {
    /// The policy's canonical JSON, byte for byte as it was hashed.
    pub canonical: String,
    /// SHA-256 of the canonical form.
    pub sha256: Sha256,
    /// Whether the policy draws nothing: the best survivor is always the token.
    pub greedy: bool,
}

/// Under which conditions the run took place. None of them may change a bit of the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conditions {
    /// Version of the engine.
    pub engine: String,
    /// The CPU by its model name.
    pub cpu: String,
    /// The instruction set that the kernels used, by name.
    pub isa: String,
    pub threads: u32,
    /// Most requests that any pass of this run computed together, this one included.
    pub batch_occupancy: u32,
    /// Requests that waited when this one arrived.
    pub queue: u32,
    /// Requests that the engine would have run at once.
    pub concurrency: u32,
    pub cache: CacheState,
    /// Most prompt positions computed in one pass.
    pub chunk: u32,
}

/// What the prefix cache could give to the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// There is no prefix cache.
    Off,
    /// It held nothing of this prompt.
    Cold,
    /// It held a part of this prompt.
    Warm,
}

/// How the run ended and what it cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    pub stop: Stop,
    /// The answer's text as it was delivered.
    pub text: String,
    pub account: Account,
    /// What each field of a JSON answer took, in the order in which they began; `None` where the
    /// policy asks for no JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<FieldSpent>>,
    /// The innermost field that was not finished, where such an answer was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_field: Option<String>,
}

impl CacheState {
    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Cold => "cold",
            Self::Warm => "warm",
        }
    }
}

impl Effective {
    /// Takes over a request that is about to run, beside what a request does not say.
    #[must_use]
    pub fn from_request(
        request: &request::Request,
        prompt: Option<String>,
        stop_strings: Vec<String>,
        context_len: usize,
    ) -> Self {
        let request::Request {
            id: _, // stands beside the effective request
            tokens,
            prefilled,
            tokens_max,
            stop_tokens,
            eos_tokens,
            seed,
            choice,
        } = request;
        let (prompt_tokens, prefilled) = tokens.split_at(tokens.len().saturating_sub(*prefilled));
        Self {
            prompt,
            prompt_tokens: numbers(prompt_tokens),
            prefilled_tokens: numbers(prefilled),
            tokens_max: *tokens_max as u64,
            stop_tokens: numbers(stop_tokens),
            eos_tokens: numbers(eos_tokens),
            stop_strings,
            context_len: context_len as u64,
            seed: *seed,
            choice: *choice,
        }
    }

    /// The same request for the engine, to run it again.
    #[must_use]
    pub fn to_request(&self, id: request::RequestId) -> request::Request {
        let ids = |numbers: &[u32]| numbers.iter().copied().map(TokenId).collect::<Vec<_>>();
        request::Request {
            id,
            tokens: ids(&[self.prompt_tokens.as_slice(), &self.prefilled_tokens].concat()),
            prefilled: self.prefilled_tokens.len(),
            // A budget above the machine's largest number is as good as that number.
            tokens_max: usize::try_from(self.tokens_max).unwrap_or(usize::MAX),
            stop_tokens: ids(&self.stop_tokens),
            eos_tokens: ids(&self.eos_tokens),
            seed: self.seed,
            choice: self.choice,
        }
    }
}

fn numbers(tokens: &[TokenId]) -> Vec<u32> {
    tokens.iter().map(|token| token.0).collect()
}

impl Template {
    /// A template beside its hash.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self { sha256: Sha256::of(text.as_bytes()), text }
    }
}

impl Record {
    /// Names the whole record: SHA-256 of the canonical JSON of `schema`, `start`, `steps` and
    /// `end`, times and conditions included. Two runs never share it.
    #[must_use]
    pub fn id(&self) -> Sha256 {
        canonical::record_id(self)
    }

    /// The request that plays this record again: a run that was cut short is played as far as it
    /// ran, and so its budget is the steps that it has.
    #[must_use]
    pub fn to_request(&self) -> request::Request {
        let Request { id, received: _, effective } = &self.start.request;
        let mut request = effective.to_request(request::RequestId(*id));
        if self.end.stop.is_cut_short() {
            request.tokens_max = self.steps.len().max(1);
        }
        request
    }

    /// Names the answer: SHA-256 over what exactness promises, times and conditions left out.
    /// A replay has it too.
    #[must_use]
    pub fn answer_hash(&self) -> Sha256 {
        canonical::answer_hash(self)
    }
}

/// Reads any JSON, refusing more than `RECEIVED_BYTES_MAX` of it before parsing it.
fn bounded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<serde_json::Value, D::Error> {
    use serde::de::Error as _;

    let raw = Box::<RawValue>::deserialize(deserializer)?;
    let bytes = raw.get().len();
    if bytes > RECEIVED_BYTES_MAX {
        return Err(D::Error::custom(format_args!(
            "`received` takes {bytes} bytes of JSON, where {RECEIVED_BYTES_MAX} are the limit"
        )));
    }
    serde_json::from_str(raw.get()).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests;
