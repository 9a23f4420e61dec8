//! How much all bodies that are being read hold together, and the end of it.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::options::WireLimits;

/// What a body may take, and what all of them hold at this moment.
#[derive(Debug)]
pub(crate) struct Bodies {
    pub(super) limits: WireLimits,
    held_bytes: AtomicUsize,
}

/// What one body holds, until it is dropped.
#[derive(Debug)]
pub(super) struct Share<'b> {
    bodies: &'b Bodies,
    bytes: usize,
}

impl Bodies {
    /// Nothing is read yet.
    pub(crate) fn new(limits: WireLimits) -> Self {
        Self { limits, held_bytes: AtomicUsize::new(0) }
    }

    /// A body of which nothing has come.
    pub(super) fn share(&self) -> Share<'_> {
        Share { bodies: self, bytes: 0 }
    }
}

impl Share<'_> {
    /// Takes what has come of the body.
    ///
    /// # Errors
    /// The bytes that all bodies would hold, where those are too many; this one should be dropped.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<(), usize> {
        self.bytes += bytes;
        let held_bytes = self.bodies.held_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let is_over = held_bytes > self.bodies.limits.bodies_bytes_max;
        if is_over { Err(held_bytes) } else { Ok(()) }
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.bodies.held_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
