//! What a forward pass asks of the chosen path: rows in, rows out, shared out over the threads.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::activations::{ActivationBlock, TILE_ROWS, tile_of};
use crate::attention::{HeadQueries, KvSlab};
use crate::dispatch::Sink;
use crate::parallel::Tiled;
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
        pool: &Pool,
    ) -> Result<(), NonFinite> {
        assert!(columns > 0 && x.len().is_multiple_of(columns), "whole rows");
        let rows = x.len() / columns;
        out.resize(rows, columns);
        let blocks = out.blocks;
        let fault = AtomicUsize::new(usize::MAX);
        // A chunk is a tile of sixteen rows; the smaller tiles at the end make up the last chunk.
        pool.chunks(&mut out.tiles, TILE_ROWS * blocks, &|chunk, tiles| {
            let first = chunk * TILE_ROWS;
            for row in first..rows.min(first + TILE_ROWS) {
                let (tile, size) = tile_of(row, rows);
                let start = (tile - first) * blocks + (row - tile);
                let (whole, tail) = x[row * columns..(row + 1) * columns].as_chunks::<BLOCK>();
                let mut padded = [0.0f32; BLOCK];
                padded[..tail.len()].copy_from_slice(tail);
                let last = if tail.is_empty() { &[][..] } else { std::slice::from_ref(&padded) };
                let to = tiles[start..].iter_mut().step_by(size);
                for (values, to) in whole.iter().chain(last).zip(to) {
                    match (self.quantise_block)(values, &mut to.codes) {
                        Some(scale) => to.finish(scale),
                        None => _ = fault.fetch_min(row, Ordering::Relaxed),
                    }
                }
            }
        });
        let row = fault.into_inner();
        if row == usize::MAX {
            return Ok(());
        }
        let column = x[row * columns..].iter().position(|v| !v.is_finite());
        Err(NonFinite { row, column: column.expect("invariant: the row has such a value") })
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
        pool: &Pool,
    ) -> Result<(), NonFinite> {
        self.quantise(x, columns, out, pool)?;
        let mut pairs = Vec::with_capacity(2 * x.len());
        for (row, x) in x.chunks_exact(columns).enumerate() {
            pairs.extend_from_slice(x);
            for (block, x) in x.chunks(BLOCK).enumerate() {
                let ActivationBlock { codes, scale, .. } = out.block(row, block);
                let codes = codes.iter().flatten();
                pairs.extend(x.iter().zip(codes).map(|(x, &code)| x - scale * f32::from(code)));
            }
        }
        self.quantise(&pairs, columns, out, pool)
    }

    /// `out = x . weights^T` for each pair of quantised weights and output, in one job; an output
    /// is `(rows of x, rows of weights)`.
    ///
    /// # Panics
    /// If the shapes do not fit or weights are floats.
    pub fn matmul(
        &self,
        products: &mut [(&PackedMatrix, &mut [f32])],
        x: &QuantisedRows,
        pool: &Pool,
    ) {
        for (weights, out) in products.iter() {
            assert!(weights.format().is_quantised(), "quantised weights");
            assert_eq!(x.columns(), weights.columns(), "columns of activations and weights");
            assert_eq!(out.len(), x.rows() * weights.rows(), "outputs");
        }
        if x.rows() == 0 {
            return;
        }
        product(products, pool, &|weights, group, sink| {
            (self.group_quantised)(weights, group, x, sink);
        });
    }

    /// As `matmul` for float weights, `x` being `(rows, columns)`.
    ///
    /// # Panics
    /// If the shapes do not fit or weights are quantised.
    pub fn matmul_float(
        &self,
        products: &mut [(&PackedMatrix, &mut [f32])],
        x: &[f32],
        pool: &Pool,
    ) {
        for (weights, out) in products.iter() {
            assert!(!weights.format().is_quantised(), "float weights");
            assert!(x.len().is_multiple_of(weights.columns()), "whole rows");
            assert_eq!(out.len(), x.len() / weights.columns() * weights.rows(), "outputs");
        }
        if x.is_empty() {
            return;
        }
        product(products, pool, &|weights, group, sink| {
            (self.group_float)(weights, group, x, sink);
        });
    }

    /// Does `rounds` rounds of int8 dot products on every thread and returns the operations
    /// done, a multiply and an add counted as two: what a product can at most reach.
    #[must_use]
    pub fn dot_peak(&self, rounds: usize, pool: &Pool) -> u64 {
        pool.run(pool.threads(), &|_| {
            std::hint::black_box((self.dot_rounds)(rounds));
        });
        (pool.threads() * rounds * 12 * LANES * 4 * 2) as u64
    }

    /// Reads every byte once, shared out over the threads: what a memory-bound step can reach.
    pub fn read_through(&self, bytes: &[u8], pool: &Pool) {
        let len = bytes.len().div_ceil(pool.threads() * ITEMS_PER_THREAD).max(1);
        pool.run(bytes.len().div_ceil(len), &|item| {
            let part = &bytes[item * len..bytes.len().min((item + 1) * len)];
            std::hint::black_box((self.read_through)(part));
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

/// One group of a matrix against all rows.
type GroupProduct<'a> = dyn Fn(&PackedMatrix, usize, &mut Sink<'_>) + Sync + 'a;

/// Shares the groups of all products out over the threads.
fn product(
    products: &mut [(&PackedMatrix, &mut [f32])],
    pool: &Pool,
    group_product: &GroupProduct<'_>,
) {
    let groups: usize = products.iter().map(|(weights, _)| weights.groups()).sum();
    let per_item = groups.div_ceil(pool.threads() * ITEMS_PER_THREAD).max(1);
    let (matrices, mut outputs): (Vec<&PackedMatrix>, Vec<Tiled<'_>>) = products
        .iter_mut()
        .map(|(weights, out)| {
            let row_len = weights.rows();
            (*weights, Tiled { out, row_len, width: per_item * LANES })
        })
        .unzip();
    pool.tiles(&mut outputs, &|output, tile| {
        let (first, width) = (tile.column(), tile.width());
        for from in (0..width).step_by(LANES) {
            let count = LANES.min(width - from);
            let group = (first + from) / LANES;
            group_product(matrices[output], group, &mut |row, lanes| {
                let to = &mut tile.row(row)[from..from + count];
                match to.first_chunk_mut() {
                    Some(whole) => *whole = *lanes,
                    None => store_part(to, lanes),
                }
            });
        }
    });
}

/// Stores the outputs of a last group that has fewer than sixteen rows. Kept apart, so that a
/// whole group stays one store and does not become a call that copies any length.
#[cold]
#[inline(never)]
fn store_part(to: &mut [f32], lanes: &[f32; LANES]) {
    to.copy_from_slice(&lanes[..to.len()]);
}
