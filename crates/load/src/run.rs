//! A whole run: from settings to a report.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use serde_json::Value;

use crate::arrivals::Arrivals;
use crate::client::Client;
use crate::clock::Clock;
use crate::drive::Drive;
use crate::error::LoadError;
use crate::outcome::Outcome;
use crate::plan::{Plan, Planned};
use crate::report::{Limits, Report, Window};
use crate::span::Span;
use crate::target::{Key, Server, Shape};

/// What a run needs to know besides its plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub server: Server,
    pub shape: Shape,
    pub key: Option<Key>,
    /// Requests that arrive before this are sent, but not measured.
    pub warmup: Span,
    /// The time that a request has, from its scheduled arrival.
    pub timeout: Span,
    pub limits: Limits,
}

/// What was asked, and when.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanConditions {
    /// Equal for runs that asked for the same at the same times.
    pub hash: String,
    pub arrivals: String,
    pub seed: u64,
    /// None for a trace, which has lengths of its own.
    pub prompt_words: Option<String>,
    pub output_tokens: Option<String>,
    pub shared_prefix: u32,
    pub disconnect_rate: f64,
    /// Rows of the trace that are left out.
    pub trace_skipped: u64,
}

/// What a figure never travels without.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Conditions {
    pub url: String,
    pub endpoint: &'static str,
    pub model: Option<String>,
    pub plan: PlanConditions,
    pub ignore_eos: bool,
    pub seeds: bool,
    pub body: Value,
    pub warmup_s: f64,
    pub timeout_s: f64,
}

/// Conditions and figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    pub conditions: Conditions,
    #[serde(flatten)]
    pub report: Report,
}

/// Runs a plan against a server and blocks until its last request has ended. `keep` takes each
/// outcome as it ends; `stop`, once set, gives up what is in flight.
///
/// # Errors
/// If a limit is out of range, the client cannot start, no model is named and the server names none, or `keep` fails.
/// What goes wrong with a request is a figure of the report.
pub fn run(
    plan: &Plan,
    settings: &Settings,
    stop: &AtomicBool,
    keep: &mut dyn FnMut(&Outcome) -> io::Result<()>,
) -> Result<Run, LoadError> {
    settings.limits.check()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|source| LoadError::Client { source })?;
    runtime.block_on(measure(plan, settings, stop, keep))
}

async fn measure(
    plan: &Plan,
    settings: &Settings,
    stop: &AtomicBool,
    keep: &mut dyn FnMut(&Outcome) -> io::Result<()>,
) -> Result<Run, LoadError> {
    let Settings { server, shape, key, warmup, timeout, limits } = settings.clone();
    let client = Arc::new(Client { server, key, timeout });
    let mut shape = shape;
    if shape.model.is_none() {
        shape.model = Some(client.first_model().await?);
    }
    let conditions = conditions(plan, settings, &shape);
    let mut outcomes = Vec::new();
    let mut keep_both = |outcome: Outcome| {
        keep(&outcome)?;
        outcomes.push(outcome);
        Ok(())
    };
    let clock = Clock::start();
    let path = shape.endpoint.path();
    let send = |planned: Planned, scheduled_us| {
        let client = Arc::clone(&client);
        let body = shape.body_of(&planned, plan.prompt(&planned));
        async move { client.ask(path, planned, body, scheduled_us, clock).await }
    };
    let given_up = Drive { plan, clock, stop, keep: &mut keep_both }.run(send).await?;
    let window = window(plan, warmup, &outcomes);
    Ok(Run { conditions, report: Report::of(&outcomes, window, limits, given_up) })
}

/// From the end of the warm-up to the end of the span, or of the last request where a number of
/// requests ends the run sooner.
fn window(plan: &Plan, warmup: Span, outcomes: &[Outcome]) -> Window {
    let last_us = outcomes.iter().map(|outcome| outcome.ended_us + 1).max().unwrap_or(0);
    let settings = plan.settings();
    let end_us = match settings.span {
        Some(span) if settings.requests.is_none() => span.us(),
        Some(span) => span.us().min(last_us),
        None => last_us,
    };
    Window { start_us: warmup.us(), end_us }
}

fn conditions(plan: &Plan, settings: &Settings, shape: &Shape) -> Conditions {
    let planned = plan.settings();
    let is_trace = matches!(planned.arrivals, Arrivals::Trace { .. });
    Conditions {
        url: settings.server.url(),
        endpoint: shape.endpoint.path(),
        model: shape.model.clone(),
        plan: PlanConditions {
            hash: plan.hash(),
            arrivals: planned.arrivals.to_string(),
            seed: planned.seed,
            prompt_words: (!is_trace).then(|| planned.prompt_words.to_string()),
            output_tokens: (!is_trace).then(|| planned.output_tokens.to_string()),
            shared_prefix: planned.shared_prefix,
            disconnect_rate: planned.disconnect_rate,
            trace_skipped: plan.skipped(),
        },
        ignore_eos: shape.ignore_eos,
        seeds: shape.seeds,
        body: Value::Object(shape.body.clone()),
        warmup_s: settings.warmup.duration().as_secs_f64(),
        timeout_s: settings.timeout.duration().as_secs_f64(),
    }
}
