//! What is told to those who watch: metrics, traces and logs are observers.

pub mod logs;
pub mod metrics;
pub mod telemetry;

use std::sync::Arc;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use causeway_engine::PassAccount;
use causeway_ledger::{Record, Sha256};

use crate::driver::Look;
use crate::error::ApiError;
use crate::origin::Origin;

/// Watches the server; every method must return at once.
pub trait Observer: Send + Sync + std::fmt::Debug {
    /// A request was taken.
    fn taken(&self, _taken: &Taken<'_>) {}

    /// A request was refused, or failed on its way.
    fn refused(&self, _id: &str, _path: &str, _error: &ApiError) {}

    /// A pass was run; it took so many nanoseconds.
    fn stepped(&self, _model: &str, _look: &Look, _took_ns: u64) {}

    /// One choice has ended.
    fn ended(&self, _ended: &EndedRun<'_>) {}

    /// One choice is gone without a record: reading its answer panicked.
    fn lost(&self, _id: &str, _model: &str) {}

    /// A response has begun.
    fn answered(&self, _exchange: &Exchange<'_>) {}

    /// The server ends: what was not said yet is said now. May take seconds.
    fn close(&self) {}
}

/// A request that an engine has taken.
#[derive(Debug, Clone, Copy)]
pub struct Taken<'a> {
    /// The id that its caller sees.
    pub id: &'a str,
    pub model: &'a str,
    /// The name of the key; empty where no keys are used.
    pub owner: &'a str,
    pub choices: usize,
}

/// A choice that has ended, and all that is known of it.
#[derive(Debug, Clone, Copy)]
pub struct EndedRun<'a> {
    /// The id that its caller sees.
    pub id: &'a str,
    /// The name of the key; `None` where no keys are used.
    pub owner: Option<&'a str>,
    pub origin: &'a Origin,
    pub record: &'a Record,
    pub record_id: Sha256,
    pub passes: &'a PassAccount,
    /// Whether it was given before, and no step was run for it.
    pub is_given_again: bool,
}

/// A request over HTTP and the beginning of its response.
#[derive(Debug, Clone, Copy)]
pub struct Exchange<'a> {
    pub id: &'a str,
    pub method: &'a Method,
    /// The route's own spelling, as in `/v1/requests/{id}`; empty where there is none.
    pub route: &'a str,
    pub status: StatusCode,
    /// From the header to the first byte of the response.
    pub took: Duration,
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}

/// Several observers, told in order.
#[derive(Debug, Clone)]
pub struct All(pub Vec<Arc<dyn Observer>>);

impl Observer for All {
    fn taken(&self, taken: &Taken<'_>) {
        self.0.iter().for_each(|one| one.taken(taken));
    }

    fn refused(&self, id: &str, path: &str, error: &ApiError) {
        self.0.iter().for_each(|one| one.refused(id, path, error));
    }

    fn stepped(&self, model: &str, look: &Look, took_ns: u64) {
        self.0.iter().for_each(|one| one.stepped(model, look, took_ns));
    }

    fn ended(&self, ended: &EndedRun<'_>) {
        self.0.iter().for_each(|one| one.ended(ended));
    }

    fn lost(&self, id: &str, model: &str) {
        self.0.iter().for_each(|one| one.lost(id, model));
    }

    fn answered(&self, exchange: &Exchange<'_>) {
        self.0.iter().for_each(|one| one.answered(exchange));
    }

    fn close(&self) {
        self.0.iter().for_each(|one| one.close());
    }
}
