//! Buffers of one forward pass, kept between passes so that a step allocates little.

use causeway_kernels::QuantisedRows;

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
    pub(crate) up: Vec<f32>,       // (rows, ffn_dim), likewise
    pub(crate) added: Vec<f32>,    // (rows, hidden_dim): what a part adds to the stream
    pub(crate) logits: Vec<f32>,   // (rows that want them, vocab_size)
    pub(crate) quantised: QuantisedRows,
    pub(crate) inner: QuantisedRows, // (rows, ffn_dim): what the down projection meets
}
