//! What an engine says: of each step, of each end, and of itself.

use causeway_request::{RequestId, StepOutput, StopReason};

/// What one step says of one request.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// A token was chosen or laid, and appended. Where its `stop` is set, the end follows.
    Step(StepOutput),
    /// The run is over; said exactly once of each that was taken, by `step`, `cancel` or `end`.
    Ended(Ended),
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    pub request: RequestId,
    pub stop: StopReason,
    pub account: PassAccount,
}

/// What a run took of the engine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PassAccount {
    /// Prompt tokens, response prefill included.
    pub prompt_tokens: usize,
    /// Of these, tokens that the prefix cache held when the run was first scheduled: whole
    /// blocks, and never all of the prompt.
    pub cached_tokens: usize,
    /// Of these, tokens that a parallel choice of the same prompt had computed.
    pub shared_tokens: usize,
    /// Tokens chosen or laid, one a step.
    pub steps: u32,
    /// Steps that the budget and the context left room for, and that were never scheduled.
    pub unscheduled_steps: usize,
    /// Passes over positions whose tokens were known, computed again or for the first time.
    pub prefill_passes: u64,
    /// Passes over the newest position alone, or with those that are laid behind it.
    pub decode_passes: u64,
    /// Drafts computed beside the newest position.
    pub drafted_tokens: u64,
    /// Of these, tokens that were chosen and not laid; each spared a decode pass at most.
    pub accepted_tokens: u64,
    /// Passes that its next mask was worked out beside.
    pub masked_passes: u64,
    /// Of these, passes that were done before the masks of all their requests were.
    pub mask_waits: u64,
    /// Nanoseconds that those passes waited.
    pub mask_wait_ns: u64,
    /// Times that the run lost its blocks and had to wait again.
    pub preemptions: u32,
    /// Nanoseconds from arrival to the first pass; `None` where there was none.
    pub queued_ns: Option<u64>,
    /// Whether it ended because it had waited for its first pass too long.
    pub is_wait_over: bool,
}

/// The pass that a step ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pass {
    /// Requests with a part in it.
    pub requests: usize,
    /// Positions computed, of all requests.
    pub rows: usize,
    /// Of these, the newest positions of runs that are past their prompt.
    pub decode_rows: usize,
    /// Nanoseconds that it waited for masks once its rows were there, 0 where they were ready;
    /// `None` where none of its requests had a mask.
    pub mask_wait_ns: Option<u64>,
}

/// How loaded an engine is, and what its cache did since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    pub running: usize,
    pub waiting: usize,
    /// Blocks that running requests hold, over all groups of layers.
    pub held_blocks: usize,
    /// Blocks that nobody holds and the prefix cache keeps.
    pub cached_blocks: usize,
    /// Blocks that can be handed out without loss.
    pub free_blocks: usize,
    /// Requests whose prompt was looked up.
    pub prefix_lookups: u64,
    /// Lookups that found at least one block.
    pub prefix_hits: u64,
    /// Prompt tokens that the hits spared.
    pub prefix_tokens_hit: u64,
    /// Kept blocks given up because room was needed.
    pub prefix_evictions: u64,
    /// Blocks brought back from the shelf.
    pub prefix_restored: u64,
    pub preemptions: u64,
}
