//! A model whose panics are errors, so that a pass that panics ends one request and not the loop.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use causeway_engine::Forward;

/// A model behind a guard; the engine computes a failed pass again, request by request.
#[derive(Debug)]
pub struct Guarded<F>(pub F);

/// Why a pass could not be computed.
#[derive(Debug, thiserror::Error)]
pub enum GuardError<E: std::error::Error + 'static> {
    #[error(transparent)]
    Model(E),
    #[error("the pass panicked: {message}")]
    Panicked { message: String },
}

impl<E: std::error::Error + 'static> GuardError<E> {
    /// Never: a request that the engine took is the engine's to compute.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        false
    }
}

impl<F: Forward> Forward for Guarded<F> {
    type Error = GuardError<F::Error>;

    fn vocab_size(&self) -> usize {
        self.0.vocab_size()
    }

    fn context_len(&self) -> usize {
        self.0.context_len()
    }

    fn kv_shape(&self, sequences_max: usize, chunk_max: usize) -> causeway_kv_cache::KvShape {
        self.0.kv_shape(sequences_max, chunk_max)
    }

    fn forward(
        &self,
        spans: &[causeway_model::Span<'_>],
        cache: &mut causeway_kv_cache::Cache,
        work: &mut causeway_model::Workspace,
        read: &mut dyn FnMut(&[&[f32]]),
    ) -> Result<(), Self::Error> {
        // What a broken pass wrote into the cache is written again before it is read.
        let pass = AssertUnwindSafe(|| self.0.forward(spans, cache, work, read));
        match catch_unwind(pass) {
            Ok(computed) => computed.map_err(GuardError::Model),
            Err(panic) => Err(GuardError::Panicked { message: panic_text(&*panic).to_owned() }),
        }
    }

    fn share_out(&self, items: usize, work: &(dyn Fn(usize) + Sync)) {
        self.0.share_out(items, work);
    }
}

/// The words of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
