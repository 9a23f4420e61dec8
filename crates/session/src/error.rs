//! What can be wrong before a run begins.

use std::path::PathBuf;

use causeway_kernels::IsaError;
use causeway_model::ModelError;
use causeway_models::ModelsError;
use causeway_policy::PolicyError;
use causeway_text::{TemplateError, TextError};
use causeway_weights::WeightsError;

/// Why a run cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(transparent)]
    Weights(#[from] WeightsError),
    #[error(transparent)]
    Text(#[from] TextError),
    #[error(transparent)]
    Model(#[from] Box<ModelError>),
    #[error(transparent)]
    Hash(#[from] ModelsError),
    #[error(transparent)]
    Isa(#[from] IsaError),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error(transparent)]
    Prompt(#[from] PromptError),
    #[error(transparent)]
    Fit(#[from] FitError),
    #[error("the tokenizer has {tokens} tokens, the model's embedding only {rows} rows")]
    Vocabulary { tokens: usize, rows: usize },
}

/// Why a policy does not fit a model.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    #[error("the policy sets `{field}`, which is not supported yet")]
    Unsupported { field: &'static str },
    #[error("the policy sets one of `reasoning.open` and `reasoning.close`, but needs both")]
    OneMarker,
    #[error(
        "`reasoning.tokens_max` is set, but not the markers `reasoning.open` and \
         `reasoning.close`: a thought that has no marks has no end"
    )]
    NoMarkers,
    #[error("the vocabulary cannot spell `reasoning.close`, \"{}\"", marker.escape_debug())]
    Unspelled { marker: String },
    #[error("the policy sets `{field}`, but `{model}` has no tokenizer.json to read text with")]
    NeedsText { field: &'static str, model: String },
    #[error("the policy is for model `{pinned}`, not for `{model}`")]
    OtherModel { pinned: String, model: String },
    #[error("the policy is for {what} {pinned}, `{model}` has {found}")]
    OtherHash { what: &'static str, pinned: String, model: String, found: String },
}

/// Why a prompt cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    #[error("the prompt is empty: at least one character is needed")]
    Empty,
    #[error("there are no messages: at least one is needed")]
    NoMessages,
    #[error("the policy sets `{field}`, which only a chat has")]
    NoChat { field: &'static str },
    #[error("the policy's `prompt.template` cannot be read")]
    Template { source: Box<TemplateError> },
    #[error("the policy sets `prompt.system`, but the messages begin with a system message")]
    TwoSystems,
    #[error("the policy sets `prompt.prefill`, but the messages end with an answer to continue")]
    TwoPrefills,
    #[error("`{}` has no tokenizer.json: it takes token ids only", .path.display())]
    NoTokenizer { path: PathBuf },
}

impl SessionError {
    /// Whether another request, policy or flag would do; else the file or the machine is at fault.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        match self {
            Self::Weights(error) => error.is_callers_mistake(),
            Self::Text(error) => error.is_callers_mistake(),
            Self::Model(error) => error.is_callers_mistake(),
            Self::Hash(error) => error.is_callers_mistake(),
            Self::Policy(error) => error.is_callers_mistake(),
            Self::Isa(_) => true,
            Self::Fit(error) => error.is_callers_mistake(),
            Self::Prompt(error) => error.is_callers_mistake(),
            Self::Vocabulary { .. } => false,
        }
    }
}

impl FitError {
    /// Always: another policy or another model would do.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        true
    }
}

impl PromptError {
    /// Always: a prompt comes with its request.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        true
    }
}
