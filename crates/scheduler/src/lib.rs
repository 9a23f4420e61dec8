//! Which tokens the next step computes: a pure state machine.
//!
//! It knows no floats, no clock, no threads, no weights and no text.
//! Requests are added and wait, `plan` says what one forward pass computes, `append` follows a
//! choice. Blocks are somebody else's: the scheduler asks a `Room` for them.

mod entry;
mod plan;
mod scheduler;

pub use plan::{Plan, Room, Scheduled};
pub use scheduler::{Arrival, Scheduler, Sizes};

#[cfg(test)]
mod tests;
