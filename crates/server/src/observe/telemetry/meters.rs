//! The metrics of generative AI, by the names and buckets of the semantic conventions.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Histogram, MeterProvider as _};
use opentelemetry_sdk::metrics::SdkMeterProvider;

use crate::observe::EndedRun;

/// Buckets that the conventions advise, in seconds and in tokens.
const DURATIONS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const FIRST_TOKENS: [f64; 16] =
    [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
const NEXT_TOKENS: [f64; 13] =
    [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5];
const TOKENS: [f64; 10] =
    [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16_384.0, 65_536.0, 262_144.0];

/// The instruments.
#[derive(Debug)]
pub(super) struct Meters {
    request_duration: Histogram<f64>,
    first_token: Histogram<f64>,
    next_token: Histogram<f64>,
    token_usage: Histogram<u64>,
}

impl Meters {
    pub(super) fn of(provider: &SdkMeterProvider) -> Self {
        let meter = provider.meter("causeway");
        let seconds = |name: &'static str, buckets: &[f64]| {
            let histogram = meter.f64_histogram(name).with_unit("s");
            histogram.with_boundaries(buckets.to_vec()).build()
        };
        Self {
            request_duration: seconds("gen_ai.server.request.duration", &DURATIONS),
            first_token: seconds("gen_ai.server.time_to_first_token", &FIRST_TOKENS),
            next_token: seconds("gen_ai.server.time_per_output_token", &NEXT_TOKENS),
            token_usage: meter
                .u64_histogram("gen_ai.client.token.usage")
                .with_unit("{token}")
                .with_boundaries(TOKENS.to_vec())
                .build(),
        }
    }

    /// Records a run that has ended; one that was given again cost nothing.
    pub(super) fn record(&self, ended: &EndedRun<'_>) {
        if ended.is_given_again {
            return;
        }
        let account = &ended.record.end.account;
        let model = &ended.record.start.model.name;
        let mut labels = vec![
            KeyValue::new("gen_ai.operation.name", operation(ended)),
            KeyValue::new("gen_ai.provider.name", "causeway"),
            KeyValue::new("gen_ai.request.model", model.clone()),
            KeyValue::new("gen_ai.response.model", model.clone()),
        ];
        let times = &account.times;
        self.request_duration.record(seconds(times.total_ns), &labels);
        if let Some(ttft_ns) = times.ttft_ns {
            self.first_token.record(seconds(ttft_ns), &labels);
        }
        if let Some(tpot_ns) = times.tpot_ns {
            self.next_token.record(seconds(tpot_ns), &labels);
        }
        for (kind, count) in [("input", account.tokens.prompt), ("output", account.tokens.prefix)] {
            labels.push(KeyValue::new("gen_ai.token.type", kind));
            self.token_usage.record(count, &labels);
            labels.pop();
        }
    }
}

/// What was asked for, in the conventions' words: a chat where a template made the prompt.
pub(super) fn operation(ended: &EndedRun<'_>) -> &'static str {
    if ended.record.start.template.is_some() { "chat" } else { "text_completion" }
}

#[expect(clippy::cast_precision_loss, reason = "a bucket is no nearer than that")]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
