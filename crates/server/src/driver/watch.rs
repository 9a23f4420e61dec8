//! What the step loop shows of itself to those who may not wait for it.

use std::sync::{Arc, Mutex, PoisonError};

use causeway_engine::{Load, Pass};

/// Written by the driver after each turn, read by anybody at any time.
#[derive(Debug, Default)]
pub struct Watch(Mutex<Look>);

/// Says that the loop is gone when it is dropped, by a panic too.
pub(super) struct Presence(pub(super) Arc<Watch>);

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// One look at the step loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Look {
    /// Requests in the engine, and what its cache did so far.
    pub load: Load,
    /// The last pass that computed anything.
    pub pass: Pass,
    /// Passes so far.
    pub passes: u64,
    /// Most tokens that the next pass computes.
    pub budget: usize,
    /// When the loop last came round, in nanoseconds of the server's clock.
    pub turned_ns: u64,
    /// The loop is gone.
    pub has_ended: bool,
}

impl Look {
    /// Nanoseconds since the loop last came round; 0 where it has nothing to do.
    #[must_use]
    pub fn silent_ns(&self, now_ns: u64) -> u64 {
        let has_work = self.load.running + self.load.waiting > 0;
        if has_work { now_ns.saturating_sub(self.turned_ns) } else { 0 }
    }
}

impl Watch {
    /// Called by the driver only, once a turn.
    pub(super) fn turn(&self, look: Look) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = look;
    }

    /// Called when the driver's thread is left, however that came about.
    fn end(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).has_ended = true;
    }

    /// Looks at the loop.
    #[must_use]
    pub fn look(&self) -> Look {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
