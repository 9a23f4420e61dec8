//! What a forward pass asks of the chosen path: rows in, rows out, shared out over the threads.

use crate::attention::{HeadQueries, KvSlab};
use crate::dispatch::Sink;
use crate::{BLOCK, Kernels, LANES, NonFinite, PackedMatrix, Pool, QuantisedRows};

/// Work items per thread of one product: enough that a slow thread does little harm.
const ITEMS_PER_THREAD: usize = 8;

impl Kernels {
    /// Quantises rows of `columns` activations, `x` being `(rows, columns)`.
    ///
    /// # Errors
    /// `NonFinite` names the first value that is infinite or not a number.
    ///
    /// # Panics
    /// If `x` is not whole rows.
    pub fn quantise(
        &self,
        x: &[f32],
        columns: usize,
        out: &mut QuantisedRows,
    ) -> Result<(), NonFinite> {
        assert!(columns > 0 && x.len().is_multiple_of(columns), "whole rows");
        out.resize(x.len() / columns, columns);
        let blocks = out.blocks;
        for (row, values) in x.chunks_exact(columns).enumerate() {
            for (block, values) in values.chunks(BLOCK).enumerate() {
                let mut padded = [0.0f32; BLOCK];
                padded[..values.len()].copy_from_slice(values);
                let index = row * blocks + block;
                let Some(scale) = (self.quantise_block)(&padded, &mut out.codes[index]) else {
                    let column = values.iter().position(|v| !v.is_finite()).unwrap_or(0);
                    return Err(NonFinite { row, column: block * BLOCK + column });
                };
                out.finish_block(index, scale);
            }
        }
        Ok(())
    }

    /// Quantises rows and what the quantising left of them: row `2 i` holds the codes of row
    /// `i`, row `2 i + 1` those of `x - scale * code`, product and difference each rounded.
    ///
    /// The sum of both products is a product with activations of twice the bits, for one read
    /// of the weights.
    ///
    /// # Errors
    /// `NonFinite` names the first value that is infinite or not a number.
    ///
    /// # Panics
    /// If `x` is not whole rows.
    pub fn quantise_with_rest(
        &self,
        x: &[f32],
        columns: usize,
        out: &mut QuantisedRows,
    ) -> Result<(), NonFinite> {
        self.quantise(x, columns, out)?;
        let mut pairs = Vec::with_capacity(2 * x.len());
        for (row, x) in x.chunks_exact(columns).enumerate() {
            pairs.extend_from_slice(x);
            let first = row * out.blocks;
            for (block, x) in x.chunks(BLOCK).enumerate() {
                let (scale, codes) = (out.scales[first + block], &out.codes[first + block]);
                let codes = codes.iter().flatten();
                pairs.extend(x.iter().zip(codes).map(|(x, &code)| x - scale * f32::from(code)));
            }
        }
        self.quantise(&pairs, columns, out)
    }

    /// `out = x . weights^T` for quantised weights; `out` is `(rows of x, rows of weights)`.
    ///
    /// # Panics
    /// If the shapes do not fit or the weights are floats.
    pub fn matmul(&self, weights: &PackedMatrix, x: &QuantisedRows, out: &mut [f32], pool: &Pool) {
        assert!(weights.format().is_quantised(), "quantised weights");
        assert_eq!(x.columns(), weights.columns(), "columns of activations and weights");
        assert_eq!(out.len(), x.rows() * weights.rows(), "outputs");
        if x.rows() == 0 {
            return;
        }
        self.product(weights, out, pool, &|group, sink| {
            (self.group_quantised)(weights, group, x, sink);
        });
    }

    /// `out = x . weights^T` for float weights, `x` being `(rows, columns)`.
    ///
    /// # Panics
    /// If the shapes do not fit or the weights are quantised.
    pub fn matmul_float(&self, weights: &PackedMatrix, x: &[f32], out: &mut [f32], pool: &Pool) {
        assert!(!weights.format().is_quantised(), "float weights");
        assert!(x.len().is_multiple_of(weights.columns()), "whole rows");
        assert_eq!(out.len(), x.len() / weights.columns() * weights.rows(), "outputs");
        if x.is_empty() {
            return;
        }
        self.product(weights, out, pool, &|group, sink| {
            (self.group_float)(weights, group, x, sink);
        });
    }

    /// Shares the groups of a product out over the threads.
    fn product(
        &self,
        weights: &PackedMatrix,
        out: &mut [f32],
        pool: &Pool,
        group_product: &(dyn Fn(usize, &mut Sink<'_>) + Sync),
    ) {
        let groups = weights.groups();
        let per_item = groups.div_ceil(pool.threads() * ITEMS_PER_THREAD).max(1);
        pool.tiles(out, weights.rows(), per_item * LANES, &|_, tile| {
            let (first, width) = (tile.column(), tile.width());
            for from in (0..width).step_by(LANES) {
                let count = LANES.min(width - from);
                group_product((first + from) / LANES, &mut |row, lanes| {
                    tile.row(row)[from..from + count].copy_from_slice(&lanes[..count]);
                });
            }
        });
    }

    /// RMS norm of each row of `x`, in place: `x / sqrt(mean(x^2) + eps) * weight`.
    ///
    /// # Panics
    /// If `x` is not whole rows of the weight's length.
    pub fn rms_norm(&self, x: &mut [f32], weight: &[f32], eps: f32) {
        assert!(!weight.is_empty() && x.len().is_multiple_of(weight.len()), "whole rows");
        for row in x.chunks_exact_mut(weight.len()) {
            (self.rms_norm)(row, weight, eps);
        }
    }

    /// `gate = silu(gate) * up`, element by element.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn silu_mul(&self, gate: &mut [f32], up: &[f32]) {
        assert_eq!(gate.len(), up.len(), "as many gates as inputs");
        (self.silu_mul)(gate, up);
    }

    /// `gate = gelu(gate) * up`, element by element, GELU in its tanh form.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn gelu_mul(&self, gate: &mut [f32], up: &[f32]) {
        assert_eq!(gate.len(), up.len(), "as many gates as inputs");
        (self.gelu_mul)(gate, up);
    }

    /// Attention of queries that share one KV head; `out` is `(queries, padded_dim)`.
    ///
    /// # Panics
    /// If a query sees no position or the shapes do not fit.
    pub fn attend(&self, queries: HeadQueries<'_>, slab: &KvSlab<'_>, out: &mut [f32]) {
        (self.attend)(queries, slab, out);
    }
}
