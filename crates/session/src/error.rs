//! What can be wrong before a run begins.

use std::path::PathBuf;
use std::sync::Arc;

use causeway_constraint::{ConstraintError, EnvironmentError, ReadError, ToolError};
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
    #[error(transparent)]
    Form(Box<FormError>),
    #[error("the tokenizer has {tokens} tokens, the model's embedding only {rows} rows")]
    Vocabulary { tokens: usize, rows: usize },
}

/// Why an answer cannot be held to what its policy asks for.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FormError {
    #[error("`{field}`: {source}")]
    Refused { field: &'static str, source: Box<ConstraintError> },
    #[error("`constraints.schema`: {source}")]
    Unread { source: Arc<ReadError> },
    #[error("`constraints.tools`: {source}")]
    Tools { source: ToolError },
    #[error("`constraints.tools` is not JSON")]
    ToolsUnread,
    #[error("`constraints.tools` is set, but the model's chat template has no form for calls")]
    NoToolFormat,
    #[error("this model's answers cannot be held to a form")]
    Vocabulary(#[from] EnvironmentError),
    #[error(
        "the response prefill breaks what `{field}` asks for, at its token {place}: \
         {reason}"
    )]
    PrefillBreaks { field: &'static str, place: usize, reason: String },
    #[error("the response prefill is all that `{field}` allows: nothing is left to write")]
    PrefillCompletes { field: &'static str },
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

impl From<FormError> for SessionError {
    fn from(error: FormError) -> Self {
        Self::Form(Box::new(error))
    }
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
            Self::Form(error) => error.is_callers_mistake(),
            Self::Prompt(error) => error.is_callers_mistake(),
            Self::Vocabulary { .. } => false,
        }
    }
}

impl FormError {
    /// Whether another form would do.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        match self {
            Self::Refused { source, .. } => source.is_callers_mistake(),
            Self::Vocabulary(error) => error.is_callers_mistake(),
            Self::Unread { .. }
            | Self::Tools { .. }
            | Self::ToolsUnread
            | Self::NoToolFormat
            | Self::PrefillBreaks { .. }
            | Self::PrefillCompletes { .. } => true,
        }
    }

    /// The field of the policy that asks for the form.
    #[must_use]
    pub fn field(&self) -> Option<&'static str> {
        match self {
            Self::Refused { field, .. }
            | Self::PrefillBreaks { field, .. }
            | Self::PrefillCompletes { field } => Some(field),
            Self::Unread { .. } => Some("constraints.schema"),
            Self::Tools { .. } | Self::ToolsUnread | Self::NoToolFormat => {
                Some("constraints.tools")
            }
            Self::Vocabulary(_) => None,
        }
    }

    /// Where in a schema the fault lies, as a JSON pointer in a URI fragment, if it is one.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Refused { source, .. } => source.path(),
            _ => None,
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
