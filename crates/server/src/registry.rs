//! Models by their name: loaded when they are first asked for, let go of when room is needed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use causeway_policy::PolicyFile;
use tokio::sync::Mutex;

use crate::driver::Watch;
use crate::effective::Base;
use crate::error::{ApiError, sentence};
use crate::options::Sizing;
use crate::served::{ServeModelError, Served, Watched};
use crate::short::short;
use crate::source::Source;

/// What a model is opened with.
#[derive(Debug)]
struct Rules {
    sizing: Sizing,
    watched: Watched,
    bytes_max: Option<u64>,
}

/// A model that can be asked for, and the model itself while it is in memory.
#[derive(Debug)]
struct Slot {
    source: Source,
    /// What requests to it begin with.
    base: Base,
    served: Mutex<Option<Arc<Served>>>,
    /// When it was last asked for, in nanoseconds of the server's clock.
    used_ns: AtomicU64,
}

/// Every model that this server has a name for.
#[derive(Debug)]
pub(crate) struct Registry {
    slots: Vec<Slot>,
    /// The base of requests to a model that is not known, until they are refused for that.
    nobodys: Base,
    rules: Arc<Rules>,
    /// One model is loaded at a time: each takes all CPUs and much memory.
    loading: Mutex<()>,
}

impl Registry {
    /// A registry of models, none of them in memory yet.
    #[must_use]
    pub(crate) fn new(
        sources: Vec<Source>,
        policy: Option<&PolicyFile>,
        sizing: Sizing,
        bytes_max: Option<u64>,
        watched: Watched,
    ) -> Self {
        let base = |own: Option<&PolicyFile>| policy.map_or_else(|| Base::open(own), Base::fixed);
        let slot = |source: Source| Slot {
            base: base(source.own()),
            source,
            served: Mutex::new(None),
            used_ns: AtomicU64::new(0),
        };
        Self {
            slots: sources.into_iter().map(slot).collect(),
            nobodys: base(None),
            rules: Arc::new(Rules { sizing, watched, bytes_max }),
            loading: Mutex::new(()),
        }
    }

    /// The names that can be asked for, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.slots.iter().map(|slot| slot.source.name())
    }

    /// The name that is meant, which is the first one where none is given; loads nothing.
    ///
    /// # Errors
    /// A name that is not known.
    pub(crate) fn named(&self, name: Option<&str>) -> Result<&str, ApiError> {
        let found = self.names().find(|known| name.is_none_or(|name| name == *known));
        found.ok_or_else(|| self.unknown(name.unwrap_or_default()))
    }

    /// What requests to the model of that name, or to the first one, begin with; loads nothing.
    pub(crate) fn base(&self, name: Option<&str>) -> &Base {
        let mut slots = self.slots.iter();
        let slot = slots.find(|slot| name.is_none_or(|name| name == slot.source.name()));
        slot.map_or(&self.nobodys, |slot| &slot.base)
    }

    /// The model of that name, or the first one where no name is given; loads it if need be.
    ///
    /// # Errors
    /// A name that is not known, or a model that cannot be loaded.
    pub(crate) async fn model(&self, name: Option<&str>) -> Result<Arc<Served>, ApiError> {
        let slot = match name {
            None => self.slots.first(),
            Some(name) => self.slots.iter().find(|slot| slot.source.name() == name),
        };
        let slot = slot.ok_or_else(|| self.unknown(name.unwrap_or_default()))?;
        slot.used_ns.store(self.rules.watched.clock.now_ns(), Ordering::Relaxed);
        // A model whose step loop is gone is loaded again.
        let works = |served: &&Arc<Served>| !served.driver.look().has_ended;
        if let Some(served) = slot.served.lock().await.as_ref().filter(works) {
            return Ok(Arc::clone(served));
        }
        let _one_at_a_time = self.loading.lock().await;
        let mut place = slot.served.lock().await;
        if let Some(served) = place.as_ref().filter(works) {
            return Ok(Arc::clone(served));
        }
        *place = None;
        self.make_room(slot).await?;
        let served = Arc::new(self.load(slot).await.map_err(|error| {
            let name = slot.source.name();
            ApiError::server(format!("`{name}` cannot be loaded: {}", sentence(&error)))
        })?);
        *place = Some(Arc::clone(&served));
        Ok(served)
    }

    /// Loads the first model, so that the first request need not wait for it.
    ///
    /// # Errors
    /// A model that cannot be loaded.
    pub(crate) async fn load_first(&self) -> Result<(), ServeModelError> {
        if let Some(slot) = self.slots.first() {
            let served = self.load(slot).await?;
            *slot.served.lock().await = Some(Arc::new(served));
        }
        Ok(())
    }

    /// Every model in memory.
    pub(crate) async fn loaded(&self) -> Vec<Arc<Served>> {
        let mut loaded = Vec::new();
        for slot in &self.slots {
            // A model that is being loaded is not loaded.
            if let Ok(place) = slot.served.try_lock() {
                loaded.extend(place.clone());
            }
        }
        loaded
    }

    /// Lets go of every model; its loop ends when no request uses it any more.
    pub(crate) async fn clear(&self) -> Vec<Arc<Watch>> {
        let mut loops = Vec::new();
        for slot in &self.slots {
            let served = slot.served.lock().await.take();
            loops.extend(served.map(|served| served.driver.watch()));
        }
        loops
    }

    async fn load(&self, slot: &Slot) -> Result<Served, ServeModelError> {
        let source_name = slot.source.name().to_owned();
        let (source, rules) = (slot.source.clone(), Arc::clone(&self.rules));
        let policy = slot.base.file().clone();
        let load = move || source.open(&policy, &rules.sizing, rules.watched.clone());
        match tokio::task::spawn_blocking(load).await {
            Ok(loaded) => loaded,
            Err(_) => Err(ServeModelError::Panicked { name: source_name }),
        }
    }

    /// Lets go of models that nobody uses, the longest unused first, until the new one fits.
    async fn make_room(&self, wanted: &Slot) -> Result<(), ApiError> {
        let Some(bytes_max) = self.rules.bytes_max else { return Ok(()) };
        let limits = &self.rules.sizing.limits;
        let memory = wanted.source.memory(limits);
        let bytes = memory.total();
        let mut others: Vec<&Slot> =
            self.slots.iter().filter(|slot| !std::ptr::eq(*slot, wanted)).collect();
        others.sort_by_key(|slot| slot.used_ns.load(Ordering::Relaxed));
        // A size is read from the model's file, so once for each.
        let mut loaded = Vec::with_capacity(others.len());
        for slot in others {
            if slot.served.lock().await.is_some() {
                loaded.push((slot, slot.source.memory(limits).total()));
            }
        }
        let mut held: u64 = loaded.iter().map(|&(_, taken)| taken).sum();
        for (slot, taken) in loaded {
            if held + bytes <= bytes_max {
                break;
            }
            let mut place = slot.served.lock().await;
            // Whoever has a request under way holds the model too.
            if place.as_ref().is_some_and(|served| Arc::strong_count(served) == 1) {
                *place = None;
                held -= taken;
            }
        }
        if held == 0 || held + bytes <= bytes_max {
            return Ok(());
        }
        let name = wanted.source.name();
        Err(ApiError::busy(
            format!(
                "`{name}` needs {memory} beside the {held} bytes of models in use, \
                 the limit is {bytes_max}"
            ),
            5,
        ))
    }

    /// What is said of a name that is not known.
    #[must_use]
    pub(crate) fn unknown(&self, name: &str) -> ApiError {
        let known: Vec<&str> = self.names().collect();
        let shown = short(name);
        let error = ApiError::not_found(
            "model_not_found",
            format!("model `{shown}` is not served here, known are `{}`", known.join("`, `")),
        );
        ApiError { param: Some("model".to_owned()), ..error }
    }
}
