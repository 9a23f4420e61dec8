//! What the machine gives: limits measured in the same run, and the memory that was taken.

use causeway_kernels::{Kernels, Memory, Pool};
use serde::Serialize;

use super::Spread;
use crate::clock::Clock;
use crate::failure::Failure;

/// Bytes read for the bandwidth; far beyond every cache.
const READ_BYTES: usize = 512 << 20;
/// Rounds of dot products for the peak: some tens of milliseconds.
const DOT_ROUNDS: usize = 8_000_000;
/// Empty steps that are timed together.
const EMPTY_STEPS: usize = 2_000;

/// What bounds every step.
#[derive(Debug, Serialize)]
pub(super) struct Limits {
    pub(super) read_gb_per_s: f64,
    pub(super) int8_gop_per_s: f64,
    /// Nanoseconds of a step with nothing to do: handing it to all threads and waiting for them.
    /// A pass has some hundreds; each is longer where the cores share no cache.
    pub(super) step_ns: f64,
}

/// Times work on one machine.
#[derive(Debug)]
pub(super) struct Machine<'a> {
    pub(super) kernels: &'a Kernels,
    pub(super) pool: &'a Pool,
    pub(super) clock: Clock,
    pub(super) repeats: usize,
}

#[expect(clippy::cast_precision_loss, reason = "counts and times are far below 2^53")]
impl Machine<'_> {
    /// Median nanoseconds of `work`, after one run that is not counted.
    pub(super) fn median_ns(&self, mut work: impl FnMut()) -> f64 {
        work();
        let mut time = || {
            let start = self.clock.now_ns();
            work();
            (self.clock.now_ns() - start).max(1) as f64
        };
        Spread::of((0..self.repeats).map(|_| time()).collect()).median
    }

    /// Read bandwidth of memory as weights lie in it, dot products and empty steps, on all threads.
    pub(super) fn limits(&self) -> Result<Limits, Failure> {
        let memory = Memory::filled(READ_BYTES, 1).map_err(Failure::world)?;
        let read_ns = self.median_ns(|| self.kernels.read_through(memory.bytes(), self.pool));
        let mut operations = 0;
        let dot_ns = self.median_ns(|| operations = self.kernels.dot_peak(DOT_ROUNDS, self.pool));
        let step_ns = self.median_ns(|| (0..EMPTY_STEPS).for_each(|_| self.pool.barrier()));
        Ok(Limits {
            read_gb_per_s: READ_BYTES as f64 / read_ns,
            int8_gop_per_s: operations as f64 / dot_ns,
            step_ns: step_ns / EMPTY_STEPS as f64,
        })
    }
}

/// Bytes in memory, as the system counts them; `None` where it does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Resident {
    /// Resident at this moment.
    pub(super) resident_bytes: Option<u64>,
    /// The most that ever was.
    pub(super) peak_bytes: Option<u64>,
}

impl Resident {
    /// Asks the system.
    pub(super) fn of_this_program() -> Self {
        Self::of_status(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())
    }

    /// Reads Linux's table of a program's status.
    pub(super) fn of_status(status: &str) -> Self {
        let bytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
            kib.checked_mul(1024)
        };
        Self { resident_bytes: bytes("VmRSS:"), peak_bytes: bytes("VmHWM:") }
    }
}
