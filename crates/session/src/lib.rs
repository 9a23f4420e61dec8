//! What a run needs before its first pass: an opened model, a policy for it, a prompt.
//!
//! It may not know an engine, sockets or a clock: the date a template prints is an argument.
//! `Loaded::open` → `Loaded::about`; `prompt` → `compile` → `start`: a record's first half, whose
//! effective request is what the engine is given.
//! `Forms` compiles what answers are held to, and `guide` holds one answer to it.
//! `KvDisk` keeps an engine's idle prefixes in files.

mod about;
mod compile;
mod defaults;
mod error;
mod fields;
mod forms;
mod guide;
mod kv_disk;
mod loaded;
mod prompt;
mod start;
mod thought;
mod threads;
#[cfg(test)]
mod toy;

pub use about::{About, cpu_name};
pub use compile::compile;
pub use defaults::{Defaults, Said, sampling_keys};
pub use error::{FitError, FormError, PromptError, SessionError};
pub use fields::{fields_of, with_fields};
pub use forms::{FormPlan, Forms};
pub use guide::guide;
pub use kv_disk::{KvDisk, KvDiskCounts, KvDiskError, Told};
pub use loaded::{Loaded, Opening, kernels_of_environment};
pub use prompt::{Given, Prompt, message_of, prompt, with_template};
pub use start::{Asked, Place, answer_rules, drawn_seed, policy_used, start};

/// Calls of tools, read back from an answer.
pub use causeway_constraint::{ToolCall, ToolEvent, ToolFormat, ToolParser};
/// Remembers hashes of weights.
pub use causeway_models::Hashes;
pub use threads::{ThreadsBy, threads_by_default};
