//! Logits for the scheduled tokens: one forward pass, an architecture is data.
//!
//! It knows no scheduler, no policy, no text and no clock.
//! file → `Config` → re-laid weights → `forward` over spans of sequences → rows of logits.

mod attention;
mod config;
mod error;
mod experts;
mod families;
mod forward;
mod gguf;
mod hf;
mod load;
mod loader;
mod names;
mod relay;
mod rope;
mod workspace;

pub use causeway_kernels::Activation;
pub use config::{Config, Experts, LayerConfig, Shape};
pub use error::{ConfigError, ModelError};
pub use families::{HeadNorms, Norms};
pub use forward::{Logits, Span};
pub use load::{Model, Settings};
pub use rope::{RopeConfig, RopeScaling};
pub use workspace::Workspace;

#[cfg(test)]
mod tests;
