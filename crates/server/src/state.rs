//! What all routes share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use causeway_ledger::{CacheKey, Entry, PushError, Stored, Tags, Writer};
use causeway_request::RequestId;
use causeway_session::KvDisk;
use tokio::sync::oneshot;

use crate::accounts::Accounts;
use crate::auth::Auth;
use crate::clock::Clock;
use crate::http::bodies::Bodies;
use crate::kept::Kept;
use crate::observe::Observer;
use crate::observe::metrics::Metrics;
use crate::options::WireLimits;
use crate::registry::Registry;
use crate::results::Results;

/// How long the end of an answer waits for its record to be on the disk.
const STORE_TIME_MAX: Duration = Duration::from_secs(5);

/// The server's own things, one of each.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) clock: Clock,
    pub(crate) registry: Registry,
    pub(crate) accounts: Accounts,
    pub(crate) wire: WireLimits,
    pub(crate) bodies: Bodies,
    pub(crate) silence_max: Duration,
    pub(crate) auth: Arc<dyn Auth>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) ledger: Option<Arc<Writer>>,
    pub(crate) kv_disk: Option<Arc<KvDisk>>,
    /// Answers that may be given again.
    pub(crate) results: Option<Arc<Results>>,
    /// Whether answers are given again where neither request nor policy says.
    pub(crate) results_by_default: bool,
    /// Requests that ended long ago.
    pub(crate) kept: Option<Arc<Kept>>,
    /// Origins whose pages may ask.
    pub(crate) cors_origins: Vec<String>,
    pub(crate) is_closing: AtomicBool,
    pub(crate) next_request: AtomicU64,
    /// Drawn at the start, so that ids of two servers differ.
    pub(crate) boot: u64,
}

impl State {
    /// A number for the engine that no other request of this process has.
    pub(crate) fn request_id(&self) -> RequestId {
        RequestId(self.next_request.fetch_add(1, Ordering::Relaxed))
    }

    /// An id for the wire: nobody guesses another one's.
    pub(crate) fn wire_id(&self, prefix: &str) -> String {
        let drawn = causeway_session::drawn_seed();
        let count = self.next_request.load(Ordering::Relaxed);
        format!("{prefix}-{drawn:014x}{:010x}", (self.boot ^ count) & 0xff_ffff_ffff)
    }

    /// Whether the server is going away.
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed)
    }

    /// Why no request would be answered now; `None` where one would.
    pub(crate) async fn unready(&self) -> Option<String> {
        if self.is_closing() {
            return Some("the server is shutting down".to_owned());
        }
        let loaded = self.registry.loaded().await;
        if loaded.is_empty() {
            return Some("no model is loaded".to_owned());
        }
        let now_ns = self.clock.now_ns();
        for model in loaded {
            let (name, look) = (&model.about.model.name, model.driver.look());
            if look.has_ended {
                return Some(format!("the step loop of `{name}` has ended"));
            }
            let silent = Duration::from_nanos(look.silent_ns(now_ns));
            if silent > self.silence_max {
                let (silent_ms, max_ms) = (silent.as_millis(), self.silence_max.as_millis());
                return Some(format!(
                    "the step loop of `{name}` has been silent for {silent_ms} ms, \
                     the limit is {max_ms} ms"
                ));
            }
        }
        None
    }

    /// Hands a record to the ledger and waits until it is on the disk, so that nobody is told of
    /// a record that a crash can lose; false where there is no ledger, or none that can write.
    pub(crate) async fn keep(
        &self,
        stored: Stored,
        tags: Tags,
        cache_key: Option<CacheKey>,
    ) -> bool {
        let Some(writer) = &self.ledger else { return false };
        let mut entry = Entry::from(stored);
        entry.tags = tags;
        entry.cache_key = cache_key;
        let (tell, told) = oneshot::channel();
        // Whoever waited may have given up.
        let on_stored = move |outcome: causeway_ledger::StoreOutcome| {
            let _ = tell.send(outcome.is_ok());
        };
        let told = match writer.try_push_then(entry, on_stored) {
            Ok(()) => told,
            Err(PushError::Closed { .. }) => return false,
            Err(full) => {
                let (tell, told) = oneshot::channel();
                let (writer, entry) = (Arc::clone(writer), full.into_entry());
                // It waits for room: a record is never dropped, and no step waits for it.
                tokio::task::spawn_blocking(move || {
                    let _ = writer.push_then(entry, move |outcome| {
                        let _ = tell.send(outcome.is_ok());
                    });
                });
                told
            }
        };
        matches!(tokio::time::timeout(STORE_TIME_MAX, told).await, Ok(Ok(true)))
    }
}
