//! Masks are worked out beside the pass whose rows they are for.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;

use causeway_policy::Guide;
use causeway_request::RequestId;

use crate::run::Run;

/// Guides of runs that choose in the pass to come.
type Guides = Vec<(RequestId, Box<dyn Guide>)>;

/// Has guides prepared while a pass computes, on a thread that starts with the first of them.
#[derive(Debug, Default)]
pub(crate) struct Masks {
    thread: Option<Thread>,
    /// Whether guides are with the thread.
    are_out: bool,
}

/// Both ends of a thread that prepares what it is sent and sends it back; it ends with them.
#[derive(Debug)]
struct Thread {
    to: Sender<Guides>,
    from: Receiver<Guides>,
}

/// Whose masks a pass used, and the nanoseconds that it waited for them: 0 where they were ready.
#[derive(Debug)]
pub(crate) struct Waited {
    pub(crate) ids: Vec<RequestId>,
    pub(crate) ns: u64,
}

impl Masks {
    /// Takes the guides of `ids` that have masks out of their runs and has them prepared.
    ///
    /// A system that has no thread to give leaves the work to whoever asks for a mask.
    pub(crate) fn begin(
        &mut self,
        runs: &mut BTreeMap<RequestId, Run>,
        ids: impl Iterator<Item = RequestId>,
    ) {
        // A pass that panicked left its guides with the thread.
        put_back(self.receive(), runs);
        let guides: Guides =
            ids.filter_map(|id| Some((id, runs.get_mut(&id)?.take_mask()?))).collect();
        if guides.is_empty() {
            return;
        }
        match self.thread.get_or_insert_with(Thread::start).to.send(guides) {
            Ok(()) => self.are_out = true,
            Err(unsent) => put_back(unsent.0, runs),
        }
    }

    /// Waits for the guides and puts them back into their runs; `None` where none were prepared.
    pub(crate) fn end(
        &mut self,
        runs: &mut BTreeMap<RequestId, Run>,
        now_ns: &mut dyn FnMut() -> u64,
    ) -> Option<Waited> {
        let ready = self.thread.as_ref().filter(|_| self.are_out)?.from.try_recv();
        let (guides, ns) = if let Ok(guides) = ready {
            self.are_out = false;
            (guides, 0)
        } else {
            let from_ns = now_ns();
            let guides = self.receive();
            (guides, now_ns().saturating_sub(from_ns))
        };
        let ids = guides.iter().map(|(id, _)| *id).collect();
        put_back(guides, runs);
        Some(Waited { ids, ns })
    }

    /// What is with the thread, once it is prepared.
    fn receive(&mut self) -> Guides {
        let Some(thread) = self.thread.as_ref().filter(|_| self.are_out) else { return Vec::new() };
        self.are_out = false;
        // A run must not go on without its guide.
        thread.from.recv().expect("invariant: the thread lives as long as it is sent guides")
    }
}

impl Thread {
    fn start() -> Self {
        let ((to, due), (done, from)) = (channel::<Guides>(), channel());
        let prepare = move || {
            for mut guides in due {
                guides.iter_mut().for_each(|(_, guide)| prepared(&mut **guide));
                if done.send(guides).is_err() {
                    break;
                }
            }
        };
        // Where it cannot start, both channels are closed, which is what the sender learns.
        let _ = Builder::new().name("causeway-masks".to_owned()).spawn(prepare);
        Self { to, from }
    }
}

fn put_back(guides: Guides, runs: &mut BTreeMap<RequestId, Run>) {
    for (id, guide) in guides {
        if let Some(run) = runs.get_mut(&id) {
            run.set_guide(guide);
        }
    }
}

/// A panic of one guide is kept from the others, and says itself again when the mask is asked for.
fn prepared(guide: &mut dyn Guide) {
    let _ = catch_unwind(AssertUnwindSafe(|| guide.prepare()));
}
