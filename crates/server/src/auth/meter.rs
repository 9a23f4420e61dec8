//! How much a key has used of its limits: requests a minute, answers at once, tokens a day.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use crate::error::ApiError;

const MINUTE_NS: u64 = 60_000_000_000;
const DAY_S: u64 = 86_400;
/// Largest rate that a key can be limited to; each request of a minute takes eight bytes.
pub(super) const REQUESTS_MAX: u32 = 100_000;

/// What one key may ask for; `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyLimits {
    /// POST requests in any sixty seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u32>,
    /// Answers under way at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Prompt and completion tokens of a UTC day; an answer that has begun may end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u64>,
}

/// The use of one key.
#[derive(Debug)]
pub struct Meter {
    name: String,
    limits: KeyLimits,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    /// When the requests of the last minute came.
    recent_ns: VecDeque<u64>,
    running: u32,
    /// The UTC day that `tokens` are of, in days since 1970.
    day: u64,
    tokens: u64,
}

/// One answer's place; given back when it is dropped.
#[derive(Debug, Default)]
pub struct Lease(Option<Arc<Meter>>);

impl Meter {
    /// A key that has used nothing.
    #[must_use]
    pub fn new(name: &str, limits: KeyLimits) -> Self {
        Self { name: name.to_owned(), limits, used: Mutex::default() }
    }

    /// What it is held to.
    #[must_use]
    pub fn limits(&self) -> KeyLimits {
        self.limits
    }

    /// Counts one request of the rate.
    ///
    /// # Errors
    /// 429 where there were as many as the limit in the last minute.
    pub(super) fn count_request(&self, now_ns: u64) -> Result<(), ApiError> {
        let Some(limit) = self.limits.requests_per_minute else { return Ok(()) };
        self.with(|used| {
            while used.recent_ns.front().is_some_and(|&at| now_ns.saturating_sub(at) >= MINUTE_NS) {
                used.recent_ns.pop_front();
            }
            let count = used.recent_ns.len();
            let Some(&oldest_ns) = used.recent_ns.front().filter(|_| count >= limit as usize)
            else {
                used.recent_ns.push_back(now_ns);
                return Ok(());
            };
            let wait_ns = (oldest_ns + MINUTE_NS).saturating_sub(now_ns);
            let text = format!(
                "API key `{}` sent {count} requests in the last minute, the limit is {limit}",
                self.name
            );
            Err(exceeded(text, "requests_per_minute", wait_ns.div_ceil(1_000_000_000)))
        })
    }

    /// A place for one answer.
    ///
    /// # Errors
    /// 429 where all places are taken, or the day's tokens are used up.
    pub(super) fn lease(self: &Arc<Self>, unix_s: u64) -> Result<Lease, ApiError> {
        let KeyLimits { requests_per_minute: _, concurrency, tokens_per_day } = self.limits;
        self.with(|used| {
            used.turn_day(unix_s);
            if let Some(limit) = tokens_per_day.filter(|limit| used.tokens >= *limit) {
                let text = format!(
                    "API key `{}` used {} tokens today (UTC), the limit is {limit}",
                    self.name, used.tokens
                );
                return Err(exceeded(text, "tokens_per_day", DAY_S - unix_s % DAY_S));
            }
            if let Some(limit) = concurrency.filter(|limit| used.running >= *limit) {
                let text = format!(
                    "API key `{}` has {} answers under way, the limit is {limit}",
                    self.name, used.running
                );
                return Err(exceeded(text, "concurrency", 1));
            }
            used.running += 1;
            Ok(Lease(Some(Arc::clone(self))))
        })
    }

    /// Counts tokens that were used at a time, at a start those of earlier runs too.
    pub fn spend(&self, tokens: u64, unix_s: u64) {
        self.with(|used| {
            used.turn_day(unix_s);
            used.tokens = used.tokens.saturating_add(tokens);
        });
    }

    fn with<T>(&self, change: impl FnOnce(&mut Used) -> T) -> T {
        change(&mut self.used.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Used {
    fn turn_day(&mut self, unix_s: u64) {
        let day = unix_s / DAY_S;
        if day > self.day {
            (self.day, self.tokens) = (day, 0);
        }
    }
}

impl Lease {
    /// Counts the tokens of one run.
    pub(crate) fn spend(&self, tokens: u64, unix_s: u64) {
        if let Some(meter) = &self.0 {
            meter.spend(tokens, unix_s);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(meter) = &self.0 {
            meter.with(|used| used.running = used.running.saturating_sub(1));
        }
    }
}

fn exceeded(text: String, limit: &'static str, retry_after_s: u64) -> ApiError {
    let error = ApiError::busy(text, retry_after_s.max(1));
    ApiError { kind: "rate_limit_error", ..error }
        .with_status(StatusCode::TOO_MANY_REQUESTS)
        .with_code(limit)
}

#[cfg(test)]
mod tests;
