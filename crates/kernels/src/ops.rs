//! What a forward pass asks of the chosen path: rows in, rows out, shared out over the threads.

use std::ops::Range;

use crate::activations::{ActivationBlock, ActivationTile, Fault, Finite, TILE_ROWS};
use crate::attention::{HeadQueries, KvSlab, SEGMENT, STATE};
use crate::parallel::{Cut, Tile, Tiled};
use crate::sink::Sink;
use crate::{BLOCK, Kernels, LANES, NonFinite, PackedMatrix, Pool, QuantisedRows, Scratch};

/// Work items per thread of one product: enough that a slow thread does little harm.
const ITEMS_PER_THREAD: usize = 8;
/// Bytes of weights that meet all rows before the next ones do: they stay in a core's cache, and
/// the activations come by once for all of them.
const RESIDENT_BYTES: usize = 256 << 10;

/// What `x` gains and becomes between two parts of a layer; see `Kernels::norm_step`.
#[derive(Debug, Clone, Copy)]
pub struct NormStep<'a> {
    /// Added to `x` first; as long as `x`, or empty.
    pub added: &'a [f32],
    /// Norm that `added` goes through before; empty where there is none.
    pub added_norm: &'a [f32],
    /// Norm whose output is quantised; empty where `x` goes on as it is.
    pub norm: &'a [f32],
    pub eps: f32,
}

/// What a gate goes through before it multiplies the second branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    Silu,
    /// In its tanh form.
    Gelu,
    /// That of gpt-oss; see `math::clamped_swiglu`.
    ClampedSwiglu,
}

/// Takes a piece of one row: its index, then its values from the piece's first column on.
pub type PutRow<'a> = dyn FnMut(usize, &[f32]) + 'a;

impl Kernels {
    /// Quantises one block, the last of a row filled with zeros.
    fn quantise_to(
        &self,
        values: &[f32],
        (row, column): (usize, usize),
        to: &mut ActivationBlock,
        fault: &Fault,
    ) {
        let is_finite = match values.first_chunk() {
            Some(whole) => (self.quantise_block)(whole, to),
            None => self.quantise_last(values, to),
        };
        if is_finite == Finite(false) {
            let at = values.iter().position(|v| !v.is_finite()).unwrap_or(0);
            fault.note(row, column + at);
        }
    }

    /// Quantises a block that is cut short. Kept apart, so that a whole one is no copy.
    #[cold]
    #[inline(never)]
    fn quantise_last(&self, values: &[f32], to: &mut ActivationBlock) -> Finite {
        let mut padded = [0.0f32; BLOCK];
        padded[..values.len()].copy_from_slice(values);
        (self.quantise_block)(&padded, to)
    }

    /// As `quantise_to`, of values that go through a norm first: times `scale`, then by weights.
    fn quantise_normed_to(
        &self,
        (values, weight, scale): (&[f32], &[f32], f32),
        place: (usize, usize),
        to: &mut ActivationBlock,
        fault: &Fault,
    ) {
        let whole = values.first_chunk().zip(weight.first_chunk());
        let is_finite =
            whole.map(|(values, weight)| (self.quantise_normed)(values, (weight, scale), to));
        // Of a block that is cut short, or has a value to be named, the normed values are needed.
        if is_finite != Some(Finite(true)) {
            let normed: Vec<f32> = values.iter().zip(weight).map(|(x, w)| x * scale * w).collect();
            self.quantise_to(&normed, place, to, fault);
        }
    }

    /// Quantises rows that `work` computes, cut into cells of whole blocks: it is given the
    /// cell's index and puts the piece of each row of the cell.
    ///
    /// # Errors
    /// `NonFinite` names the first value that is infinite or not a number.
    ///
    /// # Panics
    /// If the cut's width is not whole blocks, or a row is put that is not the cell's.
    pub fn quantised_cells(
        &self,
        out: &mut QuantisedRows,
        (rows, columns): (usize, usize),
        cut: Cut<'_>,
        pool: &Pool,
        work: &(dyn Fn(usize, &mut PutRow<'_>) + Sync),
    ) -> Result<(), NonFinite> {
        assert!(cut.width.is_multiple_of(BLOCK), "whole blocks");
        out.resize(rows, columns);
        let fault = Fault::none();
        let cut = Cut { rows: cut.rows, width: cut.width / BLOCK };
        pool.block_cells(out, cut, &|item, cell| {
            let first = cell.columns().start;
            work(item, &mut |row, values| {
                for (block, values) in values.chunks(BLOCK).enumerate() {
                    let block = first + block;
                    self.quantise_to(values, (row, block * BLOCK), cell.block(row, block), &fault);
                }
            });
        });
        fault.into_result()
    }

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
        let bounds = row_bounds(rows, pool.threads());
        let cut = Cut { rows: &bounds, width: columns.next_multiple_of(BLOCK) };
        self.quantised_cells(out, (rows, columns), cut, pool, &|item, put| {
            for row in bounds[item]..bounds[item + 1] {
                put(row, &x[row * columns..(row + 1) * columns]);
            }
        })
    }

    /// Quantises rows and what the quantising left of them: row `2 i` holds the codes of row
    /// `i`, row `2 i + 1` those of `x - scale * code`, product and difference each rounded.
    ///
    /// The sum of both products is a product with activations of twice the bits, for one read
    /// of the weights; `matmul_pairs` computes it.
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
        assert!(columns > 0 && x.len().is_multiple_of(columns), "whole rows");
        let rows = x.len() / columns;
        out.resize(2 * rows, columns);
        let (bounds, fault) = (row_bounds(rows, pool.threads()), Fault::none());
        let doubled: Vec<usize> = bounds.iter().map(|row| 2 * row).collect();
        let cut = Cut { rows: &doubled, width: out.blocks };
        pool.block_cells(out, cut, &|item, cell| {
            for row in bounds[item]..bounds[item + 1] {
                let x = &x[row * columns..(row + 1) * columns];
                for (block, x) in x.chunks(BLOCK).enumerate() {
                    let place = (row, block * BLOCK);
                    let to = cell.block(2 * row, block);
                    self.quantise_to(x, place, to, &fault);
                    let rest = rest_of(x, to);
                    let rest = &rest[..x.len()];
                    self.quantise_to(rest, place, cell.block(2 * row + 1, block), &fault);
                }
            }
        });
        fault.into_result()
    }

    /// `x += norm(added)`, then quantises `norm(x)`: one pass over the rows of `x`.
    ///
    /// Rows are `row_len` long; where nothing is to be normed, only the addition is done.
    ///
    /// # Errors
    /// `NonFinite` names the first value that is infinite or not a number.
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn norm_step(
        &self,
        (x, row_len): (&mut [f32], usize),
        step: &NormStep<'_>,
        out: &mut QuantisedRows,
        pool: &Pool,
    ) -> Result<(), NonFinite> {
        assert!(row_len > 0 && x.len().is_multiple_of(row_len), "whole rows");
        assert!(step.added.is_empty() || step.added.len() == x.len(), "as much added as there is");
        let add = |first: usize, x: &mut [f32]| {
            if step.added.is_empty() {
                return;
            }
            let mut added = &step.added[first * row_len..first * row_len + x.len()];
            let mut normed;
            if !step.added_norm.is_empty() {
                normed = added.to_vec();
                self.rms_norm(&mut normed, step.added_norm, step.eps);
                added = &normed;
            }
            (self.add)(x, added);
        };
        let rows = x.len() / row_len;
        if step.norm.is_empty() {
            let per_item = rows_per_item(rows, pool.threads());
            pool.chunks(x, per_item * row_len, &|item, x| add(item * per_item, x));
            return Ok(());
        }
        assert_eq!(step.norm.len(), row_len, "a norm as long as a row");
        out.resize(rows, row_len);
        let (bounds, fault) = (row_bounds(rows, pool.threads()), Fault::none());
        pool.rows_and_blocks((x, row_len), out, &bounds, &|first, x, cell| {
            add(first, x);
            for (row, x) in (first..).zip(x.chunks_exact(row_len)) {
                let scale = (self.rms_scale)(x, step.eps);
                let weights = step.norm.chunks(BLOCK);
                for (block, (values, weight)) in x.chunks(BLOCK).zip(weights).enumerate() {
                    let (at, to) = ((row, block * BLOCK), cell.block(row, block));
                    self.quantise_normed_to((values, weight, scale), at, to, &fault);
                }
            }
        });
        fault.into_result()
    }

    /// Quantises `activation(x . gate^T) * (x . up^T)`: neither product ever leaves a core's cache.
    ///
    /// # Errors
    /// `NonFinite` names the first value that is infinite or not a number.
    ///
    /// # Panics
    /// If the shapes do not fit, weights are floats, or their rows are not whole blocks.
    pub fn gated(
        &self,
        (gate, up): (&PackedMatrix, &PackedMatrix),
        activation: Activation,
        x: &QuantisedRows,
        out: &mut QuantisedRows,
        pool: &Pool,
    ) -> Result<(), NonFinite> {
        for weights in [gate, up] {
            assert!(weights.format().is_quantised(), "quantised weights");
            assert_eq!(x.columns(), weights.columns(), "columns of activations and weights");
        }
        assert!(gate.rows() == up.rows() && gate.rows().is_multiple_of(BLOCK), "whole blocks");
        let (rows, columns) = (x.rows(), gate.rows());
        let per_item = (columns / BLOCK).div_ceil(pool.threads() * ITEMS_PER_THREAD);
        let block_bytes = BLOCK / LANES * (gate.group_bytes() + up.group_bytes());
        let width = per_item.min(RESIDENT_BYTES / block_bytes).max(1) * BLOCK;
        let cut = Cut { rows: &[0, rows], width };
        self.quantised_cells(out, (rows, columns), cut, pool, &|item, put| {
            let first = item * width;
            let len = width.min(columns - first);
            let mut scratch = Scratch::of(2 * TILE_ROWS * len);
            for tile in x.each_tile() {
                let (gates, ups) = scratch.split_at_mut(TILE_ROWS * len);
                let (gates, ups) = (&mut gates[..tile.rows * len], &mut ups[..tile.rows * len]);
                self.part_of_tile(gate, (first, len), tile, gates);
                self.part_of_tile(up, (first, len), tile, ups);
                self.activate(activation, gates, ups);
                let rows = gates.chunks_exact(len).enumerate();
                rows.for_each(|(row, gates)| put(tile.first + row, gates));
            }
        })
    }

    /// Output columns `first..first + len`, whole groups, for one tile of activations.
    fn part_of_tile(
        &self,
        weights: &PackedMatrix,
        (first, len): (usize, usize),
        tile: ActivationTile<'_>,
        to: &mut [f32],
    ) {
        let groups = first / LANES..(first + len) / LANES;
        let mut to = Tile::of(to, len);
        (self.tile_product)(weights, groups, tile, &mut Sink::part(&mut to, (tile.first, first)));
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
        self.quantised_products(products, (x, false), pool);
    }

    /// As `matmul` for rows that `quantise_with_rest` made: output `i` is the sum of the products
    /// of rows `2 i` and `2 i + 1`.
    ///
    /// # Panics
    /// As `matmul`.
    pub fn matmul_pairs(
        &self,
        (weights, out): (&PackedMatrix, &mut [f32]),
        x: &QuantisedRows,
        pool: &Pool,
    ) {
        self.quantised_products(&mut [(weights, out)], (x, true), pool);
    }

    /// Each row of `x` gives one row of output, or each two of them, ascending.
    fn quantised_products(
        &self,
        products: &mut [(&PackedMatrix, &mut [f32])],
        (x, in_pairs): (&QuantisedRows, bool),
        pool: &Pool,
    ) {
        for (weights, out) in products.iter() {
            assert!(weights.format().is_quantised(), "quantised weights");
            assert_eq!(x.columns(), weights.columns(), "columns of activations and weights");
            assert_eq!(out.len() << u32::from(in_pairs), x.rows() * weights.rows(), "outputs");
        }
        if x.rows() == 0 {
            return;
        }
        share_out(products, pool, &|weights, groups, tile| {
            self.resident_product(weights, groups, (x, in_pairs), tile);
        });
    }

    /// Some groups against all rows, as many groups at a time as stay in a core's cache.
    fn resident_product(
        &self,
        weights: &PackedMatrix,
        groups: Range<usize>,
        (x, in_pairs): (&QuantisedRows, bool),
        tile: &mut Tile<'_>,
    ) {
        let resident = (RESIDENT_BYTES / weights.group_bytes()).max(1);
        for from in groups.clone().step_by(resident) {
            for x in x.each_tile() {
                let groups = from..groups.end.min(from + resident);
                (self.tile_product)(weights, groups, x, &mut Sink::columns(tile, in_pairs));
            }
        }
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
        share_out(products, pool, &|weights, groups, tile| {
            for group in groups {
                (self.group_float)(weights, group, x, &mut Sink::columns(tile, false));
            }
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

    /// `gate = activation(gate) * up`, element by element.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn activate(&self, activation: Activation, gate: &mut [f32], up: &[f32]) {
        assert_eq!(gate.len(), up.len(), "as many gates as inputs");
        match activation {
            Activation::Silu => (self.silu_mul)(gate, up),
            Activation::Gelu => (self.gelu_mul)(gate, up),
            Activation::ClampedSwiglu => (self.clamped_swiglu)(gate, up),
        }
    }

    /// `x = cap * tanh(x / cap)`, element by element.
    pub fn soft_cap(&self, x: &mut [f32], cap: f32) {
        (self.soft_cap)(x, cap);
    }

    /// Attention of queries that share one KV head; `out` is `(queries, padded_dim)`.
    ///
    /// # Panics
    /// If a query sees no position or the shapes do not fit.
    pub fn attend(&self, queries: HeadQueries<'_>, slab: &KvSlab<'_>, out: &mut [f32]) {
        (self.attend)(queries, slab, out);
    }

    /// Some segments of an attention, each by itself, so that they may be shared out: `out` is
    /// `(segments, queries, padded_dim + STATE)`, what a query does not see left as it was.
    ///
    /// # Panics
    /// As `attend`.
    pub fn attend_segments(
        &self,
        queries: HeadQueries<'_>,
        slab: &KvSlab<'_>,
        segments: Range<usize>,
        out: &mut [f32],
    ) {
        let count = queries.queries.len();
        queries.check(slab, count * slab.padded_dim);
        let part = count * (slab.padded_dim + STATE);
        assert_eq!(out.len(), segments.len() * part, "an output for each segment and query");
        (self.attend_segments)(queries, slab, segments, out);
    }

    /// The attention whose segments from `first` on are `parts`, as `attend_segments` gives
    /// them: the bits of `attend`. `sinks` are those of its queries; `out` is
    /// `(queries, padded_dim)`.
    ///
    /// # Panics
    /// If the shapes do not fit, or a query sees none of the segments.
    pub fn merge_segments(
        &self,
        (visible, sinks): (&[(usize, usize)], &[f32]),
        first: usize,
        parts: &[f32],
        out: &mut [f32],
    ) {
        let part = out.len() + visible.len() * STATE;
        assert!(!visible.is_empty() && parts.len().is_multiple_of(part), "whole segments");
        let end = first + parts.len() / part;
        let seen = |v: &(usize, usize)| v.0 < v.1 && v.0 / SEGMENT < end && v.1 > first * SEGMENT;
        assert!(visible.iter().all(seen), "each sees a position");
        assert!(sinks.is_empty() || sinks.len() == visible.len(), "a sink for each query");
        (self.merge_segments)((visible, sinks, first), parts, out);
    }
}

/// What quantising left of a block: `x - scale * code`, product and difference each rounded.
fn rest_of(x: &[f32], block: &ActivationBlock) -> [f32; BLOCK] {
    let mut rest = [0.0f32; BLOCK];
    for ((rest, x), &code) in rest.iter_mut().zip(x).zip(block.codes.as_flattened()) {
        *rest = x - block.scale * f32::from(code);
    }
    rest
}

/// Rows of an item: about as many items for each thread as for the others, none longer than a tile.
fn rows_per_item(rows: usize, threads: usize) -> usize {
    let items = rows.div_ceil(TILE_ROWS).next_multiple_of(threads);
    rows.div_ceil(items.max(1)).max(1)
}

/// Where the rows of each item begin, and where the last ones end.
fn row_bounds(rows: usize, threads: usize) -> Vec<usize> {
    (0..rows).step_by(rows_per_item(rows, threads)).chain([rows]).collect()
}

/// Some groups of a matrix against all rows, into the tile of its output.
type PartProduct<'a> = dyn Fn(&PackedMatrix, Range<usize>, &mut Tile<'_>) + Sync + 'a;

/// Groups of an item: as many items for each thread as for the others, where they can be.
fn groups_per_item(products: &[(&PackedMatrix, &mut [f32])], threads: usize) -> usize {
    let groups = || products.iter().map(|(weights, _)| weights.groups());
    let most = groups().sum::<usize>().div_ceil(threads * ITEMS_PER_THREAD).max(1);
    let items = |per_item: usize| groups().map(|groups| groups.div_ceil(per_item)).sum::<usize>();
    let least = most.div_ceil(2);
    (least..=most).rev().find(|&per_item| items(per_item) % threads == 0).unwrap_or(most)
}

/// Shares the groups of all products out over the threads.
fn share_out(
    products: &mut [(&PackedMatrix, &mut [f32])],
    pool: &Pool,
    part_product: &PartProduct<'_>,
) {
    let per_item = groups_per_item(products, pool.threads());
    let (matrices, mut outputs): (Vec<&PackedMatrix>, Vec<Tiled<'_>>) = products
        .iter_mut()
        .map(|(weights, out)| {
            let row_len = weights.rows();
            (*weights, Tiled { out, row_len, width: per_item * LANES })
        })
        .unzip();
    pool.tiles(&mut outputs, &|output, tile| {
        let first = tile.column() / LANES;
        let groups = first..first + tile.width().div_ceil(LANES);
        part_product(matrices[output], groups, tile);
    });
}

#[cfg(test)]
mod tests;
