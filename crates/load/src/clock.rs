//! The run's clock: microseconds since its start, in the runtime's time, which tests can hold.

use std::time::Duration;

use tokio::time::Instant;

/// A clock that starts at 0 when it is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { start: Instant::now() }
    }

    pub(crate) fn now_us(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// The moment of a time in microseconds.
    pub(crate) fn instant(&self, us: u64) -> Instant {
        self.start + Duration::from_micros(us)
    }
}
