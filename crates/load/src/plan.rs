//! The plan of a run: which request arrives when, how long it is, and what it says.
//!
//! A plan is a function of its settings and its seed, so two servers are asked the same.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::arrivals::Arrivals;
use crate::counts::Counts;
use crate::draw::{Draws, Purpose};
use crate::error::{LoadError, SettingError, in_range};
use crate::span::Span;
use crate::trace::{self, Trace};
use crate::words::WORDS;

/// Most requests of a run.
pub const REQUESTS_MAX: u64 = 1_000_000;
/// Words for one block of a trace; Mooncake's blocks have as many tokens.
const BLOCK_WORDS: usize = 512;
/// Requests that the plan's hash covers.
const HASHED: u64 = 4_096;
/// The longest that a client waits before it hangs up without a token.
const PATIENCE_US_MAX: f64 = 2_000_000.0;
/// The range of a trace's speed.
const SPEED_RANGE: std::ops::RangeInclusive<f64> = 1e-3..=1e3;

/// What a plan is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanSettings {
    pub arrivals: Arrivals,
    /// Arrivals end after this span, warm-up included.
    pub span: Option<Span>,
    /// Arrivals end after so many requests.
    pub requests: Option<u64>,
    /// Words of a prompt; a trace has its own lengths.
    pub prompt_words: Counts,
    /// Tokens of an answer; a trace has its own lengths.
    pub output_tokens: Counts,
    /// Words that all prompts begin with, before their own.
    pub shared_prefix: u32,
    /// The share of clients that hang up at random.
    pub disconnect_rate: f64,
    /// How many times as fast as it was a trace is played.
    pub trace_speed: f64,
    pub seed: u64,
}

/// A client that goes away before its answer is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HangUp {
    /// So long after it has sent its request, whatever has come.
    AfterUs(u64),
    /// When so many pieces of text have come.
    AfterChunks(u32),
}

/// One request of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Planned {
    pub index: u64,
    /// Since the start; none in a closed loop, where a request arrives when a client is free.
    pub at_us: Option<u64>,
    /// Words of the prompt, those that all prompts share included.
    pub prompt_words: u32,
    pub output_tokens: u32,
    pub hang_up: Option<HangUp>,
    /// The seed that the request carries, where requests carry one.
    pub seed: u64,
}

/// All requests of a run.
#[derive(Debug, Clone)]
pub struct Plan {
    settings: PlanSettings,
    draws: Draws,
    /// Of each request; empty in a closed loop.
    at_us: Vec<u64>,
    trace: Option<Arc<Trace>>,
}

impl Plan {
    /// Draws the arrivals, or reads them from the trace.
    ///
    /// # Errors
    /// If a setting is out of range, the trace is unsound, or nothing ends the run.
    pub fn make(settings: PlanSettings) -> Result<Self, LoadError> {
        in_range("the share of clients that hang up", settings.disconnect_rate, &(0.0..=1.0))?;
        in_range("the speed of a trace", settings.trace_speed, &SPEED_RANGE)?;
        let count = settings.requests.unwrap_or(1);
        if !(1..=REQUESTS_MAX).contains(&count) {
            return Err(SettingError::Requests { count }.into());
        }
        let draws = Draws::of(settings.seed);
        let trace = match &settings.arrivals {
            Arrivals::Trace { path } => Some(Arc::new(trace::read(path)?)),
            _ if settings.span.is_none() && settings.requests.is_none() => {
                return Err(SettingError::Endless.into());
            }
            _ => None,
        };
        let mut plan = Self { settings, draws, at_us: Vec::new(), trace };
        plan.at_us = plan.arrivals_us()?;
        Ok(plan)
    }

    fn arrivals_us(&self) -> Result<Vec<u64>, SettingError> {
        let end_us = self.settings.span.map_or(u64::MAX, Span::us);
        let count = self.settings.requests.unwrap_or(REQUESTS_MAX);
        if let Some(trace) = &self.trace {
            let speed = self.settings.trace_speed;
            let places = trace.rows.iter().map(|row| us_of(us_as_f64(row.at_us) / speed));
            let kept = usize::try_from(count).unwrap_or(usize::MAX);
            return Ok(places.take_while(|&at_us| at_us < end_us).take(kept).collect());
        }
        let mut at_us = Vec::new();
        let mut now_us = 0.0;
        for index in 0..=REQUESTS_MAX {
            let Some(gap_s) = self.settings.arrivals.gap_s(&self.draws, index) else {
                break;
            };
            now_us += gap_s * 1e6;
            if index == count && self.settings.requests.is_some() || us_of(now_us) >= end_us {
                break;
            }
            if index == REQUESTS_MAX {
                return Err(SettingError::Requests { count: index + 1 });
            }
            at_us.push(us_of(now_us));
        }
        Ok(at_us)
    }

    /// Clients of a closed loop; none where requests arrive by themselves.
    pub fn concurrency(&self) -> Option<usize> {
        match self.settings.arrivals {
            Arrivals::Concurrency { count } => Some(count),
            _ => None,
        }
    }

    /// Requests that are known to arrive; none in a closed loop that time ends.
    pub fn requests(&self) -> Option<u64> {
        if self.concurrency().is_some() {
            return self.settings.requests;
        }
        Some(self.at_us.len() as u64)
    }

    /// Requests of the trace that are left out, since they have no prompt or no answer.
    pub fn skipped(&self) -> u64 {
        self.trace.as_ref().map_or(0, |trace| trace.skipped)
    }

    /// The settings that the plan was made from.
    pub fn settings(&self) -> &PlanSettings {
        &self.settings
    }

    /// The request at `index`; none behind the last one.
    pub fn planned(&self, index: u64) -> Option<Planned> {
        if self.requests().is_some_and(|count| index >= count) {
            return None;
        }
        let place = usize::try_from(index).ok()?;
        let u = |purpose| self.draws.uniform(purpose, index, 0);
        let row = self.trace.as_ref().map(|trace| &trace.rows[place]);
        let own_words = row.map_or_else(
            || self.settings.prompt_words.at(u(Purpose::PromptWords)),
            |row| row.prompt_tokens,
        );
        let output_tokens = row.map_or_else(
            || self.settings.output_tokens.at(u(Purpose::OutputTokens)),
            |row| row.output_tokens,
        );
        Some(Planned {
            index,
            at_us: self.at_us.get(place).copied(),
            prompt_words: self.settings.shared_prefix + own_words,
            output_tokens,
            hang_up: self.hang_up(index, output_tokens),
            // Servers read seeds as signed numbers of 32 bits at the narrowest.
            seed: self.draws.bits(Purpose::RequestSeed, index, 0) >> 33,
        })
    }

    fn hang_up(&self, index: u64, output_tokens: u32) -> Option<HangUp> {
        let u = |place| self.draws.uniform(Purpose::HangUp, index, place);
        if u(0) >= self.settings.disconnect_rate {
            return None;
        }
        if u(1) < 0.5 {
            return Some(HangUp::AfterUs(us_of(u(2) * PATIENCE_US_MAX)));
        }
        let count = usize::try_from(output_tokens).expect("a count of tokens fits a usize");
        let chunks = 1 + self.draws.below(Purpose::HangUp, index, 2, count);
        Some(HangUp::AfterChunks(u32::try_from(chunks).expect("no more than the tokens")))
    }

    /// The text of a request's prompt.
    pub fn prompt(&self, planned: &Planned) -> String {
        let row = self.trace.as_ref().and_then(|trace| {
            usize::try_from(planned.index).ok().and_then(|place| trace.rows.get(place))
        });
        let blocks = row.map_or(&[][..], |row| &row.blocks);
        let shared = u64::from(self.settings.shared_prefix);
        let mut text = String::new();
        for place in 0..u64::from(planned.prompt_words) {
            let own = place.saturating_sub(shared);
            let block = usize::try_from(own).ok().and_then(|own| blocks.get(own / BLOCK_WORDS));
            let (purpose, item, place) = match block {
                _ if place < shared => (Purpose::SharedWords, 0, place),
                Some(&id) => (Purpose::BlockWords, id, own % BLOCK_WORDS as u64),
                None => (Purpose::Words, planned.index, own),
            };
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(WORDS[self.draws.below(purpose, item, place, WORDS.len())]);
        }
        text
    }

    /// A hash of the first requests and their arrivals: equal for equal plans.
    pub fn hash(&self) -> String {
        let mut hash = Sha256::new();
        for planned in (0..HASHED).map_while(|index| self.planned(index)) {
            let line = serde_json::to_string(&planned).expect("numbers become JSON");
            hash.update(line);
        }
        if let Some(planned) = self.planned(0) {
            hash.update(self.prompt(&planned));
        }
        let mut text = String::new();
        for byte in &hash.finalize()[..16] {
            write!(text, "{byte:02x}").expect("a string takes what is written");
        }
        text
    }
}

/// Microseconds of a number that is one, or as far away as there are numbers.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a conversion that saturates is meant: what lies beyond is never reached"
)]
fn us_of(us: f64) -> u64 {
    us as u64
}

#[expect(clippy::cast_precision_loss, reason = "a trace's microseconds are below 2^53")]
fn us_as_f64(us: u64) -> f64 {
    us as f64
}

#[cfg(test)]
mod tests;
