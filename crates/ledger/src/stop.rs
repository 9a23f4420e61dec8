//! The stop reason as a record writes it.

use causeway_request::{Canceller, StopReason, TokenId};
use serde::{Deserialize, Serialize};

use crate::explain::counted;

/// Why a run ended; the form of `causeway_request::StopReason` in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case", deny_unknown_fields)]
pub enum Stop {
    Eos {
        token: u32,
    },
    StopToken {
        token: u32,
    },
    StopString {
        string: String,
    },
    MaxTokens {
        tokens_max: u64,
    },
    ContextFull {
        context_len: u64,
    },
    SchemaComplete {},
    Cancelled {
        by: CancelledBy,
        after_step: u32,
    },
    Deadline {
        after_step: u32,
    },
    Error {
        message: String,
        /// Whether the request asked for something impossible.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_callers_mistake: bool,
    },
}

/// Who asked for a run to end before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelledBy {
    Client,
    Disconnect,
    Operator,
    Shutdown,
}

impl Stop {
    /// The names of all reasons.
    pub const NAMES: [&str; 9] = [
        "eos",
        "stop_token",
        "stop_string",
        "max_tokens",
        "context_full",
        "schema_complete",
        "cancelled",
        "deadline",
        "error",
    ];

    /// Whether the run was ended by something that no replay can bring about again: a cancel, a
    /// deadline, an error. What ran until then is as exact as in any other run.
    #[must_use]
    pub fn is_cut_short(&self) -> bool {
        match self {
            Self::Cancelled { .. } | Self::Deadline { .. } | Self::Error { .. } => true,
            Self::Eos { .. }
            | Self::StopToken { .. }
            | Self::StopString { .. }
            | Self::MaxTokens { .. }
            | Self::ContextFull { .. }
            | Self::SchemaComplete {} => false,
        }
    }

    /// The reason's name alone, as a record writes it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Eos { .. } => "eos",
            Self::StopToken { .. } => "stop_token",
            Self::StopString { .. } => "stop_string",
            Self::MaxTokens { .. } => "max_tokens",
            Self::ContextFull { .. } => "context_full",
            Self::SchemaComplete {} => "schema_complete",
            Self::Cancelled { .. } => "cancelled",
            Self::Deadline { .. } => "deadline",
            Self::Error { .. } => "error",
        }
    }

    /// Whether the last token ended the run and is itself no part of the answer's text.
    #[must_use]
    pub fn is_by_last_token(&self) -> bool {
        matches!(self, Self::Eos { .. } | Self::StopToken { .. })
    }

    /// The reason and its numbers in words: `max_tokens (64)`.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Eos { token } => format!("eos (token {token})"),
            Self::StopToken { token } => format!("stop_token (token {token})"),
            Self::StopString { string } => format!("stop_string ({string:?})"),
            Self::MaxTokens { tokens_max } => format!("max_tokens ({tokens_max})"),
            Self::ContextFull { context_len } => format!("context_full ({context_len})"),
            Self::SchemaComplete {} => "schema_complete".to_owned(),
            Self::Cancelled { by, after_step } => {
                format!("cancelled (by {}, after {})", by.name(), steps(*after_step))
            }
            Self::Deadline { after_step } => format!("deadline (after {})", steps(*after_step)),
            Self::Error { message, .. } => format!("error ({message})"),
        }
    }
}

fn steps(count: u32) -> String {
    counted(count as usize, "step")
}

impl CancelledBy {
    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Disconnect => "disconnect",
            Self::Operator => "operator",
            Self::Shutdown => "shutdown",
        }
    }
}

impl From<&StopReason> for Stop {
    fn from(reason: &StopReason) -> Self {
        match reason {
            StopReason::Eos { token: TokenId(token) } => Self::Eos { token: *token },
            StopReason::StopToken { token: TokenId(token) } => Self::StopToken { token: *token },
            StopReason::StopString { string } => Self::StopString { string: string.clone() },
            StopReason::MaxTokens { tokens_max } => {
                Self::MaxTokens { tokens_max: *tokens_max as u64 }
            }
            StopReason::ContextFull { context_len } => {
                Self::ContextFull { context_len: *context_len as u64 }
            }
            StopReason::SchemaComplete => Self::SchemaComplete {},
            StopReason::Cancelled { by, after_step } => {
                Self::Cancelled { by: (*by).into(), after_step: *after_step }
            }
            StopReason::Deadline { after_step } => Self::Deadline { after_step: *after_step },
            StopReason::Error { message, is_callers_mistake } => {
                Self::Error { message: message.clone(), is_callers_mistake: *is_callers_mistake }
            }
        }
    }
}

impl From<Canceller> for CancelledBy {
    fn from(by: Canceller) -> Self {
        match by {
            Canceller::Client => Self::Client,
            Canceller::Disconnect => Self::Disconnect,
            Canceller::Operator => Self::Operator,
            Canceller::Shutdown => Self::Shutdown,
        }
    }
}

#[cfg(test)]
mod tests;
