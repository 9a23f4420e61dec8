//! What can go wrong with a setting, a trace or a server, and whose mistake it is.

use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use crate::arrivals::CONCURRENCY_MAX;
use crate::counts::COUNT_MAX;
use crate::plan::REQUESTS_MAX;

/// A setting that cannot be read, or is out of its range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SettingError {
    /// Neither of the forms of arrivals.
    #[error("`{text}` is no arrivals: poisson:RATE, gamma:RATE,CV, trace:FILE or concurrency:N")]
    NotArrivals { text: String },
    /// A number out of its range.
    #[error("{what} is {value}, out of range: {least} to {most}")]
    Range { what: &'static str, value: f64, least: f64, most: f64 },
    /// A concurrency out of range.
    #[error("{count} at a time is out of range: 1 to {CONCURRENCY_MAX}")]
    Concurrency { count: usize },
    /// Not a range of counts.
    #[error("`{text}` is no range of counts, such as 64..1024 or 128")]
    NotCounts { text: String },
    /// A range of counts out of range.
    #[error("counts from {least} to {most} are out of range: 1 to {COUNT_MAX}, the least first")]
    Counts { least: u32, most: u32 },
    /// Not a length of time.
    #[error("`{text}` is no length of time, such as 240s, 4m or 500ms, a day at most")]
    NotSpan { text: String },
    /// Neither a duration nor a number of requests ends the run.
    #[error("nothing ends the run: give --duration or --requests")]
    Endless,
    /// More requests than a run may have.
    #[error("{count} requests are out of range: 1 to {REQUESTS_MAX}")]
    Requests { count: u64 },
    /// A server's address that is none.
    #[error("`{url}` is no server: http://HOST:PORT, perhaps with a path (TLS is not built in)")]
    Url { url: String },
    /// Fields for each request that are no JSON object.
    #[error("the fields of --body are no JSON object")]
    Body,
    /// A header's value that cannot travel.
    #[error("the API key has characters that an HTTP header may not have")]
    Key,
}

/// Refuses a number outside its range.
pub(crate) fn in_range(
    what: &'static str,
    value: f64,
    range: &RangeInclusive<f64>,
) -> Result<f64, SettingError> {
    let (least, most) = (*range.start(), *range.end());
    let is_inside = range.contains(&value);
    if is_inside { Ok(value) } else { Err(SettingError::Range { what, value, least, most }) }
}

/// Why a trace file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// It cannot be read.
    #[error("cannot read the trace `{}`", path.display())]
    File { path: PathBuf, source: io::Error },
    /// Its first line names no known columns.
    #[error(
        "`{}` is no trace: its first line names no arrival, prompt and output columns", path.display()
    )]
    Columns { path: PathBuf },
    /// A line that cannot be read.
    #[error("line {line} of the trace `{}` has no valid {column}", path.display())]
    Line { path: PathBuf, line: usize, column: &'static str },
    /// Arrivals that go backwards.
    #[error("line {line} of the trace `{}` arrives before the one above it", path.display())]
    Order { path: PathBuf, line: usize },
    /// No requests in it.
    #[error("the trace `{}` has no requests", path.display())]
    Empty { path: PathBuf },
    /// More requests than a run may have.
    #[error("the trace `{}` has more than {REQUESTS_MAX} requests", path.display())]
    Long { path: PathBuf },
}

/// Why a run did not begin.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A setting is wrong.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The trace is wrong.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// No threads or sockets for the client itself.
    #[error("cannot start the client")]
    Client { source: io::Error },
    /// The server did not say which models it has.
    #[error("`{url}` does not name its models ({why}): give --model")]
    Models { url: String, why: &'static str },
    /// The server lets nobody in without a key.
    #[error("`{url}` asks for an API key that it knows ({status}): give --api-key")]
    NeedsKey { url: String, status: u16 },
    /// The caller could not keep an outcome.
    #[error("cannot write down a request's outcome")]
    Keep { source: io::Error },
}

impl SettingError {
    /// Always: a setting is what the caller typed.
    pub fn is_callers_mistake(&self) -> bool {
        true
    }
}

impl TraceError {
    /// Whether the trace itself is at fault, not the disk.
    pub fn is_callers_mistake(&self) -> bool {
        !matches!(self, Self::File { .. })
    }
}

impl LoadError {
    /// Whether the caller could have known better.
    pub fn is_callers_mistake(&self) -> bool {
        match self {
            Self::Setting(error) => error.is_callers_mistake(),
            Self::Trace(error) => error.is_callers_mistake(),
            Self::NeedsKey { .. } => true,
            Self::Client { .. } | Self::Models { .. } | Self::Keep { .. } => false,
        }
    }
}
