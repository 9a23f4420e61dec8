//! One forward pass over spans of sequences, straight down the paper.

use std::ops::Range;

use causeway_kernels::{
    BLOCK, Cut, Gating, HeadQueries, NonFinite, NormStep, PutRow, QuantisedRows, SEGMENT, STATE,
    TILE,
};
use causeway_kv_cache::Cache;
use causeway_request::{RequestId, TokenId};

use crate::load::{LayerWeights, Linear};
use crate::{Activation, Model, ModelError, Workspace, rope};

/// Query positions of one head group that one work item computes.
const POSITIONS_PER_ITEM: usize = 8;
/// Segments of one KV head that one work item computes where they are shared out.
const SEGMENTS_PER_ITEM: usize = 4;
/// Work items of attention per thread from which segments need not be shared out.
const ITEMS_PER_THREAD: usize = 8;
/// Rows that one work item of an element-wise step takes.
const ROWS_PER_ITEM: usize = 8;

/// Consecutive tokens of one sequence, with room reserved in the cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span<'a> {
    pub request: RequestId,
    /// Position of the first token.
    pub first_position: usize,
    pub tokens: &'a [TokenId],
    /// How many of the last positions want logits.
    pub logits_wanted: usize,
}

/// Rows of logits, in the order of the spans and of the positions in each; they lie in the
/// workspace of their pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Logits<'w> {
    vocab_size: usize,
    values: &'w [f32], // (rows, vocab_size)
}

impl<'w> Logits<'w> {
    /// The rows, each `vocab_size` long.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &'w [f32]> + use<'w> {
        self.values.chunks_exact(self.vocab_size)
    }
}

/// One row of the pass: whose token it is, and where it stands.
#[derive(Debug, Clone, Copy)]
struct Row {
    request: RequestId,
    position: usize,
}

/// Consecutive positions of one sequence that one work item of attention computes.
#[derive(Debug, Clone, Copy)]
struct QueryRun {
    /// Row of the pass.
    row: usize,
    request: RequestId,
    position: usize,
    count: usize,
}

impl Model {
    /// Computes every span's tokens, writes their keys and values, and returns the logits that
    /// are wanted. Rows do not influence each other but through the cache.
    ///
    /// # Errors
    /// `ModelError` for a token or position out of range, or a number that is not finite.
    ///
    /// # Panics
    /// If the cache has no room reserved for a span.
    pub fn forward<'w>(
        &self,
        spans: &[Span<'_>],
        cache: &mut Cache,
        work: &'w mut Workspace,
    ) -> Result<Logits<'w>, ModelError> {
        let rows = self.rows(spans)?;
        self.embed(spans, work)?;
        work.added.clear();
        for (index, layer) in self.layers.iter().enumerate() {
            let not_finite = |source: NonFinite| {
                let position = rows[source.row].position;
                ModelError::NotFinite { layer: index, position, source }
            };
            let before = index.checked_sub(1).map(|before| &self.layers[before]);
            let added_norm = before.map_or(&[][..], |before| &before.post_ffn_norm);
            self.attention(index, added_norm, (&rows, spans), cache, work).map_err(not_finite)?;
            self.feed_forward(layer, work).map_err(not_finite)?;
        }
        let added_norm = self.layers.last().map_or(&[][..], |last| &last.post_ffn_norm);
        let step = NormStep { added_norm, norm: &[], added: &work.added, eps: self.eps() };
        let x = (work.x.as_mut_slice(), self.config.shape.hidden_dim);
        let summed = self.kernels.norm_step(x, &step, &mut work.quantised, &self.pool);
        summed.expect("invariant: only what is quantised must be finite");
        self.logits(spans, &rows, work)
    }

    fn rows(&self, spans: &[Span<'_>]) -> Result<Vec<Row>, ModelError> {
        let mut rows = Vec::new();
        for span in spans {
            let end = span.first_position + span.tokens.len();
            if end > self.context_len {
                let (position, context_len) = (end - 1, self.context_len);
                return Err(ModelError::Position { position, context_len });
            }
            let row = |position| Row { request: span.request, position };
            rows.extend((span.first_position..end).map(row));
        }
        Ok(rows)
    }

    /// `x = embedding[token] * scale`, read from the file as it is stored.
    fn embed(&self, spans: &[Span<'_>], work: &mut Workspace) -> Result<(), ModelError> {
        let (hidden_dim, vocab_size) = (self.config.shape.hidden_dim, self.config.shape.vocab_size);
        let embedding = self.file.tensor(&self.embedding);
        let embedding = embedding.expect("invariant: checked when the model was loaded");
        work.x.clear();
        for &token in spans.iter().flat_map(|span| span.tokens) {
            if token.index() >= vocab_size {
                return Err(ModelError::Token { token: token.0, vocab_size });
            }
            let start = work.x.len();
            work.x.resize(start + hidden_dim, 0.0);
            embedding.dequantize_row(token.index(), &mut work.x[start..])?;
        }
        let scale = self.config.embedding_scale;
        work.x.iter_mut().for_each(|x| *x *= scale);
        Ok(())
    }

    fn eps(&self) -> f32 {
        self.config.norm_eps
    }

    /// Adds what the part before gave to the stream and norms the stream for the next part, as
    /// codes and, where one of `readers` has float weights, as floats.
    fn next_part(
        &self,
        (added_norm, norm): (&[f32], &[f32]),
        readers: &[&Linear],
        work: &mut Workspace,
    ) -> Result<(), NonFinite> {
        let hidden_dim = self.config.shape.hidden_dim;
        let is_quantised = |linear: &&Linear| linear.weight.format().is_quantised();
        let codes = readers.iter().any(is_quantised);
        let step = NormStep {
            added: &work.added,
            added_norm,
            norm: if codes { norm } else { &[] },
            eps: self.eps(),
        };
        let x = (work.x.as_mut_slice(), hidden_dim);
        self.kernels.norm_step(x, &step, &mut work.quantised, &self.pool)?;
        if !readers.iter().all(is_quantised) {
            work.normed.clone_from(&work.x);
            self.pool.chunks(&mut work.normed, ROWS_PER_ITEM * hidden_dim, &|_, x| {
                self.kernels.rms_norm(x, norm, self.eps());
            });
        }
        Ok(())
    }

    /// What attention adds: `output(attend(q, k, v))` on the normed stream.
    fn attention(
        &self,
        index: usize,
        added_norm: &[f32],
        (rows, spans): (&[Row], &[Span<'_>]),
        cache: &mut Cache,
        work: &mut Workspace,
    ) -> Result<(), NonFinite> {
        let layer = &self.layers[index];
        let readers = [&layer.query, &layer.key, &layer.value];
        self.next_part((added_norm, &layer.attention_norm), &readers, work)?;
        let Workspace { query, key, value, .. } = work;
        let outputs = &mut [(readers[0], query), (readers[1], key), (readers[2], value)];
        self.products((&work.normed, &work.quantised), rows.len(), outputs);
        self.keep(index, rows, cache, work);
        self.attend(index, spans, cache, work)?;
        let outputs = &mut [(&layer.output, &mut work.added)];
        self.products((&work.attended, &work.quantised), rows.len(), outputs);
        add_bias(&layer.output, &mut work.added);
        Ok(())
    }

    /// Biases, norms and turns keys, and writes them and the values into the cache.
    fn keep(&self, index: usize, rows: &[Row], cache: &mut Cache, work: &mut Workspace) {
        let (layer, shape) = (&self.layers[index], &self.config.shape);
        let (head_dim, kv_dim) = (shape.head_dim, shape.n_kv_heads * shape.head_dim);
        let turns = &self.ropes[self.config.layers[index].rope];
        let places: Vec<_> = rows.iter().map(|row| (row.request, row.position)).collect();
        let mut blocks = cache.open_blocks(index, &places);
        let (keys, values) = (&work.key, &work.value);
        self.pool.chunks(&mut blocks, 1, &|_, block| {
            let block = &mut block[0];
            let mut turned = vec![0.0; 2 * kv_dim];
            let (k, v) = turned.split_at_mut(kv_dim);
            for row in block.rows() {
                k.copy_from_slice(&keys[row * kv_dim..(row + 1) * kv_dim]);
                v.copy_from_slice(&values[row * kv_dim..(row + 1) * kv_dim]);
                add(k, &layer.key.bias);
                add(v, &layer.value.bias);
                if !layer.key_norm.is_empty() {
                    self.kernels.rms_norm(k, &layer.key_norm, self.eps());
                }
                let angles = turns.angles(rows[row].position);
                k.chunks_exact_mut(head_dim).for_each(|k| rope::rotate(k, angles));
                block.write(rows[row].position, k, v);
            }
        });
    }

    /// Softmax attention of every row over the positions it may see, as the output projection
    /// meets it: codes, or floats in `attended`.
    ///
    /// A work item is a run of positions of one span for one KV head: its queries share each
    /// read of keys and values.
    fn attend(
        &self,
        index: usize,
        spans: &[Span<'_>],
        cache: &Cache,
        work: &mut Workspace,
    ) -> Result<(), NonFinite> {
        let shape = &self.config.shape;
        let (heads, group) = (shape.n_kv_heads, shape.n_heads / shape.n_kv_heads);
        let (q_dim, width) = (shape.n_heads * shape.head_dim, group * shape.head_dim);
        let (mut bounds, mut runs, mut row) = (vec![0], Vec::new(), 0);
        for span in spans {
            for start in (0..span.tokens.len()).step_by(POSITIONS_PER_ITEM) {
                let count = POSITIONS_PER_ITEM.min(span.tokens.len() - start);
                let (request, position) = (span.request, span.first_position + start);
                runs.push(QueryRun { row, request, position, count });
                row += count;
                bounds.push(row);
            }
        }
        let cut = Cut { rows: &bounds, width };
        let query = &work.query;
        let place = |item: usize| ((index, item % heads), runs[item / heads]);
        let parts_len = self.attend_parts((index, &runs), (query, cache), &mut work.parts);
        let parts = &work.parts;
        let attend = |item: usize, put: &mut PutRow<'_>| {
            let (layer, run) = place(item);
            let parts = &parts[item * parts_len..(item + 1) * parts_len];
            self.attend_run(layer, run, (query, cache, parts), put);
        };
        let is_quantised = self.layers[index].output.weight.format().is_quantised();
        if is_quantised && width.is_multiple_of(BLOCK) {
            let (to, pool) = (&mut work.quantised, &self.pool);
            return self.kernels.quantised_cells(to, (row, q_dim), cut, pool, &attend);
        }
        work.attended.resize(row * q_dim, 0.0);
        self.pool.cells((&mut work.attended, q_dim), cut, &|item, cell| {
            attend(item, &mut |row, values| cell.row(row).copy_from_slice(values));
        });
        if is_quantised {
            let (to, pool) = (&mut work.quantised, &self.pool);
            self.kernels.quantise(&work.attended, q_dim, to, pool)?;
        }
        Ok(())
    }

    /// Where a layer has few heads and runs for the threads, and much to read, its segments are
    /// shared out first: `parts` is `(runs, KV heads, segments, query heads, padded + STATE)`.
    /// Says how long one KV head's part of it is: 0 where nothing was shared out.
    fn attend_parts(
        &self,
        (index, runs): (usize, &[QueryRun]),
        (query, cache): (&[f32], &Cache),
        parts: &mut Vec<f32>,
    ) -> usize {
        let heads = self.config.shape.n_kv_heads;
        let segments = runs.iter().map(|run| self.segments(index, *run).len()).max().unwrap_or(0);
        let is_one_each = runs.iter().all(|run| run.count == 1);
        let enough = ITEMS_PER_THREAD * self.pool.threads();
        if !is_one_each || segments <= SEGMENTS_PER_ITEM || runs.len() * heads >= enough {
            parts.clear();
            return 0;
        }
        let (group, padded) = self.group_and_padded();
        let segment_len = group * (padded + STATE);
        let per_head = segments.div_ceil(SEGMENTS_PER_ITEM);
        let item_len = SEGMENTS_PER_ITEM * segment_len;
        parts.resize(runs.len() * heads * per_head * item_len, 0.0);
        self.pool.chunks(parts, item_len, &|item, out| {
            let (place, part) = (item / per_head, item % per_head);
            let (run, head) = (runs[place / heads], place % heads);
            let all = self.segments(index, run);
            let first = all.start + part * SEGMENTS_PER_ITEM;
            let mine = first..all.end.min(first + SEGMENTS_PER_ITEM);
            if mine.is_empty() {
                return;
            }
            let out = &mut out[..mine.len() * segment_len];
            let (queries, visible) = self.queries((index, head), run, query);
            let queries: Vec<&[f32]> = queries.chunks_exact(self.config.shape.head_dim).collect();
            let queries = HeadQueries { queries: &queries, visible: &visible };
            let (store, table) = cache.view(run.request, index);
            self.kernels.attend_segments(queries, &store.slab(table, head), mine, out);
        });
        per_head * item_len
    }

    /// Query heads of one KV head, and the head dimension in whole lanes.
    fn group_and_padded(&self) -> (usize, usize) {
        let shape = &self.config.shape;
        (shape.n_heads / shape.n_kv_heads, shape.head_dim.next_multiple_of(TILE))
    }

    /// First position that a query at `position` sees.
    fn first_seen(&self, index: usize, position: usize) -> usize {
        let window = self.config.layers[index].window;
        window.map_or(0, |window| (position + 1).saturating_sub(window))
    }

    /// Segments of attention that a run sees.
    fn segments(&self, index: usize, run: QueryRun) -> Range<usize> {
        let first = self.first_seen(index, run.position);
        first / SEGMENT..(run.position + run.count).div_ceil(SEGMENT)
    }

    /// Queries of one run for one KV head, `(positions, query heads, head_dim)`, with their
    /// biases, normed, turned and scaled; and what each sees.
    fn queries(
        &self,
        (index, head): (usize, usize),
        run: QueryRun,
        query: &[f32],
    ) -> (Vec<f32>, Vec<(usize, usize)>) {
        let (layer, shape) = (&self.layers[index], &self.config.shape);
        let (head_dim, group) = (shape.head_dim, shape.n_heads / shape.n_kv_heads);
        let (q_dim, width) = (shape.n_heads * head_dim, group * head_dim);
        let turns = &self.ropes[self.config.layers[index].rope];
        let first = head * width;
        let bias = layer.query.bias.get(first..first + width).unwrap_or_default();
        let mut queries = Vec::with_capacity(run.count * width);
        let mut visible = Vec::with_capacity(run.count * group);
        for i in 0..run.count {
            let (start, at) = (queries.len(), (run.row + i) * q_dim + first);
            queries.extend_from_slice(&query[at..at + width]);
            let heads = &mut queries[start..];
            add(heads, bias);
            if !layer.query_norm.is_empty() {
                self.kernels.rms_norm(heads, &layer.query_norm, self.eps());
            }
            let position = run.position + i;
            let angles = turns.angles(position);
            heads.chunks_exact_mut(head_dim).for_each(|q| rope::rotate(q, angles));
            heads.iter_mut().for_each(|q| *q *= self.config.attention_scale);
            let sees = (self.first_seen(index, position), position + 1);
            visible.extend((0..group).map(|_| sees));
        }
        (queries, visible)
    }

    /// One run of positions for one KV head of a layer, from its `parts` where there are any;
    /// puts the outputs of its query heads.
    fn attend_run(
        &self,
        (index, head): (usize, usize),
        run: QueryRun,
        (query, cache, parts): (&[f32], &Cache, &[f32]),
        put: &mut PutRow<'_>,
    ) {
        let head_dim = self.config.shape.head_dim;
        let (group, padded) = self.group_and_padded();
        let mut out = vec![0.0; run.count * group * padded];
        if parts.is_empty() {
            let (queries, visible) = self.queries((index, head), run, query);
            let queries: Vec<&[f32]> = queries.chunks_exact(head_dim).collect();
            let queries = HeadQueries { queries: &queries, visible: &visible };
            let (store, table) = cache.view(run.request, index);
            self.kernels.attend(queries, &store.slab(table, head), &mut out);
        } else {
            let sees = (self.first_seen(index, run.position), run.position + 1);
            let visible = vec![sees; group];
            let segments = self.segments(index, run);
            let parts = &parts[..segments.len() * group * (padded + STATE)];
            self.kernels.merge_segments(&visible, segments.start, parts, &mut out);
        }
        for (i, out) in out.chunks_exact_mut(group * padded).enumerate() {
            for member in (1..group).filter(|_| padded > head_dim) {
                out.copy_within(member * padded..member * padded + head_dim, member * head_dim);
            }
            put(run.row + i, &out[..group * head_dim]);
        }
    }

    /// What the feed-forward part adds: `down(act(gate(n)) * up(n))` on the normed stream n.
    fn feed_forward(&self, layer: &LayerWeights, work: &mut Workspace) -> Result<(), NonFinite> {
        let readers = [&layer.gate, &layer.up];
        self.next_part((&layer.post_attention_norm, &layer.ffn_norm), &readers, work)?;
        let rows = work.x.len() / self.config.shape.hidden_dim;
        let (gate, up) = (&layer.gate.weight, &layer.up.weight);
        let matrices = [gate, up, &layer.down.weight];
        let is_fused = matrices.iter().all(|weight| weight.format().is_quantised())
            && gate.rows().is_multiple_of(BLOCK)
            && readers.iter().all(|linear| linear.bias.is_empty());
        if is_fused {
            let (from, to) = (&work.quantised, &mut work.inner);
            self.kernels.gated((gate, up), self.gating(), from, to, &self.pool)?;
        } else {
            self.gated_floats(layer, rows, work)?;
        }
        let outputs = &mut [(&layer.down, &mut work.added)];
        self.products((&work.gate, &work.inner), rows, outputs);
        add_bias(&layer.down, &mut work.added);
        Ok(())
    }

    fn gating(&self) -> Gating {
        match self.config.activation {
            Activation::Silu => Gating::Silu,
            Activation::Gelu => Gating::Gelu,
        }
    }

    /// The gated product in `work.gate`, and its codes where the down projection wants them.
    fn gated_floats(
        &self,
        layer: &LayerWeights,
        rows: usize,
        work: &mut Workspace,
    ) -> Result<(), NonFinite> {
        let Workspace { gate, up, normed, quantised, inner, .. } = work;
        self.products((normed, quantised), rows, &mut [(&layer.gate, gate), (&layer.up, up)]);
        add_bias(&layer.gate, gate);
        add_bias(&layer.up, up);
        let ffn_dim = layer.gate.weight.rows();
        let len = ROWS_PER_ITEM * ffn_dim;
        self.pool.chunks(gate, len, &|item, gate| {
            let up = &up[item * len..item * len + gate.len()];
            match self.config.activation {
                Activation::Silu => self.kernels.silu_mul(gate, up),
                Activation::Gelu => self.kernels.gelu_mul(gate, up),
            }
        });
        if layer.down.weight.format().is_quantised() {
            self.kernels.quantise(gate, ffn_dim, inner, &self.pool)?;
        }
        Ok(())
    }

    fn logits<'w>(
        &self,
        spans: &[Span<'_>],
        rows: &[Row],
        work: &'w mut Workspace,
    ) -> Result<Logits<'w>, ModelError> {
        let (hidden_dim, vocab_size) = (self.config.shape.hidden_dim, self.config.shape.vocab_size);
        work.normed.clear();
        let (mut end, mut positions) = (0, Vec::new());
        for span in spans {
            end += span.tokens.len();
            let first = end - span.logits_wanted.min(span.tokens.len());
            work.normed.extend_from_slice(&work.x[first * hidden_dim..end * hidden_dim]);
            positions.extend(rows[first..end].iter().map(|row| row.position));
        }
        self.pool.chunks(&mut work.normed, ROWS_PER_ITEM * hidden_dim, &|_, x| {
            self.kernels.rms_norm(x, &self.output_norm, self.eps());
        });
        work.logits.resize(positions.len() * vocab_size, 0.0);
        self.output_rows(work).map_err(|source| {
            let (layer, position) = (self.layers.len(), positions[source.row]);
            ModelError::NotFinite { layer, position, source }
        })?;
        Ok(Logits { vocab_size, values: &work.logits })
    }

    /// `normed . output^T`. A quantised output meets its activations with twice the bits: the
    /// rounding of this one product would reach the logits unsmoothed.
    fn output_rows(&self, work: &mut Workspace) -> Result<(), NonFinite> {
        let Workspace { normed, quantised, logits, .. } = work;
        let output = &self.output;
        if output.format().is_quantised() {
            let columns = output.columns();
            self.kernels.quantise_with_rest(normed, columns, quantised, &self.pool)?;
            self.kernels.matmul_pairs((output, logits), quantised, &self.pool);
        } else {
            self.kernels.matmul_float(&mut [(output, logits)], normed, &self.pool);
        }
        Ok(())
    }

    /// Several products of the same input without their biases, each with the form of the input
    /// that its weights meet.
    fn products(
        &self,
        (floats, codes): (&[f32], &QuantisedRows),
        rows: usize,
        outputs: &mut [(&Linear, &mut Vec<f32>)],
    ) {
        let (mut quantised, mut others) = (Vec::new(), Vec::new());
        for (Linear { weight, .. }, out) in outputs.iter_mut() {
            out.resize(rows * weight.rows(), 0.0);
            let product = (weight, out.as_mut_slice());
            let is_quantised = weight.format().is_quantised();
            if is_quantised { quantised.push(product) } else { others.push(product) }
        }
        if !quantised.is_empty() {
            self.kernels.matmul(&mut quantised, codes, &self.pool);
        }
        if !others.is_empty() {
            self.kernels.matmul_float(&mut others, floats, &self.pool);
        }
    }
}

/// Adds a projection's bias to each row, where it has one.
fn add_bias(linear: &Linear, out: &mut [f32]) {
    if !linear.bias.is_empty() {
        out.chunks_exact_mut(linear.bias.len()).for_each(|row| add(row, &linear.bias));
    }
}

/// `x += y`, element by element; nothing where `y` is empty.
fn add(x: &mut [f32], y: &[f32]) {
    for (x, y) in x.iter_mut().zip(y) {
        *x += y;
    }
}
