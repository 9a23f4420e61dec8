//! Who looks on: the log with its form and level, and collectors that the environment names.

use std::sync::Arc;

use causeway_server::observe::logs::Logs;
use causeway_server::observe::telemetry::{Collectors, Telemetry, TelemetryError};
use causeway_server::observe::{All, Observer};
use tracing_subscriber::filter::LevelFilter;

use crate::failure::Failure;

/// What is logged, on standard error.
#[derive(Debug, clap::Args)]
pub(super) struct LogFlags {
    /// One line of text for each event, or one of JSON.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    log_format: String,
    /// The least that is logged.
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    #[arg(value_parser = ["off", "error", "warn", "info", "debug"])]
    log_level: String,
    /// Log prompts, answers and the sentences of refusals too.
    #[arg(long)]
    log_prompts: bool,
}

impl LogFlags {
    /// Begins the log.
    pub(super) fn begin(&self) -> Result<Arc<dyn Observer>, Failure> {
        let level: LevelFilter = self.log_level.parse().map_err(Failure::caller)?;
        let log = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_target(false)
            .with_writer(std::io::stderr);
        let begun = match self.log_format.as_str() {
            "json" => log.json().flatten_event(true).with_current_span(false).try_init(),
            _ => log.with_ansi(false).try_init(),
        };
        begun.map_err(|error| Failure::world(anyhow::anyhow!("no log can be begun: {error}")))?;
        let mut observers: Vec<Arc<dyn Observer>> =
            vec![Arc::new(Logs { with_prompts: self.log_prompts })];
        if let Some(telemetry) = telemetry()? {
            observers.push(Arc::new(telemetry));
        }
        Ok(Arc::new(All(observers)))
    }
}

/// What sends traces and metrics, where the environment names a collector.
fn telemetry() -> Result<Option<Telemetry>, Failure> {
    let begun = Collectors::from_environment().and_then(Telemetry::begin);
    begun.map_err(|error: TelemetryError| {
        let is_callers_mistake = error.is_callers_mistake();
        Failure::of(error, is_callers_mistake)
    })
}
