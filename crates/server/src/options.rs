//! What a server is started with, and the number of every limit.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use causeway_engine::Limits;
use causeway_ledger::{Store, Writer};
use causeway_policy::PolicyFile;
use causeway_session::{Hashes, KvDisk};

use crate::auth::Auth;
use crate::observe::Observer;
use crate::source::Source;

/// Everything that `causeway serve` decides.
pub struct Options {
    pub addr: SocketAddr,
    /// The first one is loaded at the start, the others when they are first asked for.
    pub models: Vec<Source>,
    /// Most bytes of weights, caches and workspaces in memory at once; one model always fits.
    pub models_bytes_max: Option<u64>,
    /// The server's policy; its fields are not a request's to change. `None` leaves them open,
    /// over each model's own.
    pub policy: Option<PolicyFile>,
    pub sizing: Sizing,
    pub limits: WireLimits,
    /// How long a shutdown waits for answers under way.
    pub drain: Duration,
    /// How long the step loop may be silent before `/ready` says so.
    pub silence_max: Duration,
    pub auth: Arc<dyn Auth>,
    pub observer: Arc<dyn Observer>,
    /// Where records go as their runs end; none are kept without.
    pub ledger: Option<Arc<Writer>>,
    /// The same ledger, open to read: finished answers are given again out of it, where a request
    /// or a policy asks for it, or `Operation::results_by_default`.
    pub results: Option<Store>,
    pub operation: Operation,
}

/// What those decide who keep a server running.
#[derive(Debug, Default)]
pub struct Operation {
    /// The ledger, open to read: requests that ended long ago are told of out of it.
    pub kept: Option<Store>,
    /// Whether answers are given again where neither request nor policy says.
    pub results_by_default: bool,
    /// Origins whose pages may ask; `*` is any.
    pub cors_origins: Vec<String>,
}

/// The size of an engine.
#[derive(Debug, Clone)]
pub struct Sizing {
    pub limits: Limits,
    /// Longest that a pass should take while answers are under way.
    pub itl_target_ns: Option<u64>,
    /// Where hashes of weights are remembered.
    pub hashes: Hashes,
    /// Where idle prefixes go that have no room in memory, and all of them at the end.
    pub kv_disk: Option<Arc<KvDisk>>,
}

/// What a connection may take; what a request may ask for stands in the tables of `fields`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireLimits {
    pub connections_max: usize,
    pub body_bytes_max: usize,
    /// All bodies that are being read, together.
    pub bodies_bytes_max: usize,
    /// From the first byte of a request to the last of its header.
    pub header_time_max: Duration,
    /// From the header to the last byte of the body.
    pub body_time_max: Duration,
    /// Between two signs of life of a stream.
    pub keep_alive: Duration,
}

impl Default for WireLimits {
    fn default() -> Self {
        Self {
            connections_max: 4_096,
            // A record can hold a request of 8 MiB.
            body_bytes_max: 8 << 20,
            // As many as 32 of the largest; most are a few KiB.
            bodies_bytes_max: 256 << 20,
            header_time_max: Duration::from_secs(10),
            body_time_max: Duration::from_secs(30),
            keep_alive: Duration::from_secs(5),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("addr", &self.addr)
            .field("models", &self.models)
            .field("sizing", &self.sizing)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
