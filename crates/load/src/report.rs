//! What a run comes to: counts, times, rates and goodput.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::Serialize;

use crate::error::{SettingError, in_range};
use crate::outcome::{Ending, Outcome, us_as_ms};
use crate::spread::Spread;

/// Limits that a request is held against, in milliseconds; an absent one holds always.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Limits {
    /// On the time to the first token.
    pub ttft_ms: Option<f64>,
    /// On every gap between tokens.
    pub itl_ms: Option<f64>,
    /// On the time per output token.
    pub tpot_ms: Option<f64>,
    /// On the time from the scheduled arrival to the end.
    pub total_ms: Option<f64>,
}

/// What a limit may be, in milliseconds: up to a day.
const LIMIT_RANGE_MS: RangeInclusive<f64> = 0.001..=86_400_000.0;

impl Limits {
    /// Refuses a limit that nothing can be held against.
    pub(crate) fn check(&self) -> Result<(), SettingError> {
        let Self { ttft_ms, itl_ms, tpot_ms, total_ms } = *self;
        for limit in [ttft_ms, itl_ms, tpot_ms, total_ms].into_iter().flatten() {
            in_range("a limit in milliseconds", limit, &LIMIT_RANGE_MS)?;
        }
        Ok(())
    }

    /// Whether an answer is whole and inside every limit; one without text has no TTFT that
    /// could be inside a limit.
    fn hold(&self, outcome: &Outcome) -> bool {
        let Self { ttft_ms, itl_ms, tpot_ms, total_ms } = *self;
        let is_within = |limit: Option<f64>, ms: f64| limit.is_none_or(|limit| ms <= limit);
        let ttft = outcome.ttft_us().map_or(f64::INFINITY, us_as_ms);
        let gap = outcome.gaps_us().max().map_or(0.0, us_as_ms);
        let tpot = outcome.tpot_us().unwrap_or(0.0) / 1e3;
        outcome.is_complete()
            && is_within(ttft_ms, ttft)
            && is_within(itl_ms, gap)
            && is_within(tpot_ms, tpot)
            && is_within(total_ms, us_as_ms(outcome.total_us()))
    }
}

/// When what is measured begins and ends, in microseconds since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start_us: u64,
    pub(crate) end_us: u64,
}

impl Window {
    fn holds(self, us: u64) -> bool {
        (self.start_us..self.end_us).contains(&us)
    }

    fn seconds(self) -> f64 {
        us_as_ms(self.end_us.saturating_sub(self.start_us)) / 1e3
    }
}

/// How many requests there were, of each kind; all but `sent` count those that are measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Sent in all, warm-up included.
    pub sent: u64,
    /// Scheduled inside the window.
    pub measured: u64,
    pub complete: u64,
    pub hung_up: u64,
    pub failed: u64,
    /// Failures by kind.
    pub errors: BTreeMap<String, u64>,
    /// One message of each kind of failure.
    pub messages: BTreeMap<String, String>,
    /// Refusals that say when to come again.
    pub with_retry_after: u64,
    /// Given up, since the run was stopped before they ended.
    pub given_up: u64,
}

/// Tokens of the complete answers that are measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Tokens {
    /// As the server counts them.
    pub prompt: u64,
    /// Of the prompts, those found in a cache; none where no answer says.
    pub cached: Option<u64>,
    /// As the server counts them.
    pub output: u64,
    /// Pieces of text that came.
    pub chunks: u64,
    /// Answers without usage, whose pieces are taken for their tokens.
    pub without_usage: u64,
    /// Answers whose pieces are not as many as their tokens.
    pub disagreements: u64,
    /// Answers that are not of the length asked for.
    pub other_length: u64,
}

/// Rates inside the window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Throughput {
    pub window_s: f64,
    /// Complete answers that ended in the window.
    pub requests_per_s: f64,
    /// Tokens that came in the window, of whatever request.
    pub output_tokens_per_s: f64,
    /// Prompt tokens of the answers that began in the window, those from a cache included.
    pub prompt_tokens_per_s: f64,
}

/// Requests inside every limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Goodput {
    pub limits: Limits,
    pub count: u64,
    /// Over all that are measured, failed, refused and hung up ones included.
    pub share: Option<f64>,
    pub requests_per_s: f64,
}

/// All figures of a run; times are milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    pub requests: Counts,
    pub ttft_ms: Spread,
    pub itl_ms: Spread,
    pub tpot_ms: Spread,
    pub total_ms: Spread,
    /// What the client itself adds: actual minus scheduled sending, of all requests.
    pub lag_ms: Spread,
    pub throughput: Throughput,
    pub goodput: Goodput,
    pub tokens: Tokens,
}

impl Report {
    /// Counts and measures what became of the requests.
    pub(crate) fn of(outcomes: &[Outcome], window: Window, limits: Limits, given_up: u64) -> Self {
        let measured: Vec<&Outcome> =
            outcomes.iter().filter(|outcome| window.holds(outcome.scheduled_us)).collect();
        let times = |of: &dyn Fn(&Outcome) -> Option<f64>| {
            Spread::of(measured.iter().filter_map(|outcome| of(outcome)).collect())
        };
        let gaps = measured.iter().flat_map(|outcome| outcome.gaps_us());
        Self {
            requests: counts(outcomes, &measured, given_up),
            ttft_ms: times(&|outcome| outcome.ttft_us().map(us_as_ms)),
            itl_ms: Spread::of(gaps.map(us_as_ms).collect()),
            tpot_ms: times(&|outcome| {
                Some(outcome.tpot_us().filter(|_| outcome.is_complete())? / 1e3)
            }),
            total_ms: times(&|outcome| outcome.is_complete().then(|| us_as_ms(outcome.total_us()))),
            lag_ms: Spread::of(outcomes.iter().map(|outcome| us_as_ms(outcome.lag_us())).collect()),
            throughput: throughput(outcomes, window),
            goodput: goodput(&measured, window, limits),
            tokens: tokens(&measured),
        }
    }
}

fn counts(outcomes: &[Outcome], measured: &[&Outcome], given_up: u64) -> Counts {
    let mut counts = Counts {
        sent: outcomes.len() as u64 + given_up,
        measured: measured.len() as u64,
        given_up,
        ..Counts::default()
    };
    for outcome in measured {
        match outcome.ending.failure() {
            None if outcome.ending == Ending::HungUp => counts.hung_up += 1,
            None => counts.complete += 1,
            Some(kind) => {
                counts.failed += 1;
                counts.with_retry_after += u64::from(outcome.answer.retry_after_s.is_some());
                if let Some(message) = &outcome.answer.message {
                    counts.messages.entry(kind.clone()).or_insert_with(|| message.clone());
                }
                *counts.errors.entry(kind).or_default() += 1;
            }
        }
    }
    counts
}

fn tokens(measured: &[&Outcome]) -> Tokens {
    let mut tokens = Tokens::default();
    for outcome in measured.iter().filter(|outcome| outcome.is_complete()) {
        let chunks = outcome.chunks_us.len() as u64;
        tokens.chunks += chunks;
        let Some(usage) = outcome.answer.usage else {
            tokens.without_usage += 1;
            continue;
        };
        tokens.prompt += usage.prompt_tokens;
        tokens.output += usage.output_tokens;
        if let Some(cached) = usage.cached_tokens {
            *tokens.cached.get_or_insert(0) += cached;
        }
        tokens.disagreements += u64::from(usage.output_tokens != chunks);
        let asked = u64::from(outcome.planned.output_tokens);
        tokens.other_length += u64::from(usage.output_tokens != asked);
    }
    tokens
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn throughput(outcomes: &[Outcome], window: Window) -> Throughput {
    let window_s = window.seconds();
    let per_s = |count: f64| if window_s > 0.0 { count / window_s } else { 0.0 };
    let mut requests = 0.0;
    let mut output_tokens = 0.0;
    let mut prompt_tokens = 0.0;
    for outcome in outcomes {
        let is_whole = outcome.is_complete() && window.holds(outcome.ended_us);
        requests += f64::from(u8::from(is_whole));
        // A piece of text that holds several tokens counts for its share of them.
        let chunks = outcome.chunks_us.len().max(1) as f64;
        let within = outcome.chunks_us.iter().filter(|&&us| window.holds(us)).count();
        output_tokens += within as f64 * outcome.output_tokens() as f64 / chunks;
        let begins = outcome.chunks_us.first().is_some_and(|&us| window.holds(us));
        if let Some(usage) = outcome.answer.usage.filter(|_| begins) {
            prompt_tokens += usage.prompt_tokens as f64;
        }
    }
    Throughput {
        window_s,
        requests_per_s: per_s(requests),
        output_tokens_per_s: per_s(output_tokens),
        prompt_tokens_per_s: per_s(prompt_tokens),
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn goodput(measured: &[&Outcome], window: Window, limits: Limits) -> Goodput {
    let count = measured.iter().filter(|outcome| limits.hold(outcome)).count();
    let share = (!measured.is_empty()).then(|| count as f64 / measured.len() as f64);
    let seconds = window.seconds();
    let requests_per_s = if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    Goodput { limits, count: count as u64, share, requests_per_s }
}

#[cfg(test)]
mod tests;
