//! The metrics that are counted as things happen: names, words and buckets.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::labels::{CancelLabels, EndLabels, HttpLabels, KindLabels, ModelLabels, ReasonLabels};

type Histograms = Family<ModelLabels, Histogram, fn() -> Histogram>;

/// Every metric that is counted as things happen.
#[derive(Debug)]
pub(super) struct Families {
    pub(super) runs_started: Family<ModelLabels, Counter>,
    pub(super) runs_ended: Family<EndLabels, Counter>,
    pub(super) cancels: Family<CancelLabels, Counter>,
    pub(super) refusals: Family<ReasonLabels, Counter>,
    pub(super) tokens: Family<KindLabels, Counter>,
    pub(super) run_passes: Family<KindLabels, Counter>,
    pub(super) passes: Family<ModelLabels, Counter>,
    pub(super) pass_rows: Family<KindLabels, Counter>,
    pub(super) pass_seconds: Histograms,
    pub(super) mask_wait_seconds: Histograms,
    pub(super) batch_occupancy: Histograms,
    pub(super) queue_seconds: Histograms,
    pub(super) ttft_seconds: Histograms,
    pub(super) itl_seconds: Histograms,
    pub(super) tpot_seconds: Histograms,
    pub(super) run_seconds: Histograms,
    pub(super) prompt_tokens: Histograms,
    pub(super) generated_tokens: Histograms,
    pub(super) entropy: Histograms,
    pub(super) http_requests: Family<HttpLabels, Counter>,
}

impl Families {
    /// Metrics at 0, known to a registry.
    pub(super) fn register(registry: &mut Registry) -> Self {
        let families = Self {
            runs_started: Family::default(),
            runs_ended: Family::default(),
            cancels: Family::default(),
            refusals: Family::default(),
            tokens: Family::default(),
            run_passes: Family::default(),
            passes: Family::default(),
            pass_rows: Family::default(),
            pass_seconds: Family::new_with_constructor(short_times),
            mask_wait_seconds: Family::new_with_constructor(waits),
            batch_occupancy: Family::new_with_constructor(places),
            queue_seconds: Family::new_with_constructor(long_times),
            ttft_seconds: Family::new_with_constructor(long_times),
            itl_seconds: Family::new_with_constructor(short_times),
            tpot_seconds: Family::new_with_constructor(short_times),
            run_seconds: Family::new_with_constructor(long_times),
            prompt_tokens: Family::new_with_constructor(lengths),
            generated_tokens: Family::new_with_constructor(lengths),
            entropy: Family::new_with_constructor(nats),
            http_requests: Family::default(),
        };
        families.register_counters(registry);
        families.register_histograms(registry);
        families
    }

    fn register_counters(&self, registry: &mut Registry) {
        let runs = "Choices of requests that an engine took";
        registry.register("runs_started", runs, self.runs_started.clone());
        let ends = "Choices that ended, by stop reason; `given_again` ran no step";
        registry.register("runs_ended", ends, self.runs_ended.clone());
        let cancels = "Choices that were cancelled, by whom";
        registry.register("runs_cancelled", cancels, self.cancels.clone());
        let refusals = "Requests that were refused or failed before an answer, by reason";
        registry.register("refusals", refusals, self.refusals.clone());
        let tokens = "Tokens of choices that ended, by kind; kinds overlap";
        registry.register("tokens", tokens, self.tokens.clone());
        let run_passes = "Passes of choices that ended; a pass shared by two counts for both";
        registry.register("run_passes", run_passes, self.run_passes.clone());
        registry.register("passes", "Forward passes", self.passes.clone());
        let rows = "Positions that forward passes computed";
        registry.register("pass_rows", rows, self.pass_rows.clone());
        let http = "Responses, by route, method and status";
        registry.register("http_requests", http, self.http_requests.clone());
    }

    fn register_histograms(&self, registry: &mut Registry) {
        let histograms = [
            ("pass_seconds", "How long a forward pass took", &self.pass_seconds),
            ("mask_wait_seconds", "How long a pass waited for its masks", &self.mask_wait_seconds),
            ("batch_occupancy", "Requests of a forward pass", &self.batch_occupancy),
            ("queue_seconds", "From arrival to the first pass", &self.queue_seconds),
            ("ttft_seconds", "From arrival to the first token", &self.ttft_seconds),
            ("itl_seconds", "Between two tokens of a choice", &self.itl_seconds),
            ("tpot_seconds", "A choice's time for each further token", &self.tpot_seconds),
            ("run_seconds", "From arrival to the end of a choice", &self.run_seconds),
            ("prompt_tokens", "Length of a prompt", &self.prompt_tokens),
            ("generated_tokens", "Length of an answer", &self.generated_tokens),
            ("entropy_nats", "Entropy of the raw prediction, by step", &self.entropy),
        ];
        for (name, help, histogram) in histograms {
            registry.register(name, help, histogram.clone());
        }
    }
}

/// One value, then twice and five times each power of ten after it.
fn steps(from: f64, count: usize) -> impl Iterator<Item = f64> {
    let factors = [1.0, 2.0, 5.0];
    (0_i32..).flat_map(move |power| factors.map(|f| f * from * 10_f64.powi(power))).take(count)
}

/// 1 ms to 10 s.
fn short_times() -> Histogram {
    Histogram::new(steps(0.001, 13))
}

/// None at all, and 10 µs to 100 ms.
fn waits() -> Histogram {
    let bounds = [0.0, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1];
    Histogram::new(bounds)
}

/// 5 ms to 500 s.
fn long_times() -> Histogram {
    Histogram::new(steps(0.001, 18).skip(2))
}

/// 1 to 512 requests.
fn places() -> Histogram {
    Histogram::new((0..10).map(|power| f64::from(1_u32 << power)))
}

/// 1 to 131,072 tokens.
fn lengths() -> Histogram {
    Histogram::new((0..18).map(|power| f64::from(1_u32 << power)))
}

/// 0.01 to 10 nats; 152,000 equal tokens have 11.9.
fn nats() -> Histogram {
    Histogram::new([0.01, 0.03, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0])
}
