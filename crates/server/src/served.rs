//! One model that is served: what is said of it, its text side, and its driver.

use std::sync::Arc;

use causeway_engine::{Forward, Limits};
use causeway_ledger::{CacheState, Start};
use causeway_policy::{Guide, Policy, PolicyFile};
use causeway_session::{
    About, FormPlan, Forms, Given, Loaded, Opening, Place, Prompt, SessionError,
};
use causeway_text::{AnswerRules, CivilTime, Text};

use crate::clock::Clock;
use crate::driver::{Around, Driver, Pace};
use crate::error::ApiError;
use crate::observe::Observer;
use crate::options::Sizing;

/// A model at work. When the last request lets go of it, its driver ends and its memory is free.
#[derive(Debug)]
pub struct Served {
    pub about: About,
    pub text: Arc<Text>,
    pub forms: Forms,
    pub driver: Driver,
    /// Requests that run at once, and tokens of a pass at most.
    pub limits: Limits,
}

/// The clock of a server, and who watches it.
#[derive(Debug, Clone)]
pub struct Watched {
    pub clock: Clock,
    pub observer: Arc<dyn Observer>,
}

/// Why a model cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeModelError {
    #[error(transparent)]
    Session(Box<SessionError>),
    #[error("`{name}` has no tokenizer: a server answers in text")]
    NoText { name: String },
    #[error("loading `{name}` panicked")]
    Panicked { name: String },
    #[error("no thread can be started for `{name}`")]
    Thread { name: String, source: std::io::Error },
}

impl From<SessionError> for ServeModelError {
    fn from(error: SessionError) -> Self {
        Self::Session(Box::new(error))
    }
}

impl ServeModelError {
    /// Whether another model or flag would do.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        match self {
            Self::Session(error) => error.is_callers_mistake(),
            Self::NoText { .. } => true,
            Self::Thread { .. } | Self::Panicked { .. } => false,
        }
    }
}

impl Served {
    /// Opens a model file; takes as long as its weights take to be laid out.
    ///
    /// # Errors
    /// A file that cannot be served under this policy.
    pub fn open(
        opening: Opening,
        policy: &PolicyFile,
        sizing: &Sizing,
        watched: Watched,
    ) -> Result<Self, ServeModelError> {
        let loaded = Loaded::open(opening)?;
        let about = loaded.about(&sizing.hashes)?;
        let Loaded { name, model, text, .. } = loaded;
        let text = text.ok_or(ServeModelError::NoText { name })?;
        let text = causeway_session::with_template(text, policy)?;
        causeway_session::compile(policy, &about, &|_| None)?;
        Self::around(model, about, text, sizing, watched)
    }

    /// Serves any source of logits.
    ///
    /// # Errors
    /// A system that gives no more threads.
    pub fn around<F>(
        model: F,
        mut about: About,
        text: Text,
        sizing: &Sizing,
        watched: Watched,
    ) -> Result<Self, ServeModelError>
    where
        F: Forward + Send + 'static,
    {
        let mut limits = sizing.limits;
        limits.model_key = about.model.sha256.0;
        if let Some(positions) = limits.kv_positions_max {
            about.context_len = about.context_len.min(positions);
        }
        let pace = Pace { itl_target_ns: sizing.itl_target_ns, limits };
        let (name, Watched { clock, observer }) = (about.model.name.clone(), watched);
        let kv_disk = sizing.kv_disk.clone();
        let around = Around { name: name.clone(), pace, clock, observer, kv_disk };
        let driver = Driver::start(model, around)
            .map_err(|source| ServeModelError::Thread { name, source })?;
        let text = Arc::new(text);
        let forms = Forms::new(Arc::clone(&text), &about);
        Ok(Self { about, text, forms, driver, limits })
    }

    /// The policy of one request, fitted to this model.
    ///
    /// # Errors
    /// Tokens that the model lacks, or a field that no run of it would heed.
    pub fn compile(&self, file: &PolicyFile) -> Result<Policy, ApiError> {
        Ok(causeway_session::compile(file, &self.about, &|_| None)?)
    }

    /// The plan of the form that a policy asks for; the first one of a model takes longer.
    ///
    /// # Errors
    /// A form that cannot be held.
    pub fn form(&self, policy: &Policy) -> Result<Option<FormPlan>, ApiError> {
        let form = self.forms.plan(&policy.file().constraints.form);
        Ok(form.map_err(SessionError::from)?)
    }

    /// Where a run that comes now takes place.
    #[must_use]
    pub fn place(&self) -> Place {
        let Limits { running_max, budget, prefix_cache, .. } = self.limits;
        Place {
            queue: self.driver.look().load.waiting,
            concurrency: running_max,
            cache: if prefix_cache { CacheState::Cold } else { CacheState::Off },
            chunk: budget,
        }
    }

    /// What an answer is held to beside its policy.
    ///
    /// # Errors
    /// A budget of thought that cannot be kept, a response prefill that breaks the form.
    pub fn guide(
        &self,
        policy: &Policy,
        rules: &AnswerRules,
        form: Option<&FormPlan>,
        start: &Start,
    ) -> Result<Option<Box<dyn Guide>>, ApiError> {
        let prefilled = &start.request.effective.prefilled_tokens;
        Ok(causeway_session::guide(policy, rules, form, prefilled, &self.text)?)
    }

    /// The tokens of one request's prompt.
    ///
    /// # Errors
    /// A prompt that is empty, too long or refused by the template.
    pub fn prompt(
        &self,
        given: Given,
        file: &PolicyFile,
        now: Option<CivilTime>,
    ) -> Result<Prompt, ApiError> {
        Ok(causeway_session::prompt(given, file, &self.about, Some(&self.text), now)?)
    }
}
