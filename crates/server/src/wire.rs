//! Words that every API of the server shares: stop reasons, usage, the extension object.

use causeway_engine::PassAccount;
use causeway_ledger::FieldsAccount;
use causeway_ledger::{Account, CancelledBy, Stop};
use causeway_request::{Canceller, StopReason};
use serde_json::{Value, json};

use crate::event::Ended;

/// The stop reason as records write it.
#[must_use]
pub(crate) fn stop(stop: &StopReason) -> Value {
    serde_json::to_value(Stop::from(stop)).unwrap_or_default()
}

/// Who asked for an end, as records write it.
#[must_use]
pub(crate) fn canceller(by: Canceller) -> &'static str {
    CancelledBy::from(by).name()
}

/// OpenAI's `finish_reason`; a reason that OpenAI has no word for keeps its own.
#[must_use]
pub(crate) fn finish_reason(stop: &StopReason) -> &'static str {
    match stop {
        StopReason::Eos { .. }
        | StopReason::StopToken { .. }
        | StopReason::StopString { .. }
        | StopReason::SchemaComplete => "stop",
        StopReason::MaxTokens { .. } | StopReason::ContextFull { .. } => "length",
        StopReason::Cancelled { .. } | StopReason::Deadline { .. } | StopReason::Error { .. } => {
            stop.name()
        }
    }
}

/// Tokens by what they were.
#[must_use]
pub(crate) fn tokens(account: &Account) -> Value {
    let tokens = &account.tokens;
    json!({
        "prompt": tokens.prompt,
        "prefilled": tokens.prefilled,
        "cached": tokens.cached,
        "completion": tokens.prefix,
        "forced": tokens.forced,
        "reasoning": tokens.reasoning,
        "visible": tokens.visible,
    })
}

/// Passes by what they computed; `overrun` tokens were chosen after the text was complete, and
/// of those that were `drafted` beside the newest one the `accepted` were then chosen.
#[must_use]
pub(crate) fn passes(account: &Account, passes: &PassAccount, overrun: u64) -> Value {
    json!({
        "prefill": account.passes.prefill,
        "decode": account.passes.decode,
        "preemptions": passes.preemptions,
        "overrun": overrun,
        "drafted": passes.drafted_tokens,
        "accepted": passes.accepted_tokens,
    })
}

/// Prompt and completion tokens over all choices; the prompt is billed once.
#[must_use]
pub(crate) fn usage(ended: &[&Ended]) -> Value {
    let sum = |of: fn(&Account) -> u64| ended.iter().map(|one| of(&one.account)).sum::<u64>();
    let prompt = ended.first().map_or(0, |one| one.account.tokens.prompt);
    let cached = ended.first().map_or(0, |one| one.account.tokens.cached);
    let completion = sum(|account| account.tokens.prefix);
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": { "cached_tokens": cached },
        "completion_tokens_details": { "reasoning_tokens": sum(|account| account.tokens.reasoning) },
    })
}

/// A logarithm as JSON can hold it: what the raw logits rule out is OpenAI's -9999.
#[must_use]
pub(crate) fn logprob(logprob: f64) -> Value {
    json!(if logprob.is_finite() { logprob } else { -9999.0 })
}

/// What the extension says of one choice.
#[must_use]
pub(crate) fn choice(index: u32, ended: &Ended) -> Value {
    let mut choice = json!({
        "index": index,
        "record": ended.record.to_string(),
        "stored": ended.stored,
        "result_cache": ended.is_given_again,
        "stop": stop(&ended.stop),
        "tokens": tokens(&ended.account),
        "passes": passes(&ended.account, &ended.passes, ended.overrun),
    });
    put_fields(&mut choice, ended.fields.as_ref());
    choice
}

/// Says what each field of an answer took, where the answer has fields.
pub(crate) fn put_fields(told: &mut Value, account: Option<&FieldsAccount>) {
    if let Some(FieldsAccount { fields, open }) = account {
        told["fields"] = json!(fields);
        told["open_field"] = json!(open);
    }
}
