//! The schedule: sends each request at its time, and never waits for one to send the next.

use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep_until, timeout};

use crate::clock::Clock;
use crate::error::LoadError;
use crate::outcome::Outcome;
use crate::plan::{Plan, Planned};

/// How often a wait looks whether the run is to stop.
const LOOK: Duration = Duration::from_millis(100);
/// How long a client of a closed loop rests after a failure, so that a dead server is not hammered.
const REST_US: u64 = 100_000;

/// What a run is driven by.
pub(crate) struct Drive<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) clock: Clock,
    /// Set from outside: no further request is sent, and those in flight are given up.
    pub(crate) stop: &'a AtomicBool,
    /// Takes each outcome when it is there.
    pub(crate) keep: &'a mut dyn FnMut(Outcome) -> io::Result<()>,
}

impl Drive<'_> {
    /// Runs the plan to its end. `send` prepares a request for its scheduled time at once, and
    /// sends it when what it returns is awaited; returns how many were given up.
    pub(crate) async fn run<S, F>(&mut self, send: S) -> Result<u64, LoadError>
    where
        S: Fn(Planned, u64) -> F,
        F: Future<Output = Outcome> + Send + 'static,
    {
        match self.plan.concurrency() {
            Some(clients) => self.closed(clients, send).await,
            None => self.open(send).await,
        }
    }

    /// Open loop: arrivals come at their times, however many are still unanswered.
    async fn open<S, F>(&mut self, send: S) -> Result<u64, LoadError>
    where
        S: Fn(Planned, u64) -> F,
        F: Future<Output = Outcome> + Send + 'static,
    {
        let mut tasks = JoinSet::new();
        for planned in (0..).map_while(|index| self.plan.planned(index)) {
            let at_us = planned.at_us.expect("an open loop has a time for each arrival");
            // Prepared before its time, so that this does not count as lag.
            let request = send(planned, at_us);
            if !self.wait_until(at_us).await {
                break;
            }
            tasks.spawn(request);
            while let Some(joined) = tasks.try_join_next() {
                self.take(joined)?;
            }
        }
        while let Some(joined) = self.next(&mut tasks).await {
            self.take(joined)?;
        }
        Ok(tasks.len() as u64)
    }

    /// Closed loop: a client's next request is scheduled for the moment its last one ended.
    async fn closed<S, F>(&mut self, clients: usize, send: S) -> Result<u64, LoadError>
    where
        S: Fn(Planned, u64) -> F,
        F: Future<Output = Outcome> + Send + 'static,
    {
        let end_us = self.plan.settings().span.map_or(u64::MAX, crate::Span::us);
        let clock = self.clock;
        let mut requests = (0..).map_while(|index| self.plan.planned(index));
        let mut tasks = JoinSet::new();
        for planned in requests.by_ref().take(clients) {
            tasks.spawn(send(planned, 0));
        }
        while let Some(joined) = self.next(&mut tasks).await {
            let free_us = self.take(joined)?;
            if free_us >= end_us || self.stop.load(Ordering::Relaxed) {
                continue;
            }
            if let Some(planned) = requests.next() {
                let request = send(planned, free_us);
                tasks.spawn(async move {
                    sleep_until(clock.instant(free_us)).await;
                    request.await
                });
            }
        }
        Ok(tasks.len() as u64)
    }

    /// Waits for a time; false if the run is to stop.
    async fn wait_until(&self, at_us: u64) -> bool {
        let moment = self.clock.instant(at_us);
        while !self.stop.load(Ordering::Relaxed) {
            if timeout(LOOK, sleep_until(moment)).await.is_ok() {
                return true;
            }
        }
        false
    }

    /// The next outcome; none if there are no more, or the run is to stop.
    async fn next(&self, tasks: &mut JoinSet<Outcome>) -> Option<Result<Outcome, JoinError>> {
        while !self.stop.load(Ordering::Relaxed) {
            if let Ok(joined) = timeout(LOOK, tasks.join_next()).await {
                return joined;
            }
        }
        None
    }

    /// Takes an outcome; returns when its client is free for another request.
    fn take(&mut self, joined: Result<Outcome, JoinError>) -> Result<u64, LoadError> {
        let outcome = joined.expect("a request neither panics nor is aborted before its end");
        let rest_us = if outcome.ending.failure().is_some() { REST_US } else { 0 };
        let free_us = outcome.ended_us + rest_us;
        (self.keep)(outcome).map_err(|source| LoadError::Keep { source })?;
        Ok(free_us)
    }
}

#[cfg(test)]
mod tests;
