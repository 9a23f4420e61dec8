//! Logits for the scheduled tokens: one forward pass, an architecture is data.
//!
//! It knows no scheduler, no policy, no text and no clock.
//! file → `Config` → re-laid weights → `forward` over spans of sequences → rows of logits.

mod attention;
mod config;
mod error;
mod experts;
mod export;
mod families;
mod fields;
mod forward;
mod load;
mod loader;
mod names;
mod read;
mod relay;
mod rope;
mod workspace;

pub use causeway_kernels::Activation;
pub use config::{Config, Experts, LayerConfig, Shape};
pub use error::{ConfigError, ModelError};
pub use export::{Export, ExportError};
pub use families::{HeadNorms, Norms};
pub use forward::{Logits, Span};
pub use load::{Model, Settings};
pub use rope::{RopeConfig, RopeScaling};
pub use workspace::Workspace;

// Tests in here and those beside read their fixtures by the same file.
#[cfg(test)]
extern crate self as causeway_model;

#[cfg(test)]
mod tests;
