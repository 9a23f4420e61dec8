//! Fields that several APIs have: sampling, stopping, delivery.

use causeway_policy::COUNT_MAX;

use super::Rule::{Only, Policy, Recorded, Refused, Route};
use super::{Field, Kind, Plain};

/// Longest name, salt or key, in bytes.
pub const NAME_BYTES_MAX: usize = 512;

/// A field and what becomes of it.
pub const fn field(name: &'static str, rule: super::Rule) -> Field {
    Field { name, rule }
}

const fn number(min: f64, max: f64) -> Kind {
    Kind::Number { min, max, above: false }
}

const fn count(min: u64, max: u64) -> Kind {
    Kind::Count { min, max }
}

const NAME: Kind = Kind::Text { bytes_max: NAME_BYTES_MAX };

/// How a token is chosen: OpenAI's fields with OpenAI's ranges, then those of this engine.
pub const SAMPLING: &[Field] = &[
    field("top_p", Policy("shape.top_p", Kind::Number { min: 0.0, max: 1.0, above: true })),
    field("presence_penalty", Policy("constraints.presence_penalty", number(-2.0, 2.0))),
    field("frequency_penalty", Policy("constraints.frequency_penalty", number(-2.0, 2.0))),
    field(
        "logit_bias",
        Policy("constraints.logit_bias", Kind::Biases { count_max: 4096, max: 100.0 }),
    ),
    field("seed", Route(count(0, u64::MAX))),
    field("top_k", Policy("shape.top_k", count(0, COUNT_MAX))),
    field("min_p", Policy("shape.min_p", number(0.0, 1.0))),
    field("typical_p", Policy("shape.typical_p", Kind::Number { min: 0.0, max: 1.0, above: true })),
    field("top_n_sigma", Policy("shape.top_n_sigma", number(0.0, 1000.0))),
    field("epsilon_cutoff", Policy("shape.epsilon_cutoff", number(0.0, 1.0))),
    field("eta_cutoff", Policy("shape.eta_cutoff", number(0.0, 1.0))),
    field(
        "repetition_penalty",
        Policy(
            "constraints.repetition_penalty",
            Kind::Number { min: 0.0, max: 100.0, above: true },
        ),
    ),
    field("no_repeat_ngram", Policy("constraints.no_repeat_ngram", count(0, 1024))),
    field("dry_multiplier", Policy("constraints.dry_multiplier", number(0.0, 100.0))),
    field("dry_base", Policy("constraints.dry_base", number(1.0, 100.0))),
    field("dry_allowed_length", Policy("constraints.dry_allowed_length", count(1, COUNT_MAX))),
    field(
        "allowed_token_ids",
        Policy("constraints.allowed_tokens", Kind::Tokens { count_max: 65_536 }),
    ),
    field(
        "forbidden_token_ids",
        Policy("constraints.forbidden_tokens", Kind::Tokens { count_max: 65_536 }),
    ),
    field(
        "like",
        Policy("like", Kind::Word(&["vllm", "sglang", "llama.cpp", "transformers", "mistral.rs"])),
    ),
];

/// What ends an answer, beside its strings.
pub const STOPPING: &[Field] = &[
    field("stop_token_ids", Policy("stop.tokens", Kind::Tokens { count_max: 1024 })),
    field("min_tokens", Policy("constraints.min_tokens", count(0, COUNT_MAX))),
    field("ignore_eos", Policy("stop.ignore_eos", Kind::Flag)),
];

/// What the answer must be, in the words of other engines' clients; OpenAI's own stand with its
/// APIs.
pub const FORMS: &[Field] = &[
    field("guided_json", Route(Kind::Any)),
    field("guided_regex", Policy("constraints.regex", Kind::Text { bytes_max: 256 << 10 })),
    field("guided_grammar", Policy("constraints.grammar", Kind::Text { bytes_max: 256 << 10 })),
    field(
        "guided_choice",
        Policy("constraints.choice", Kind::TextList { count_max: 10_000, bytes_max: 256 << 10 }),
    ),
    field("structured_outputs", Route(Kind::Object)),
    field(
        "json_whitespace",
        Policy("constraints.whitespace", Kind::Word(&["compact", "flexible"])),
    ),
];

/// How a request is served, and how its answer comes, in every API.
pub const DELIVERY: &[Field] = &[
    field("model", Route(NAME)),
    field("stream", Route(Kind::Flag)),
    field("priority", Route(Kind::Word(&["interactive", "batch"]))),
    field("timeout_ms", Route(count(1, 86_400_000))),
    field("on_disconnect", Policy("delivery.on_disconnect", Kind::Word(&["cancel", "finish"]))),
    field("cache_salt", Route(NAME)),
    field("session", Route(NAME)),
    field("result_cache", Route(Kind::Flag)),
    field("return_progress", Route(Kind::Flag)),
    field("reasoning_markers", Route(Kind::Texts { count_max: 2, bytes_max: 256 })),
    field("reasoning_tokens_max", Policy("reasoning.tokens_max", count(0, COUNT_MAX))),
    field("include_reasoning", Route(Kind::Flag)),
    field("causeway", Route(Kind::Flag)),
];

/// What OpenAI's APIs say beside it.
pub const OPENAI: &[Field] = &[
    field("stream_options", Route(Kind::Object)),
    field("user", Recorded(NAME)),
    field("metadata", Recorded(Kind::Object)),
    field("safety_identifier", Recorded(NAME)),
    field("prompt_cache_key", Recorded(NAME)),
    field("prompt_cache_options", Refused("prefixes are cached as long as there is room")),
    field(
        "prompt_cache_retention",
        Only(&[Plain::Word("in_memory")], "prefixes are cached as long as there is room"),
    ),
    field("store", Only(&[Plain::Flag(false)], "answers are not stored for retrieval")),
    field("service_tier", Route(Kind::Word(&["auto", "default", "flex", "priority"]))),
];

/// Parallel choices.
pub const CHOICES: Field = field("n", Route(count(1, 16)));

/// Strings that end an answer.
pub const STOP: Field =
    field("stop", Policy("stop.strings", Kind::Texts { count_max: 64, bytes_max: 1024 }));

/// The temperature; APIs differ in the highest one.
#[must_use]
pub const fn temperature(max: f64) -> Field {
    field("temperature", Policy("shape.temperature", number(0.0, max)))
}

/// The budget by its name; two names may be in one table.
#[must_use]
pub const fn tokens_max(name: &'static str) -> Field {
    field(name, Policy("stop.tokens_max", Kind::Count { min: 1, max: COUNT_MAX }))
}
