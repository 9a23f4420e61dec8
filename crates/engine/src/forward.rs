//! What computes logits: a model, or a stand-in with the same face.

use causeway_kv_cache::{Cache, KvShape};
use causeway_model::{Model, ModelError, Span, Workspace};

/// Computes rows of logits; a scripted stand-in may ignore the cache and the workspace.
pub trait Forward {
    /// Why a pass could not be computed.
    type Error: std::error::Error + 'static;

    /// Logits in a row.
    fn vocab_size(&self) -> usize;

    /// Positions that a sequence may have.
    fn context_len(&self) -> usize;

    /// The cache that `sequences_max` sequences need, in passes of at most `chunk_max` tokens.
    fn kv_shape(&self, sequences_max: usize, chunk_max: usize) -> KvShape;

    /// Computes every span and calls `read` once with the rows of logits that the spans want,
    /// in their order. A row depends on the tokens up to its position and on nothing else.
    ///
    /// # Errors
    /// Whatever kept the pass from being computed; `read` was not called then.
    fn forward(
        &self,
        spans: &[Span<'_>],
        cache: &mut Cache,
        work: &mut Workspace,
        read: &mut dyn FnMut(&[&[f32]]),
    ) -> Result<(), Self::Error>;

    /// Calls `work` once for every item below `items`, on all threads that compute.
    fn share_out(&self, items: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..items).for_each(work);
    }
}

impl Forward for Model {
    type Error = ModelError;

    fn vocab_size(&self) -> usize {
        self.config().shape.vocab_size
    }

    fn context_len(&self) -> usize {
        Self::context_len(self)
    }

    fn kv_shape(&self, sequences_max: usize, chunk_max: usize) -> KvShape {
        Self::kv_shape(self, sequences_max, chunk_max)
    }

    fn forward(
        &self,
        spans: &[Span<'_>],
        cache: &mut Cache,
        work: &mut Workspace,
        read: &mut dyn FnMut(&[&[f32]]),
    ) -> Result<(), ModelError> {
        let logits = Self::forward(self, spans, cache, work)?;
        let rows: Vec<&[f32]> = logits.rows().collect();
        read(&rows);
        Ok(())
    }

    fn share_out(&self, items: usize, work: &(dyn Fn(usize) + Sync)) {
        self.pool().run(items, work);
    }
}

impl<F: Forward + ?Sized> Forward for Box<F> {
    type Error = F::Error;

    fn vocab_size(&self) -> usize {
        (**self).vocab_size()
    }

    fn context_len(&self) -> usize {
        (**self).context_len()
    }

    fn kv_shape(&self, sequences_max: usize, chunk_max: usize) -> KvShape {
        (**self).kv_shape(sequences_max, chunk_max)
    }

    fn forward(
        &self,
        spans: &[Span<'_>],
        cache: &mut Cache,
        work: &mut Workspace,
        read: &mut dyn FnMut(&[&[f32]]),
    ) -> Result<(), F::Error> {
        (**self).forward(spans, cache, work, read)
    }

    fn share_out(&self, items: usize, work: &(dyn Fn(usize) + Sync)) {
        (**self).share_out(items, work);
    }
}
