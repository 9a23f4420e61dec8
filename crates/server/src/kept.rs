//! Requests that ended long ago, as the ledger tells of them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use causeway_ledger::{Filter, Stop, Store, StoreError, Stored};
use serde_json::{Value, json};

/// Most records that one id is looked for in: an id that clients give may come again.
const RECORDS_MAX: usize = 64;

/// The ledger, open to look requests up.
#[derive(Debug)]
pub(crate) struct Kept(Mutex<Store>);

impl Kept {
    pub(crate) fn new(store: Store) -> Self {
        Self(Mutex::new(store))
    }

    /// The account of a request by its id; `None` where there is none, or it is another's.
    ///
    /// # Errors
    /// A ledger that cannot be read, or a row that is not what was written.
    pub(crate) fn find(&self, id: &str, owner: Option<&str>) -> Result<Option<Value>, StoreError> {
        let store = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let filter = Filter {
            request_id: Some(id.to_owned()),
            owner: owner.map(str::to_owned),
            limit: Some(RECORDS_MAX),
            ..Filter::default()
        };
        // Newest first, so that of an id that came twice the later request is told of.
        let mut newest = BTreeMap::new();
        for listed in store.list(&filter)? {
            newest.entry(listed.choice).or_insert(listed.id);
        }
        let stored = newest.values().map(|id| store.find(&id.to_string()));
        let choices = stored.collect::<Result<Vec<Stored>, StoreError>>()?;
        Ok(choices.first().map(|first| request(id, first, &choices)))
    }
}

/// The request in the words of a live one.
fn request(id: &str, first: &Stored, choices: &[Stored]) -> Value {
    json!({
        "id": id,
        "object": "request",
        "created": first.record.end.account.times.scheduled_unix_ms / 1_000,
        "model": first.record.start.model.name,
        "state": "ended",
        "choices": choices.iter().map(choice).collect::<Vec<_>>(),
    })
}

/// One choice; what no record holds is left out.
fn choice(stored: &Stored) -> Value {
    let record = &stored.record;
    let (effective, end) = (&record.start.request.effective, &record.end);
    let tokens = &end.account.tokens;
    let room = effective.context_len.saturating_sub(tokens.prompt).min(effective.tokens_max);
    json!({
        "index": effective.choice,
        "state": "ended",
        "stop": end.stop,
        "cancelled_by": match &end.stop {
            Stop::Cancelled { by, .. } => Some(by.name()),
            _ => None,
        },
        "steps": tokens.prefix,
        "billed": { "prompt_tokens": tokens.prompt, "completion_tokens": tokens.prefix },
        "unscheduled_steps": room.saturating_sub(tokens.prefix),
        "tokens": {
            "prompt": tokens.prompt,
            "prefilled": tokens.prefilled,
            "cached": tokens.cached,
            "completion": tokens.prefix,
            "forced": tokens.forced,
            "reasoning": tokens.reasoning,
            "visible": tokens.visible,
        },
        "passes": end.account.passes,
        "times": end.account.times,
        "record": stored.id.to_string(),
        "stored": true,
        "result_cache": false,
    })
}
