//! A policy and an engine for a command that runs alone.

use causeway_engine::{Engine, Limits};
use causeway_policy::{Policy, PolicyFile};
use causeway_session::About;

use crate::ahead::AheadFlags;
use crate::failure::Failure;
use crate::loaded::session_failure;

/// The policy compiled for a model; a pin that names another model is refused.
pub(crate) fn compile(file: &PolicyFile, about: &About) -> Result<Policy, Failure> {
    let resolve = |name: &str| crate::model_path::resolve(name).ok();
    causeway_session::compile(file, about, &resolve).map_err(session_failure)
}

/// An engine for one request at a time.
pub(crate) fn engine(model: causeway_model::Model, chunk: usize, ahead: AheadFlags) -> Engine {
    let limits = ahead.over(Limits::new(1, chunk));
    Engine::new(model, Limits { queue_max: 0, prefix_cache: false, ..limits })
}
