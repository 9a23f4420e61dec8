//! A server from its first socket to its last answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use causeway_request::Canceller;
use causeway_session::{KvDisk, threads_by_default};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{oneshot, watch};

use crate::accounts::Accounts;
use crate::clock::Clock;
use crate::driver::Watch;
use crate::http::bodies::Bodies;
use crate::http::{app, listen};
use crate::kept::Kept;
use crate::observe::metrics::Metrics;
use crate::observe::{All, Observer};
use crate::options::{Operation, Options};
use crate::registry::Registry;
use crate::results::Results;
use crate::served::{ServeModelError, Watched};
use crate::state::State;

/// How long requests that were cancelled may take to write their accounts.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How long prefixes may take to be put away.
const SHELVING: Duration = Duration::from_secs(60);
/// Between two looks at what is still under way.
const LOOK: Duration = Duration::from_millis(20);

/// Why a server could not begin.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("{addr} is not a loopback address, and no API keys are configured")]
    OpenAddress { addr: SocketAddr },
    #[error("no model is given")]
    NoModel,
    #[error("the policy sets `delivery.result_cache`, but no records are kept to give again")]
    NoRecords,
    #[error(transparent)]
    Model(#[from] ServeModelError),
    #[error("cannot listen on {addr}")]
    Listen { addr: SocketAddr, source: std::io::Error },
    #[error("records were lost at the end")]
    Ledger { source: causeway_ledger::CloseError },
    #[error("the system gives no threads or signals")]
    System { source: std::io::Error },
}

impl ServeError {
    /// Whether other flags would do.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        match self {
            Self::OpenAddress { .. } | Self::NoModel | Self::NoRecords => true,
            Self::Model(error) => error.is_callers_mistake(),
            Self::Listen { .. } | Self::Ledger { .. } | Self::System { .. } => false,
        }
    }
}

/// What ends a server.
#[derive(Debug)]
pub enum Stop {
    /// SIGINT or SIGTERM; a second one ends what is still under way.
    Signals,
    /// The other end of a channel, used or dropped.
    Channel(oneshot::Receiver<()>),
}

/// Serves until it is stopped; `listening` is told the address once requests can come.
///
/// # Errors
/// What kept it from beginning.
pub fn serve(
    options: Options,
    stop: Stop,
    listening: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    let addr = options.addr;
    if !addr.ip().is_loopback() && !options.auth.has_keys() {
        return Err(ServeError::OpenAddress { addr });
    }
    if options.models.is_empty() {
        return Err(ServeError::NoModel);
    }
    let by_policy = options.policy.as_ref().and_then(|policy| policy.operation.result_cache);
    if by_policy == Some(true) && options.results.is_none() {
        return Err(ServeError::NoRecords);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(wire_threads())
        .thread_name("server")
        .enable_all()
        .build()
        .map_err(|source| ServeError::System { source })?;
    let served = runtime.block_on(run(options, stop, listening));
    // Whoever still computes would be waited for otherwise.
    runtime.shutdown_timeout(Duration::from_secs(1));
    served
}

/// Threads that carry text between the engines and the sockets. They take the CPUs that compute:
/// of two on two CPUs, each token woke one after the other, 2 to 3 % of a full server's time.
fn wire_threads() -> usize {
    const CPUS_OF_A_THREAD: usize = 8;
    threads_by_default().0.div_ceil(CPUS_OF_A_THREAD)
}

async fn run(
    options: Options,
    stop: Stop,
    listening: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    let (addr, limits, drain) = (options.addr, options.limits, options.drain);
    let unheard = |source| ServeError::Listen { addr, source };
    let listener = TcpListener::bind(addr).await.map_err(unheard)?;
    let bound = listener.local_addr().map_err(unheard)?;
    let mut stops = Stops::new(stop).map_err(|source| ServeError::System { source })?;
    let (ledger, observer) = (options.ledger.clone(), Arc::clone(&options.observer));
    let state = Arc::new(state_of(options));
    state.registry.load_first().await?;
    let (closing, is_closing) = watch::channel(false);
    let app = app::app(Arc::clone(&state));
    let accepting = tokio::spawn(listen::accept(listener, app, limits, is_closing));
    listening(bound);
    stops.wait().await;
    state.is_closing.store(true, Ordering::Relaxed);
    tokio::select! {
        () = quiet(&state) => {}
        () = tokio::time::sleep(drain) => {}
        () = stops.wait() => {}
    }
    for entry in state.accounts.live() {
        entry.cancel(Canceller::Shutdown);
    }
    let _ = tokio::time::timeout(LAST_WORDS, quiet(&state)).await;
    let _ = closing.send(true);
    let _ = accepting.await;
    let (loops, kv_disk) = (state.registry.clear().await, state.kv_disk.clone());
    drop(state);
    if let Some(kv_disk) = kv_disk {
        tokio::select! {
            () = shelved(&loops, kv_disk) => {}
            () = tokio::time::sleep(SHELVING) => {}
            () = stops.wait() => {}
        }
    }
    let said = tokio::task::spawn_blocking(move || observer.close()).await;
    said.expect("invariant: observers do not panic");
    match ledger {
        Some(ledger) => {
            let closed = tokio::task::spawn_blocking(move || ledger.close()).await;
            let closed = closed.expect("invariant: closing a ledger does not panic");
            closed.map(drop).map_err(|source| ServeError::Ledger { source })
        }
        None => Ok(()),
    }
}

/// Waits until nothing is under way.
async fn quiet(state: &State) {
    while !state.accounts.live().is_empty() {
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits until every loop has put its prefixes away and all of them are written.
async fn shelved(loops: &[Arc<Watch>], kv_disk: Arc<KvDisk>) {
    while !loops.iter().all(|one| one.look().has_ended) {
        tokio::time::sleep(LOOK).await;
    }
    let closed = tokio::task::spawn_blocking(move || kv_disk.close()).await;
    closed.expect("invariant: closing a folder does not panic");
}

/// What all routes share.
fn state_of(options: Options) -> State {
    let Options {
        addr: _, // bound already
        models,
        models_bytes_max,
        policy,
        sizing,
        limits,
        drain: _, // the caller's
        silence_max,
        auth,
        observer,
        ledger,
        results,
        operation,
    } = options;
    let Operation { kept, results_by_default, cors_origins } = operation;
    let clock = Clock::start();
    let (metrics, kv_disk) = (Arc::new(Metrics::default()), sizing.kv_disk.clone());
    let observer: Arc<dyn Observer> = Arc::new(All(vec![observer, metrics.clone()]));
    let watched = Watched { clock, observer: Arc::clone(&observer) };
    State {
        clock,
        registry: Registry::new(models, policy.as_ref(), sizing, models_bytes_max, watched),
        accounts: Accounts::default(),
        wire: limits,
        bodies: Bodies::new(limits),
        silence_max,
        auth,
        observer,
        metrics,
        ledger,
        kv_disk,
        results: results.map(|store| Arc::new(Results::new(store))),
        results_by_default,
        kept: kept.map(|store| Arc::new(Kept::new(store))),
        cors_origins,
        is_closing: AtomicBool::new(false),
        next_request: AtomicU64::new(1),
        boot: causeway_session::drawn_seed(),
    }
}

/// What stops a server, once and again.
enum Stops {
    Signals { interrupt: tokio::signal::unix::Signal, terminate: tokio::signal::unix::Signal },
    Channel(Option<oneshot::Receiver<()>>),
}

impl Stops {
    fn new(stop: Stop) -> std::io::Result<Self> {
        Ok(match stop {
            Stop::Signals => Self::Signals {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
            },
            Stop::Channel(receiver) => Self::Channel(Some(receiver)),
        })
    }

    async fn wait(&mut self) {
        match self {
            Self::Signals { interrupt, terminate } => {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            }
            Self::Channel(receiver) => match receiver.take() {
                Some(receiver) => drop(receiver.await),
                None => std::future::pending().await,
            },
        }
    }
}
