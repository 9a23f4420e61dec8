//! OpenTelemetry: a trace of each run and the metrics of generative AI, sent over OTLP/HTTP.
//!
//! Names are those of the semantic conventions for generative AI systems (`gen_ai.*`); what they
//! have no name for begins with `causeway.`.

mod meters;
mod sender;
mod spans;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{
    ExporterBuildError, MetricExporter, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};

use self::meters::Meters;
use self::sender::Sender;
use crate::observe::{EndedRun, Observer};

/// Environment variables that name a collector: of everything, of traces, of metrics.
const ENDPOINTS: [&str; 3] = [
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
];
const EXPORTERS: [&str; 2] = ["OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER"];
const DISABLED: &str = "OTEL_SDK_DISABLED";

/// Where traces and metrics go; what is `None` goes nowhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collectors {
    pub traces: Option<Endpoint>,
    pub metrics: Option<Endpoint>,
}

/// A collector's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// As the usual environment variables say.
    Environment,
    /// This URL, its path included.
    Url(String),
}

/// Why nothing can be sent.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    #[error("${variable} is `{url}`, only http:// is supported")]
    Scheme { variable: &'static str, url: String },
    #[error("the environment says no place that telemetry can be sent to")]
    Exporter(#[from] ExporterBuildError),
    #[error("no thread can be started for telemetry")]
    Thread { source: std::io::Error },
}

impl TelemetryError {
    /// Whether another environment would do.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        !matches!(self, Self::Thread { .. })
    }
}

/// Sends what it is told to collectors, from threads of its own.
#[derive(Debug)]
pub struct Telemetry {
    traces: Option<(SdkTracerProvider, SdkTracer)>,
    metrics: Option<(SdkMeterProvider, Meters)>,
    _sender: Sender,
}

impl Collectors {
    /// The collectors that the environment names; most often none.
    ///
    /// # Errors
    /// One that cannot be reached without TLS.
    pub fn from_environment() -> Result<Self, TelemetryError> {
        Self::from_variables(&|name| std::env::var(name).ok())
    }

    fn from_variables(value: &dyn Fn(&str) -> Option<String>) -> Result<Self, TelemetryError> {
        if value(DISABLED).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(Self::default());
        }
        let value = |name: &str| value(name).filter(|value| !value.is_empty());
        for variable in ENDPOINTS {
            if let Some(url) = value(variable).filter(|url| !url.starts_with("http://")) {
                return Err(TelemetryError::Scheme { variable, url });
            }
        }
        let [all, traces, metrics] = ENDPOINTS.map(|name| value(name).is_some());
        let [no_traces, no_metrics] = EXPORTERS.map(|name| value(name).as_deref() == Some("none"));
        let endpoint = |is_on: bool| is_on.then_some(Endpoint::Environment);
        Ok(Self {
            traces: endpoint((all || traces) && !no_traces),
            metrics: endpoint((all || metrics) && !no_metrics),
        })
    }
}

impl Telemetry {
    /// Begins to send; `None` where there is no collector. Not to be called by an async task.
    ///
    /// # Errors
    /// Variables that say no place, and a system without threads.
    pub fn begin(collectors: Collectors) -> Result<Option<Self>, TelemetryError> {
        let Collectors { traces, metrics } = collectors;
        if traces.is_none() && metrics.is_none() {
            return Ok(None);
        }
        let sender = Sender::start().map_err(|source| TelemetryError::Thread { source })?;
        let traces = traces.map(|endpoint| tracer(endpoint, &sender)).transpose()?;
        let metrics = metrics.map(|endpoint| meter(endpoint, &sender)).transpose()?;
        Ok(Some(Self { traces, metrics, _sender: sender }))
    }
}

fn tracer(
    endpoint: Endpoint,
    sender: &Sender,
) -> Result<(SdkTracerProvider, SdkTracer), ExporterBuildError> {
    let exporter = SpanExporter::builder().with_http().with_http_client(sender.client());
    let exporter = match endpoint {
        Endpoint::Environment => exporter.build()?,
        Endpoint::Url(url) => exporter.with_endpoint(url).build()?,
    };
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource())
        .build();
    let tracer = provider.tracer("causeway");
    Ok((provider, tracer))
}

fn meter(
    endpoint: Endpoint,
    sender: &Sender,
) -> Result<(SdkMeterProvider, Meters), ExporterBuildError> {
    let exporter = MetricExporter::builder().with_http().with_http_client(sender.client());
    let exporter = match endpoint {
        Endpoint::Environment => exporter.build()?,
        Endpoint::Url(url) => exporter.with_endpoint(url).build()?,
    };
    let provider = SdkMeterProvider::builder()
        .with_periodic_exporter(exporter)
        .with_resource(resource())
        .build();
    let meters = Meters::of(&provider);
    Ok((provider, meters))
}

/// What sends: the name of the environment, else the program's own.
fn resource() -> Resource {
    let attributes = std::env::var("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let is_named =
        std::env::var_os("OTEL_SERVICE_NAME").is_some() || attributes.contains("service.name=");
    let resource = Resource::builder();
    if is_named { resource.build() } else { resource.with_service_name("causeway").build() }
}

impl Observer for Telemetry {
    fn ended(&self, ended: &EndedRun<'_>) {
        if let Some((_, tracer)) = &self.traces {
            spans::send(tracer, ended);
        }
        if let Some((_, meters)) = &self.metrics {
            meters.record(ended);
        }
    }

    fn close(&self) {
        // A collector that is gone is no reason for a server not to end; the SDK logs it.
        if let Some((provider, _)) = &self.traces {
            let _ = provider.shutdown();
        }
        if let Some((provider, _)) = &self.metrics {
            let _ = provider.shutdown();
        }
    }
}

#[cfg(test)]
mod tests;
