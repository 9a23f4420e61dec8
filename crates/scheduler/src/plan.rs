//! What crosses the scheduler's boundary at each step: a plan out, questions about room.

use causeway_request::RequestId;

/// What one forward pass computes for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheduled {
    pub id: RequestId,
    /// Position of the first token computed.
    pub first_position: usize,
    pub token_count: usize,
    /// Drafts computed behind them: tokens that may turn out not to be chosen.
    pub drafts: usize,
    /// Whether the pass reaches the newest token, so that the next can be chosen.
    pub samples: bool,
}

/// One forward pass, and who joined or left to make it possible.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    pub scheduled: Vec<Scheduled>,
    /// Requests that began to run, with the positions that were computed already.
    pub admitted: Vec<(RequestId, usize)>,
    /// Requests that lost their blocks and wait again, in the order they lost them.
    pub preempted: Vec<RequestId>,
}

impl Plan {
    /// Rows of the pass: positions of all requests.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.scheduled.iter().map(|scheduled| scheduled.token_count + scheduled.drafts).sum()
    }
}

/// The room for keys and values, as the scheduler sees it.
///
/// An engine answers from its cache, a simulation from a counter.
pub trait Room {
    /// Takes room for all `tokens` known positions of a request that is to run, and leaves
    /// `spare` blocks for those that run already.
    ///
    /// Gives the number of positions, below `tokens`, that are computed already; `None` where
    /// blocks are missing, and then nothing is taken.
    fn admit(&mut self, id: RequestId, tokens: usize, spare: usize) -> Option<usize>;

    /// Takes room for every position below `end` of a running request; false where blocks are
    /// missing.
    fn reserve(&mut self, id: RequestId, end: usize) -> bool;

    /// Gives back all that a request holds.
    fn release(&mut self, id: RequestId);
}
