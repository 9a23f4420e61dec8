//! What goes into a ledger, and what a list of it shows.

use serde::Serialize;

use crate::{CacheKey, End, Model, Passes, Record, Request, Sha256, Start, Stored, Times, Tokens};

/// A finished record on its way into the store.
#[derive(Debug, Clone)]
pub struct Entry {
    pub(crate) record: Record,
    /// Id and answer hash, where the caller knows them already.
    pub(crate) hashes: Option<(Sha256, Sha256)>,
    /// What is known of the request beside its record.
    pub tags: Tags,
    /// Where given, and where the run came to an end of its own, the answer may be given again
    /// to whoever asks under this key.
    pub cache_key: Option<CacheKey>,
}

/// What is known of a request beside its record; none of it is covered by the record's id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Tags {
    /// The id under which the server answered, the same for all choices of one request.
    pub request_id: Option<String>,
    /// Who asked: the name of an API key, never the key.
    pub owner: Option<String>,
    /// The conversation that the request belongs to, as the client names it.
    pub session: Option<String>,
}

impl From<Record> for Entry {
    /// Leaves the hashes to the writer's thread.
    fn from(record: Record) -> Self {
        Self { record, hashes: None, tags: Tags::default(), cache_key: None }
    }
}

impl From<Stored> for Entry {
    /// Takes over the hashes, which must be those of the record.
    fn from(stored: Stored) -> Self {
        let Stored { record, id, answer_hash } = stored;
        let hashes = Some((id, answer_hash));
        Self { record, hashes, tags: Tags::default(), cache_key: None }
    }
}

impl Stored {
    /// A record beside its hashes, computed here: about 1 ms for 200 steps.
    #[must_use]
    pub fn new(record: Record) -> Self {
        Self { id: record.id(), answer_hash: record.answer_hash(), record }
    }
}

/// A record as a list shows it: what it can be filtered by, and what it cost.
///
/// Numbers above 2^63 − 1 are listed as that number; the record itself has them exactly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    pub id: Sha256,
    pub answer_hash: Sha256,
    #[serde(flatten)]
    pub tags: Tags,
    /// The name the model was asked for by.
    pub model: String,
    pub model_sha256: Sha256,
    /// The policy's own name, where it has one.
    pub policy: Option<String>,
    pub policy_sha256: Sha256,
    pub choice: u32,
    /// The stop reason's name alone.
    pub stop: String,
    pub tokens: Tokens,
    pub passes: Passes,
    pub times: ListedTimes,
}

/// The times of a listed record; see `Times`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ListedTimes {
    pub scheduled_unix_ms: u64,
    pub queued_ns: u64,
    pub ttft_ns: Option<u64>,
    pub tpot_ns: Option<u64>,
    pub total_ns: u64,
}

impl Listed {
    /// What a list shows of a record with these hashes.
    pub(crate) fn of(record: &Record, (id, answer_hash): (Sha256, Sha256), tags: Tags) -> Self {
        let Record { start, steps: _, end } = record;
        let Start { request, model, numerics: _, template: _, policy, conditions: _ } = start;
        let Request { id: _, received: _, effective } = request;
        let Model { name, sha256, .. } = model;
        let End { stop, text: _, account, fields: _, open_field: _ } = end;
        let Times { scheduled_unix_ms, queued_ns, ttft_ns, tpot_ns, total_ns, .. } = account.times;
        let Tokens { prompt, prefilled, cached, prefix, forced, reasoning, visible } =
            account.tokens;
        let Passes { prefill, decode } = account.passes;
        let whole = |number: u64| number.min(i64::MAX.unsigned_abs());
        Self {
            id,
            answer_hash,
            tags,
            model: name.clone(),
            model_sha256: *sha256,
            policy: policy_name(&policy.canonical),
            policy_sha256: policy.sha256,
            choice: effective.choice,
            stop: stop.name().to_owned(),
            tokens: Tokens {
                prompt: whole(prompt),
                prefilled: whole(prefilled),
                cached: whole(cached),
                prefix: whole(prefix),
                forced: whole(forced),
                reasoning: whole(reasoning),
                visible: whole(visible),
            },
            passes: Passes { prefill: whole(prefill), decode: whole(decode) },
            times: ListedTimes {
                scheduled_unix_ms: whole(scheduled_unix_ms),
                queued_ns: whole(queued_ns),
                ttft_ns: ttft_ns.map(whole),
                tpot_ns: tpot_ns.map(whole),
                total_ns: whole(total_ns),
            },
        }
    }
}

/// The name in a policy's canonical JSON, where there is one.
fn policy_name(canonical: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        name: Option<String>,
    }
    serde_json::from_str::<Named>(canonical).ok()?.name
}
