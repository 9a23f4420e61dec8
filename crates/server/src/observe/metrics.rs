//! Prometheus metrics: counted as things happen, written down when they are asked for.

mod families;
mod labels;
mod looks;

use std::sync::Arc;

use causeway_ledger::{Stop, gaps};
use prometheus_client::registry::Registry;

use self::families::Families;
use self::labels::{CancelLabels, EndLabels, HttpLabels, KindLabels, ModelLabels, ReasonLabels};
pub(crate) use self::looks::Seen;
use self::looks::Snapshot;
use crate::driver::Look;
use crate::error::ApiError;
use crate::observe::{EndedRun, Exchange, Observer, Taken};

/// What Prometheus is told.
#[derive(Debug)]
pub struct Metrics {
    families: Families,
    snapshot: Arc<Snapshot>,
    registry: Registry,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("causeway");
        let families = Families::register(&mut registry);
        let snapshot = Arc::new(Snapshot::default());
        registry.register_collector(Box::new(Arc::clone(&snapshot)));
        Self { families, snapshot, registry }
    }
}

impl Metrics {
    /// All metrics in Prometheus's text format, version 0.0.4.
    pub(crate) fn text(&self, seen: Seen) -> String {
        self.snapshot.set(seen);
        let mut text = String::new();
        let written =
            prometheus_client::encoding::prometheus_text::encode(&mut text, &self.registry);
        written.expect("invariant: a String takes what is written");
        text
    }
}

impl Observer for Metrics {
    fn taken(&self, taken: &Taken<'_>) {
        let started = self.families.runs_started.get_or_create(&model(taken.model)).clone();
        started.inc_by(taken.choices as u64);
    }

    fn refused(&self, _id: &str, _path: &str, error: &ApiError) {
        // A status says it where there is no code.
        let reason =
            error.code.unwrap_or_else(|| error.status.canonical_reason().unwrap_or("other"));
        let labels = ReasonLabels { status: error.status.as_u16(), reason: reason.to_owned() };
        self.families.refusals.get_or_create(&labels).inc();
    }

    fn stepped(&self, name: &str, look: &Look, took_ns: u64) {
        let (families, labels, pass) = (&self.families, model(name), look.pass);
        families.passes.get_or_create(&labels).inc();
        families.pass_seconds.get_or_create(&labels).observe(seconds(took_ns));
        if let Some(waited_ns) = pass.mask_wait_ns {
            families.mask_wait_seconds.get_or_create(&labels).observe(seconds(waited_ns));
        }
        families.batch_occupancy.get_or_create(&labels).observe(number(pass.requests));
        let prefill_rows = pass.rows.saturating_sub(pass.decode_rows);
        for (kind, rows) in [("prefill", prefill_rows), ("decode", pass.decode_rows)] {
            families.pass_rows.get_or_create(&kind_of(name, kind)).inc_by(rows as u64);
        }
    }

    fn ended(&self, ended: &EndedRun<'_>) {
        let record = ended.record;
        let name = record.start.model.name.as_str();
        let reason = if ended.is_given_again { "given_again" } else { record.end.stop.name() };
        let labels = EndLabels { model: name.to_owned(), reason };
        self.families.runs_ended.get_or_create(&labels).inc();
        if ended.is_given_again {
            return;
        }
        if let Stop::Cancelled { by, .. } = &record.end.stop {
            let labels = CancelLabels { model: name.to_owned(), by: by.name() };
            self.families.cancels.get_or_create(&labels).inc();
        }
        self.count_tokens(ended);
        self.time(ended);
    }

    fn lost(&self, _id: &str, name: &str) {
        let labels = EndLabels { model: name.to_owned(), reason: "panic" };
        self.families.runs_ended.get_or_create(&labels).inc();
    }

    fn answered(&self, exchange: &Exchange<'_>) {
        let labels = HttpLabels {
            route: exchange.route.to_owned(),
            method: exchange.method.as_str().to_owned(),
            status: exchange.status.as_u16(),
        };
        self.families.http_requests.get_or_create(&labels).inc();
    }
}

impl Metrics {
    fn count_tokens(&self, ended: &EndedRun<'_>) {
        let record = ended.record;
        let name = record.start.model.name.as_str();
        let (tokens, passes) = (&record.end.account.tokens, &record.end.account.passes);
        // A part of a character, which only its neighbours make whole.
        let is_fallback = |piece: &[u8]| std::str::from_utf8(piece).is_err();
        let fallback = record.steps.iter().filter(|step| is_fallback(&step.piece.0)).count();
        let kinds = [
            ("prompt", tokens.prompt),
            ("prefilled", tokens.prefilled),
            ("cached", tokens.cached),
            ("generated", tokens.prefix),
            ("forced", tokens.forced),
            ("reasoning", tokens.reasoning),
            ("visible", tokens.visible),
            ("byte_fallback", fallback as u64),
        ];
        for (kind, count) in kinds {
            self.families.tokens.get_or_create(&kind_of(name, kind)).inc_by(count);
        }
        for (kind, count) in [("prefill", passes.prefill), ("decode", passes.decode)] {
            self.families.run_passes.get_or_create(&kind_of(name, kind)).inc_by(count);
        }
        let labels = model(name);
        let families = &self.families;
        #[expect(clippy::cast_precision_loss, reason = "a context is far below 2^52 tokens")]
        let (prompt, generated) = (tokens.prompt as f64, tokens.prefix as f64);
        families.prompt_tokens.get_or_create(&labels).observe(prompt);
        families.generated_tokens.get_or_create(&labels).observe(generated);
        let entropy = families.entropy.get_or_create(&labels).clone();
        record.steps.iter().for_each(|step| entropy.observe(step.reasons.entropy));
    }

    fn time(&self, ended: &EndedRun<'_>) {
        let record = ended.record;
        let (families, labels) = (&self.families, model(&record.start.model.name));
        let times = &record.end.account.times;
        if ended.passes.queued_ns.is_some() {
            families.queue_seconds.get_or_create(&labels).observe(seconds(times.queued_ns));
        }
        if let Some(ttft_ns) = times.ttft_ns {
            families.ttft_seconds.get_or_create(&labels).observe(seconds(ttft_ns));
        }
        if let Some(tpot_ns) = times.tpot_ns {
            families.tpot_seconds.get_or_create(&labels).observe(seconds(tpot_ns));
        }
        let itl = families.itl_seconds.get_or_create(&labels).clone();
        gaps(&record.steps).for_each(|gap_ns| itl.observe(seconds(gap_ns)));
        families.run_seconds.get_or_create(&labels).observe(seconds(times.total_ns));
    }
}

fn model(name: &str) -> ModelLabels {
    ModelLabels { model: name.to_owned() }
}

fn kind_of(name: &str, kind: &'static str) -> KindLabels {
    KindLabels { model: name.to_owned(), kind }
}

/// Seconds, as Prometheus counts time.
#[expect(clippy::cast_precision_loss, reason = "a bucket is no nearer than that")]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "requests at once are far below 2^52")]
fn number(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests;
