//! Sends requests at their scheduled times and measures what comes back.
//!
//! It may not know engine, model or kernels: a server is an address that speaks the OpenAI API.
//! settings → plan → schedule → client → outcomes → report.

mod arrivals;
mod chunk;
mod client;
mod clock;
mod counts;
mod draw;
mod drive;
mod error;
mod outcome;
mod plan;
mod report;
mod run;
mod span;
mod spread;
mod sse;
mod target;
mod trace;
mod words;

pub use arrivals::{Arrivals, CONCURRENCY_MAX};
pub use counts::{COUNT_MAX, Counts};
pub use error::{LoadError, SettingError, TraceError};
pub use outcome::{Answer, Ending, Outcome, Usage};
pub use plan::{HangUp, Plan, PlanSettings, Planned, REQUESTS_MAX};
pub use report::{Counts as RequestCounts, Goodput, Limits, Report, Throughput, Tokens};
pub use run::{Conditions, PlanConditions, Run, Settings, run};
pub use span::Span;
pub use spread::{P99_COUNT_MIN, Spread};
pub use target::{Endpoint, Key, Server, Shape, read_body};
