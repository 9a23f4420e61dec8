//! What is told to those who watch: the hook that metrics, traces and logs fill.

use causeway_ledger::Record;

use crate::driver::Look;
use crate::error::ApiError;

/// Watches the server; every method must return at once.
pub trait Observer: Send + Sync + std::fmt::Debug {
    /// A request was taken; `id` is the one its caller sees.
    fn taken(&self, _id: &str, _choices: usize) {}

    /// A request was refused before it reached an engine.
    fn refused(&self, _path: &str, _error: &ApiError) {}

    /// A pass was run; it took so many nanoseconds.
    fn stepped(&self, _model: &str, _look: &Look, _took_ns: u64) {}

    /// One choice has ended; the record has everything that is known of it.
    fn ended(&self, _id: &str, _record: &Record) {}
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}
