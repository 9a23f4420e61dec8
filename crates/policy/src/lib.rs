//! Logits in, one token and its reasons out.
//!
//! Pure: no files, no clock, no ambient randomness; the same bits on every processor.
//! It knows nothing of the model, of text, or of what the tokens mean.
//! `PolicyFile → Policy → choose(logits, context) → Choice`.

mod arithmetic;
mod choose;
mod dense;
mod draw;
mod edits;
mod error;
mod file;
mod guide;
mod like;
mod limits;
mod literal;
mod mask;
mod mass;
mod narrow;
mod noise;
pub mod numpy;
mod philox;
mod policy;
mod repeats;
#[cfg(test)]
mod rows;
mod rule;
mod stage;
mod survivors;
mod top;
mod whole_row;

pub use choose::{Scratch, StepContext, Survivor};
pub use error::{ChooseError, PolicyError};
pub use file::{
    AccountLevel, COUNT_MAX, ChooseRule, Constraints, Dry, FailureMode, Fallback, FileError, Form,
    Identity, Method, ModelPin, OnDisconnect, Operation, PolicyFile, Problem, Problems, PromptText,
    Reasoning, Shape, Slo, Stop, Whitespace, Window,
};
pub use guide::{Guide, Laid, LaidBy, MASK, THOUGHT_BUDGET};
pub use like::Peer;
pub use literal::Literal;
pub use mask::TokenMask;
pub use policy::Policy;
pub use stage::Stage;
pub use top::top_logprobs;
