//! The HTTP API: requests in, one driver thread around each engine, streams and accounts out.
//!
//! It may not know kernels or the scheduler's insides. A request's way:
//! `http::body` → `fields` → a route → `ask` → `driver` → `run` → `outbox` → the route → `http::sse`.
//!
//! Where things go:
//! - A new endpoint: its fields as a table in `fields/<api>.rs`, its words in `routes/<api>.rs`,
//!   one line in `http/app.rs`. It makes an `Ask`, calls `State::begin`, and reads `Event`s;
//!   nothing else of the server needs to know of it.
//! - API keys and limits of a key: a type that is `auth::Auth`, in `auth/`.
//! - Metrics, traces, logs: a type that is `observe::Observer`, in `observe/`; the numbers of the
//!   step loop are in `driver::Look`, a record has the rest.
//! - Where records are kept: `Options::ledger`.
//! - What a policy may say and a request may not: `effective`.
//! - What happens between two steps: `driver/turns.rs`; what a pass may cost: `driver/budget.rs`.

mod accounts;
mod ask;
pub mod auth;
mod clock;
pub mod driver;
mod effective;
pub mod error;
pub mod event;
pub mod fields;
mod http;
mod kept;
mod leftover;
mod memory;
pub mod observe;
mod options;
mod origin;
mod outbox;
mod reading;
mod registry;
mod results;
mod routes;
mod run;
#[cfg(feature = "scripted")]
pub mod scripted;
mod serve;
mod served;
mod short;
mod source;
mod state;
mod wire;

pub use clock::Clock;
pub use options::{Operation, Options, Sizing, WireLimits};
pub use origin::Origin;
pub use serve::{ServeError, Stop, serve};
pub use served::{ServeModelError, Served, Watched};
pub use source::Source;
pub use std::net::SocketAddr;
