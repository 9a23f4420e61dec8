//! The driver: one thread that owns the engine and turns commands into steps.
//!
//! Between two steps it takes what came, it steps while there is work, and it sleeps while there
//! is none. Each request's outputs go into a channel of its own, which never makes it wait: text
//! and JSON are made elsewhere.

mod budget;
mod guard;
mod turns;
mod watch;

use std::sync::Arc;
use std::sync::mpsc;

use causeway_engine::{Engine, Forward, Limits, PassAccount, Refusal, Submission};
use causeway_request::{Canceller, Priority, RequestId, StepOutput, StopReason};
use causeway_session::KvDisk;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::observe::Observer;

pub use guard::{GuardError, Guarded};
pub use watch::{Look, Watch};

/// Where the outputs of a request go: unbounded, since the driver may not wait. A run sends at
/// most `tokens_max` steps, and the context bounds those.
pub type Outlet = UnboundedSender<Delivered>;

/// What the driver is asked for.
#[derive(Debug)]
enum Command {
    /// Several requests, or none of them: the parallel choices of one prompt.
    Submit {
        jobs: Vec<(Submission, Outlet)>,
        taken: oneshot::Sender<Result<(), Refusal>>,
    },
    Cancel {
        id: RequestId,
        by: Canceller,
    },
    /// Its text came to an end.
    End {
        id: RequestId,
        stop: StopReason,
    },
    SetPriority {
        id: RequestId,
        priority: Priority,
    },
}

/// What a request is told while the engine has it; `Ended` is the last word.
#[derive(Debug)]
pub enum Delivered {
    /// A pass computed a part of its prompt.
    Prefilled {
        computed: usize,
        known: usize,
    },
    Step(StepOutput),
    Ended(Box<Spent>),
}

/// Why a run ended, and what it took.
#[derive(Debug, Clone)]
pub struct Spent {
    pub stop: StopReason,
    pub account: PassAccount,
    /// Most requests that any of its passes computed together.
    pub occupancy_max: usize,
    /// When it ended, in nanoseconds of the server's clock.
    pub ended_ns: u64,
}

/// What a driver is given beside its model.
#[derive(Debug, Clone)]
pub struct Around {
    /// The model's name, for those who watch.
    pub name: String,
    pub pace: Pace,
    pub clock: Clock,
    pub observer: Arc<dyn Observer>,
    /// Where idle prefixes go; a model without a hash of its own has none.
    pub kv_disk: Option<Arc<KvDisk>>,
}

/// The way to a driver; when the last one is dropped, the thread ends once its requests have.
#[derive(Debug)]
pub struct Driver {
    commands: mpsc::Sender<Command>,
    watch: Arc<Watch>,
}

/// How long a pass may take, and how large it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Longest that a pass should take while answers are under way.
    pub itl_target_ns: Option<u64>,
    pub limits: Limits,
}

impl Driver {
    /// Starts the thread around a model.
    ///
    /// # Errors
    /// A system that gives no more threads.
    pub fn start<F>(model: F, around: Around) -> std::io::Result<Self>
    where
        F: Forward + Send + 'static,
    {
        let (commands, taken) = mpsc::channel();
        let watch = Arc::new(Watch::default());
        let seen = Arc::clone(&watch);
        let run = move || {
            let _presence = watch::Presence(Arc::clone(&seen));
            let Limits { model_key, prefix_cache, .. } = around.pace.limits;
            let mut engine = Engine::new(Guarded(model), around.pace.limits);
            if let Some(disk) = around.kv_disk.as_ref().filter(|_| prefix_cache)
                && model_key != [0; 32]
            {
                engine.set_shelf(disk.shelf());
            }
            turns::Turns::new(engine, around, seen).run(&taken);
        };
        std::thread::Builder::new().name("driver".to_owned()).spawn(run)?;
        Ok(Self { commands, watch })
    }

    /// Hands over the choices of one request; the answer comes between two steps. A driver that
    /// is gone drops it.
    #[must_use]
    pub fn submit(
        &self,
        jobs: Vec<(Submission, Outlet)>,
    ) -> oneshot::Receiver<Result<(), Refusal>> {
        let (taken, answer) = oneshot::channel();
        self.send(Command::Submit { jobs, taken });
        answer
    }

    /// Asks for the end of a request; nothing happens where it has ended.
    pub fn cancel(&self, id: RequestId, by: Canceller) {
        self.send(Command::Cancel { id, by });
    }

    /// Ends a request whose text is complete.
    pub fn end(&self, id: RequestId, stop: StopReason) {
        self.send(Command::End { id, stop });
    }

    /// Makes a request more or less urgent.
    pub fn set_priority(&self, id: RequestId, priority: Priority) {
        self.send(Command::SetPriority { id, priority });
    }

    /// What the loop shows of itself.
    #[must_use]
    pub fn look(&self) -> Look {
        self.watch.look()
    }

    /// The loop's own sign of life, for those who see it end.
    pub(crate) fn watch(&self) -> Arc<Watch> {
        Arc::clone(&self.watch)
    }

    /// A thread that is gone has dropped its outlets, and that is how each request learns of it.
    fn send(&self, command: Command) {
        let _ = self.commands.send(command);
    }
}
