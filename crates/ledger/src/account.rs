//! What a run cost: its tokens, its passes and its times.

use serde::{Deserialize, Serialize};

use crate::{Effective, Shown, Step, StepCause};

/// What the engine and its clock say of a whole run, beside its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measured {
    /// Milliseconds from 1970-01-01 UTC to the arrival that was scheduled.
    pub scheduled_unix_ms: u64,
    /// Nanoseconds from the scheduled arrival to the real one; 0 where nobody made a schedule.
    pub late_ns: u64,
    /// Nanoseconds from arrival to the first pass.
    pub queued_ns: u64,
    /// Nanoseconds from arrival to the end of the run.
    pub ended_ns: u64,
    /// Prompt tokens whose keys and values came from the prefix cache.
    pub cached_tokens: u64,
    /// Passes that computed some of the prompt.
    pub prefill_passes: u64,
    /// Passes that computed one new position.
    pub decode_passes: u64,
    /// What its masks took; `None` where no pass had one.
    pub masks: Option<MaskWaits>,
    /// What was drafted; `None` where nothing was.
    pub drafts: Option<DraftCount>,
}

/// The account of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    pub tokens: Tokens,
    pub passes: Passes,
    pub times: Times,
    /// `None` where no pass had a mask, and in records from before it was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masks: Option<MaskWaits>,
    /// `None` where nothing was drafted, and in records from before anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drafts: Option<DraftCount>,
}

/// Tokens by what they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    /// Tokens that arrived with the request, the response prefill included.
    pub prompt: u64,
    /// Those of `prompt` that were response prefill.
    pub prefilled: u64,
    /// Those of `prompt` that the prefix cache spared.
    pub cached: u64,
    /// Tokens that the run produced: one a step, end tokens and forced ones included.
    pub prefix: u64,
    /// Those of `prefix` that the constraints left no choice about.
    pub forced: u64,
    /// Those of `prefix` that were generated as reasoning and not shown.
    pub reasoning: u64,
    /// Those of `prefix` whose text is part of the answer.
    pub visible: u64,
}

/// Forward passes by what they computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Passes {
    pub prefill: u64,
    pub decode: u64,
}

/// Passes that a mask was worked out beside, and what of that was not done when they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaskWaits {
    pub passes: u64,
    /// Those of `passes` that had to wait for the masks of any of their requests.
    pub waits: u64,
    /// How long they waited, all together.
    pub wait_ns: u64,
}

impl MaskWaits {
    /// `None` where no pass had a mask.
    #[must_use]
    pub fn of(passes: u64, waits: u64, wait_ns: u64) -> Option<Self> {
        (passes > 0).then_some(Self { passes, waits, wait_ns })
    }
}

/// Tokens that were computed before they were chosen, and those of them that were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DraftCount {
    pub computed: u64,
    /// Those of `computed` that were chosen and not laid; each spared a decode pass at most.
    pub accepted: u64,
}

impl DraftCount {
    /// `None` where nothing was drafted.
    #[must_use]
    pub fn of(computed: u64, accepted: u64) -> Option<Self> {
        (computed > 0).then_some(Self { computed, accepted })
    }
}

/// Times of one run, in nanoseconds where the name ends in `_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// Milliseconds from 1970-01-01 UTC to the scheduled arrival.
    pub scheduled_unix_ms: u64,
    /// From the scheduled arrival to the real one.
    pub late_ns: u64,
    /// From arrival to the first pass.
    pub queued_ns: u64,
    /// First token minus scheduled arrival; `None` where no token came.
    pub ttft_ns: Option<u64>,
    /// The gaps between tokens; `None` below two tokens.
    pub itl: Option<Gaps>,
    /// (last token − first token) / (tokens − 1), rounded down; `None` below two tokens.
    pub tpot_ns: Option<u64>,
    /// End of the run minus scheduled arrival.
    pub total_ns: u64,
}

/// Gaps between tokens, pooled; percentiles by nearest rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gaps {
    pub count: u64,
    pub min_ns: u64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub max_ns: u64,
}

impl Account {
    /// Makes up the account of a run from its request, its steps and its times.
    ///
    /// An end before the last token counts as the last token's time.
    #[must_use]
    pub fn new(request: &Effective, steps: &[Step], measured: &Measured) -> Self {
        let Measured {
            scheduled_unix_ms,
            late_ns,
            queued_ns,
            ended_ns,
            cached_tokens,
            prefill_passes,
            decode_passes,
            masks,
            drafts,
        } = *measured;
        let count = |claim: fn(&Step) -> bool| steps.iter().filter(|step| claim(step)).count();
        let (first_ns, last_ns) = match steps {
            [first, .., last] => (Some(first.since_arrival_ns), last.since_arrival_ns),
            [only] => (Some(only.since_arrival_ns), only.since_arrival_ns),
            [] => (None, 0),
        };
        let prefilled = request.prefilled_tokens.len();
        Self {
            tokens: Tokens {
                prompt: (request.prompt_tokens.len() + prefilled) as u64,
                prefilled: prefilled as u64,
                cached: cached_tokens,
                prefix: steps.len() as u64,
                forced: count(|step| step.cause == StepCause::Forced) as u64,
                reasoning: count(|step| step.shown == Shown::Reasoning) as u64,
                visible: count(|step| step.shown == Shown::Visible) as u64,
            },
            passes: Passes { prefill: prefill_passes, decode: decode_passes },
            times: Times {
                scheduled_unix_ms,
                late_ns,
                queued_ns,
                ttft_ns: first_ns.map(|first_ns| first_ns.saturating_add(late_ns)),
                itl: Gaps::pool(gaps(steps)),
                tpot_ns: first_ns.and_then(|first_ns| {
                    let gap_count = steps.len() as u64 - 1;
                    last_ns.saturating_sub(first_ns).checked_div(gap_count)
                }),
                total_ns: ended_ns.max(last_ns).saturating_add(late_ns),
            },
            masks,
            drafts,
        }
    }
}

/// Nanoseconds between each token and the one before it: one fewer than there are steps.
pub fn gaps(steps: &[Step]) -> impl Iterator<Item = u64> {
    steps.windows(2).map(|pair| pair[1].since_arrival_ns.saturating_sub(pair[0].since_arrival_ns))
}

impl Gaps {
    /// Pools gaps, of one run or of many; `None` where there is none.
    #[must_use]
    pub fn pool(gaps_ns: impl IntoIterator<Item = u64>) -> Option<Self> {
        let mut sorted: Vec<u64> = gaps_ns.into_iter().collect();
        sorted.sort_unstable();
        // Nearest rank: the smallest value that at least this share of all values do not exceed.
        let percentile = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100) - 1];
        Some(Self {
            count: sorted.len() as u64,
            min_ns: *sorted.first()?,
            p50_ns: percentile(50),
            p99_ns: percentile(99),
            max_ns: *sorted.last()?,
        })
    }
}

#[cfg(test)]
mod tests;
