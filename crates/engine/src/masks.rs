//! Masks are worked out beside the pass whose rows they are for.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, ScopedJoinHandle, scope};

use causeway_policy::Guide;
use causeway_request::RequestId;

use crate::run::Run;

/// The guides of runs that choose in the pass to come.
pub(crate) struct Masks(Mutex<BTreeMap<RequestId, Box<dyn Guide>>>);

/// Guides that a thread prepares, until they are given back.
pub(crate) struct Preparing<'s> {
    masks: &'s Masks,
    thread: Option<ScopedJoinHandle<'s, ()>>,
}

impl Masks {
    /// Takes the guides of `ids` that have masks out of their runs.
    pub(crate) fn of(
        runs: &mut BTreeMap<RequestId, Run>,
        ids: impl Iterator<Item = RequestId>,
    ) -> Self {
        let take = |id| Some((id, runs.get_mut(&id)?.take_mask()?));
        Self(Mutex::new(ids.filter_map(take).collect()))
    }

    /// The requests whose guides they are.
    pub(crate) fn ids(&self) -> Vec<RequestId> {
        self.lock().keys().copied().collect()
    }

    /// Prepares the guides while `work` runs, which gives them back once it needs them.
    ///
    /// A system that has no thread to give leaves the work to whoever asks for a mask.
    pub(crate) fn beside<T>(&self, work: impl FnOnce(&mut Preparing<'_>) -> T) -> T {
        if self.lock().is_empty() {
            return work(&mut Preparing { masks: self, thread: None });
        }
        scope(|scope| {
            let prepare = || self.lock().values_mut().for_each(|guide| prepared(&mut **guide));
            let thread = Builder::new().name("causeway-masks".to_owned());
            let thread = thread.spawn_scoped(scope, prepare).ok();
            work(&mut Preparing { masks: self, thread })
        })
    }

    /// Puts the guides back into their runs.
    pub(crate) fn put_back(&self, runs: &mut BTreeMap<RequestId, Run>) {
        for (id, guide) in std::mem::take(&mut *self.lock()) {
            if let Some(run) = runs.get_mut(&id) {
                run.set_guide(guide);
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<RequestId, Box<dyn Guide>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Preparing<'_> {
    /// Waits for the thread and puts the guides back into their runs.
    ///
    /// Gives the nanoseconds that it waited, 0 where the masks were ready; `None` where no thread
    /// prepared any.
    pub(crate) fn give_back(
        &mut self,
        runs: &mut BTreeMap<RequestId, Run>,
        now_ns: &mut dyn FnMut() -> u64,
    ) -> Option<u64> {
        let waited_ns = self.thread.take().map(|thread| {
            let from_ns = (!thread.is_finished()).then(&mut *now_ns);
            // A panic of one guide was caught, and says itself again when the mask is asked for.
            let _ = thread.join();
            from_ns.map_or(0, |from_ns| now_ns().saturating_sub(from_ns))
        });
        self.masks.put_back(runs);
        waited_ns
    }
}

fn prepared(guide: &mut dyn Guide) {
    let _ = catch_unwind(AssertUnwindSafe(|| guide.prepare()));
}
