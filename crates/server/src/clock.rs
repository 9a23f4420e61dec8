//! Where time enters the server: everything below takes it as an argument.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A clock that starts at 0 when it is made, and knows what the wall showed then.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
    start_unix_ms: u64,
}

impl Clock {
    /// Starts at 0.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the server is where time enters")]
    pub fn start() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let start_unix_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        Self { start: Instant::now(), start_unix_ms }
    }

    /// Nanoseconds since the start.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Milliseconds from 1970-01-01 UTC to a time of this clock.
    #[must_use]
    pub fn unix_ms(&self, ns: u64) -> u64 {
        self.start_unix_ms.saturating_add(ns / 1_000_000)
    }

    /// Seconds from 1970-01-01 UTC.
    #[must_use]
    pub fn unix_s(&self) -> u64 {
        self.unix_ms(self.now_ns()) / 1_000
    }
}
