//! Requests by their id: what they are doing, and what they took once they have ended.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use causeway_request::{Canceller, RequestId, StopReason};
use serde_json::{Value, json};

use crate::event::Ended;
use crate::served::Served;
use crate::wire;

/// Most requests that have ended and are still told of.
pub(crate) const ENDED_MAX: usize = 4_096;

/// One choice as it goes on; written by its run, read by anybody.
#[derive(Debug, Default)]
pub(crate) struct Progress(Mutex<Stage>);

#[derive(Debug, Default, Clone)]
struct Stage {
    computed: usize,
    known: usize,
    steps: u32,
    /// The account, as text: thousands are kept, and as trees they would lie in a hundred small
    /// pieces each, ten times as large and between everything else that comes and goes.
    ended: Option<Box<str>>,
}

impl Progress {
    pub(crate) fn prefilled(&self, computed: usize, known: usize) {
        self.with(|stage| (stage.computed, stage.known) = (computed, known));
    }

    pub(crate) fn step(&self) {
        self.with(|stage| stage.steps += 1);
    }

    pub(crate) fn ended(&self, ended: &Ended) {
        let account = account(ended).to_string().into();
        self.with(|stage| stage.ended = Some(account));
    }

    /// Its run is gone without an account.
    pub(crate) fn lost(&self, message: &str) {
        let stop = json!({ "reason": "error", "message": message });
        self.with(|stage| {
            stage.ended.get_or_insert_with(|| json!({ "stop": stop }).to_string().into());
        });
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.with(|stage| stage.ended.is_some())
    }

    fn with<T>(&self, change: impl FnOnce(&mut Stage) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn look(&self) -> Stage {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn to_json(&self) -> Value {
        let Stage { computed, known, steps, ended } = self.look();
        if let Some(ended) = ended {
            return serde_json::from_str(&ended).expect("invariant: written from a value");
        }
        let stage = match (computed, steps) {
            (0, 0) => "queued",
            (_, 0) => "prefill",
            _ => "decode",
        };
        json!({ "state": stage, "steps": steps, "prefill": { "computed": computed, "known": known } })
    }
}

/// The account of a choice that has ended.
fn account(ended: &Ended) -> Value {
    let Ended { stop, account, fields, passes, overrun, record, stored, is_given_again } = ended;
    let mut told = json!({
        "state": "ended",
        "stop": wire::stop(stop),
        "cancelled_by": match stop {
            StopReason::Cancelled { by, .. } => Some(wire::canceller(*by)),
            _ => None,
        },
        "steps": account.tokens.prefix,
        "billed": { "prompt_tokens": account.tokens.prompt, "completion_tokens": account.tokens.prefix },
        "unscheduled_steps": passes.unscheduled_steps,
        "tokens": wire::tokens(account),
        "passes": wire::passes(account, passes, *overrun),
        "times": account.times,
        "record": record.to_string(),
        "stored": stored,
        "result_cache": is_given_again,
    });
    wire::put_fields(&mut told, fields.as_ref());
    told
}

/// One request and its choices.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) created: u64,
    pub(crate) model: String,
    /// The model itself may be gone once the request has ended.
    pub(crate) served: Weak<Served>,
    pub(crate) choices: Vec<(RequestId, Arc<Progress>)>,
    /// Whose request it is; requests of others are not told of.
    pub(crate) owner: String,
}

/// All requests that run, and the last that have ended.
#[derive(Debug, Default)]
pub(crate) struct Accounts(Arc<Mutex<Book>>);

#[derive(Debug, Default)]
struct Book {
    entries: BTreeMap<String, Entry>,
    /// In order of arrival.
    order: VecDeque<String>,
    /// Ids of requests that are on their way in.
    claimed: BTreeSet<String>,
}

/// An id that no other request can take while this lives.
#[derive(Debug)]
pub(crate) struct Claim {
    book: Arc<Mutex<Book>>,
    pub(crate) id: String,
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        book.claimed.remove(&self.id);
    }
}

impl Accounts {
    /// Takes an id for a request on its way in; `None` where another request has it.
    pub(crate) fn claim(&self, id: &str) -> Option<Claim> {
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = !book.entries.contains_key(id) && book.claimed.insert(id.to_owned());
        is_free.then(|| Claim { book: Arc::clone(&self.0), id: id.to_owned() })
    }

    /// Adds a request; the oldest that have ended make room.
    pub(crate) fn add(&self, entry: Entry) {
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        book.order.push_back(entry.id.clone());
        book.entries.insert(entry.id.clone(), entry);
        // Requests that run are limited elsewhere, so that this ends.
        let mut left = book.order.len();
        while book.order.len() > ENDED_MAX && left > 0 {
            left -= 1;
            let Some(oldest) = book.order.pop_front() else { return };
            let has_ended = book.entries.get(&oldest).is_none_or(Entry::has_ended);
            if has_ended {
                book.entries.remove(&oldest);
            } else {
                book.order.push_back(oldest);
            }
        }
    }

    /// The request of that id.
    pub(crate) fn find(&self, id: &str) -> Option<Entry> {
        let book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        book.entries.get(id).cloned()
    }

    /// Every request that has not ended.
    pub(crate) fn live(&self) -> Vec<Entry> {
        let book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        book.entries.values().filter(|entry| !entry.has_ended()).cloned().collect()
    }
}

impl Entry {
    pub(crate) fn has_ended(&self) -> bool {
        self.choices.iter().all(|(_, progress)| progress.has_ended())
    }

    /// Asks for the end of every choice.
    pub(crate) fn cancel(&self, by: Canceller) {
        let Some(served) = self.served.upgrade() else { return };
        for (id, _) in &self.choices {
            served.driver.cancel(*id, by);
        }
    }

    /// The request as the wire tells of it.
    pub(crate) fn to_json(&self) -> Value {
        let choice = |(index, (_, progress)): (usize, &(RequestId, Arc<Progress>))| {
            let mut choice = progress.to_json();
            if let Some(fields) = choice.as_object_mut() {
                fields.insert("index".to_owned(), json!(index));
            }
            choice
        };
        json!({
            "id": self.id,
            "object": "request",
            "created": self.created,
            "model": self.model,
            "state": if self.has_ended() { "ended" } else { "live" },
            "choices": self.choices.iter().enumerate().map(choice).collect::<Vec<_>>(),
        })
    }
}
