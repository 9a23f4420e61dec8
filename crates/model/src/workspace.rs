//! Buffers of one forward pass, kept between passes so that a step allocates little.

use causeway_kernels::{PackError, QuantisedRows};

use crate::{Config, ModelError};

/// Scratch space; any pass may use any workspace, nothing is carried over.
#[derive(Debug, Default)]
pub struct Workspace {
    pub(crate) x: Vec<f32>,        // (rows, hidden_dim): the residual stream
    pub(crate) normed: Vec<f32>,   // (rows, hidden_dim), where float weights meet it
    pub(crate) query: Vec<f32>,    // (rows, n_heads * head_dim)
    pub(crate) key: Vec<f32>,      // (rows, n_kv_heads * head_dim)
    pub(crate) value: Vec<f32>,    // (rows, n_kv_heads * head_dim)
    pub(crate) attended: Vec<f32>, // (rows, n_heads * head_dim), where float weights meet it
    pub(crate) parts: Vec<f32>,    // attention's segments, where they are shared out
    pub(crate) gate: Vec<f32>,     // (rows, ffn_dim), where it is not quantised at once
    pub(crate) up: Vec<f32>,       // (rows, ffn_dim) or (rows, experts), likewise
    pub(crate) added: Vec<f32>,    // (rows, hidden_dim): what a part adds to the stream
    pub(crate) logits: Vec<f32>,   // (rows that want them, vocab_size)
    pub(crate) quantised: QuantisedRows,
    pub(crate) inner: QuantisedRows, // (rows, ffn_dim): what the down projection meets
    /// Of one expert's rows, where the model has experts.
    pub(crate) expert: Option<Box<Workspace>>,
}

impl Workspace {
    /// Bytes that a pass of `rows` rows takes of which `wanted` want logits; attention's own
    /// parts, which follow from the lengths of the sequences, come on top.
    #[must_use]
    pub fn bytes(config: &Config, rows: usize, wanted: usize) -> usize {
        let shape = &config.shape;
        let (q_dim, kv_dim) = (shape.n_heads * shape.head_dim, shape.n_kv_heads * shape.head_dim);
        let by_row = 2 * shape.hidden_dim + q_dim + 2 * kv_dim;
        let by_wanted = shape.hidden_dim + shape.vocab_size;
        let numbers = rows.saturating_mul(by_row).saturating_add(wanted.saturating_mul(by_wanted));
        // A code is a byte, and 32 of them share a scale and their sums.
        let codes = rows.saturating_mul(q_dim.max(shape.hidden_dim) + config.inner_dim());
        numbers.saturating_mul(size_of::<f32>()).saturating_add(codes.saturating_mul(5) / 4)
    }

    /// Takes the memory for a pass of `rows` rows of which `wanted` want logits, so that a pass
    /// too large for the machine is refused before it begins.
    pub(crate) fn reserve(
        &mut self,
        config: &Config,
        rows: usize,
        wanted: usize,
    ) -> Result<(), ModelError> {
        let shape = &config.shape;
        let (q_dim, kv_dim) = (shape.n_heads * shape.head_dim, shape.n_kv_heads * shape.head_dim);
        let buffers = [
            (&mut self.x, rows, shape.hidden_dim),
            (&mut self.added, rows, shape.hidden_dim),
            (&mut self.query, rows, q_dim),
            (&mut self.key, rows, kv_dim),
            (&mut self.value, rows, kv_dim),
            (&mut self.normed, wanted, shape.hidden_dim),
            (&mut self.logits, wanted, shape.vocab_size),
        ];
        for (buffer, rows, row_len) in buffers {
            let len = rows.saturating_mul(row_len);
            if buffer.try_reserve(len.saturating_sub(buffer.len())).is_err() {
                let bytes = len.saturating_mul(size_of::<f32>());
                return Err(ModelError::Memory { source: PackError::OutOfMemory { bytes } });
            }
        }
        for (codes, row_len) in [
            (&mut self.quantised, q_dim.max(shape.hidden_dim)),
            (&mut self.inner, config.inner_dim()),
        ] {
            codes.reserve(rows, row_len).map_err(|source| ModelError::Memory { source })?;
        }
        Ok(())
    }
}
