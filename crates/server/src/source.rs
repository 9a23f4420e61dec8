//! Where a served model comes from: a file, or, in tests, a script.

use causeway_engine::Limits;
use causeway_policy::PolicyFile;
use causeway_session::Opening;

use crate::memory::Memory;
use crate::options::Sizing;
use crate::served::{ServeModelError, Served, Watched};

/// Where a model comes from.
#[derive(Debug, Clone)]
pub enum Source {
    /// A file, and the policy that it makes of itself: a request's fields go over it.
    File { opening: Opening, own: Option<Box<PolicyFile>> },
    #[cfg(feature = "scripted")]
    Script(std::sync::Arc<crate::scripted::Script>),
}

impl Source {
    /// The name it is asked for by.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::File { opening, .. } => &opening.name,
            #[cfg(feature = "scripted")]
            Self::Script(script) => script.name(),
        }
    }

    /// The policy that the model makes of itself.
    #[must_use]
    pub fn own(&self) -> Option<&PolicyFile> {
        match self {
            Self::File { own, .. } => own.as_deref(),
            #[cfg(feature = "scripted")]
            Self::Script(script) => script.own(),
        }
    }

    /// What it takes of the machine's memory.
    pub(crate) fn memory(&self, limits: &Limits) -> Memory {
        match self {
            Self::File { opening, .. } => Memory::of(opening, limits),
            #[cfg(feature = "scripted")]
            Self::Script(script) => script.memory(),
        }
    }

    /// Opens it; takes as long as its weights take to be laid out.
    ///
    /// # Errors
    /// A model that cannot be served under this policy.
    pub fn open(
        &self,
        policy: &PolicyFile,
        sizing: &Sizing,
        watched: Watched,
    ) -> Result<Served, ServeModelError> {
        match self {
            Self::File { opening, .. } => Served::open(opening.clone(), policy, sizing, watched),
            #[cfg(feature = "scripted")]
            Self::Script(script) => crate::scripted::open(script, sizing, watched),
        }
    }
}
