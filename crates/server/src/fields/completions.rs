//! The fields of `POST /v1/completions`.

use super::Rule::{Only, Refused, Route};
use super::shared::{
    CHOICES, DELIVERY, FORMS, OPENAI, SAMPLING, STOP, STOPPING, field, temperature, tokens_max,
};
use super::{Field, Kind, Plain, Table};

/// Most of the best tokens that are told beside each token.
pub const LOGPROBS_MAX: u64 = 20;

const OWN: &[Field] = &[
    field("prompt", Route(Kind::Any)),
    CHOICES,
    STOP,
    temperature(2.0),
    tokens_max("max_tokens"),
    field("echo", Route(Kind::Flag)),
    field("logprobs", Route(Kind::Count { min: 0, max: LOGPROBS_MAX })),
    field("best_of", Only(&[Plain::Count(1)], "every choice asked for by `n` is given")),
    field("suffix", Refused("text is continued, not filled in")),
    field("prompt_logprobs", Refused("only tokens of the answer have logprobs")),
];

/// Everything that a completion may hold.
pub const COMPLETIONS: Table = &[OWN, SAMPLING, STOPPING, FORMS, DELIVERY, OPENAI];
