//! The exact reason a run ended.

use crate::TokenId;

/// Who asked for a run to end before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Canceller {
    /// The person or program that sent the request.
    Client,
    /// The connection went away.
    Disconnect,
    /// Whoever runs the engine.
    Operator,
    /// The engine is shutting down.
    Shutdown,
}

/// Why a run ended; exactly one per run.
#[derive(Debug, Clone, PartialEq)]
pub enum StopReason {
    /// The model's end-of-text token was chosen.
    Eos { token: TokenId },
    /// A stop token of the policy was chosen.
    StopToken { token: TokenId },
    /// A stop string of the policy was completed.
    StopString { string: String },
    /// The budget of generated tokens is used up.
    MaxTokens { tokens_max: usize },
    /// The next token would not fit into the context.
    ContextFull { context_len: usize },
    /// The schema allows nothing but the end.
    SchemaComplete,
    /// Someone asked; `after_step` counts the steps that had run.
    Cancelled { by: Canceller, after_step: u32 },
    /// The request's deadline passed.
    Deadline { after_step: u32 },
    /// The run could not go on; the sentence says why. Where the request asked for something
    /// impossible, as a policy that leaves no token, that is said beside it.
    Error { message: String, is_callers_mistake: bool },
}

impl StopReason {
    /// The reason's name in records and on the wire.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Eos { .. } => "eos",
            Self::StopToken { .. } => "stop_token",
            Self::StopString { .. } => "stop_string",
            Self::MaxTokens { .. } => "max_tokens",
            Self::ContextFull { .. } => "context_full",
            Self::SchemaComplete => "schema_complete",
            Self::Cancelled { .. } => "cancelled",
            Self::Deadline { .. } => "deadline",
            Self::Error { .. } => "error",
        }
    }
}
