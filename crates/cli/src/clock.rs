//! Where time enters the program: everything below takes it as an argument.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A clock that starts at 0 when it is made, and knows what the wall showed then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
    /// Milliseconds from 1970-01-01 UTC at the start.
    pub(crate) start_unix_ms: u64,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the command line is where time enters")]
    pub(crate) fn start() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let start_unix_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        Self { start: Instant::now(), start_unix_ms }
    }

    /// Nanoseconds since the start.
    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
