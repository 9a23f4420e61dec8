//! Who goes first when not everybody can.

/// How urgent a request is; the order of the variants is the order of service.
///
/// Inside one priority the first to come is the first to be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Someone is waiting for the answer.
    Interactive,
    /// Yields to interactive requests, until it has waited long enough to count as one.
    Batch,
    /// Nobody waits: runs only in slots and blocks that no one else asks for.
    Idle,
}
