//! One forward pass over spans of sequences, straight down the paper.

use causeway_kernels::{HeadQueries, NonFinite, QuantisedRows};
use causeway_kv_cache::Cache;
use causeway_request::{RequestId, TokenId};

use crate::load::{LayerWeights, Linear};
use crate::{Activation, Model, ModelError, Workspace, rope};

/// Query positions of one head group that one work item computes.
const POSITIONS_PER_ITEM: usize = 8;
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

/// Rows of logits, in the order of the spans and of the positions in each.
#[derive(Debug, Clone, PartialEq)]
pub struct Logits {
    vocab_size: usize,
    values: Vec<f32>, // (rows, vocab_size)
}

impl Logits {
    /// The rows, each `vocab_size` long.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.vocab_size)
    }
}

/// One row of the pass: whose token it is, and where it stands.
#[derive(Debug, Clone, Copy)]
struct Row {
    request: RequestId,
    position: usize,
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
    pub fn forward(
        &self,
        spans: &[Span<'_>],
        cache: &mut Cache,
        work: &mut Workspace,
    ) -> Result<Logits, ModelError> {
        let rows = self.rows(spans)?;
        self.embed(spans, work)?;
        for (index, layer) in self.layers.iter().enumerate() {
            let not_finite = |source: NonFinite| {
                let position = rows[source.row].position;
                ModelError::NotFinite { layer: index, position, source }
            };
            self.attention(index, (&rows, spans), cache, work).map_err(not_finite)?;
            self.feed_forward(layer, work).map_err(not_finite)?;
        }
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

    /// `x += output(attend(q, k, v))` on the normed stream.
    fn attention(
        &self,
        index: usize,
        (rows, spans): (&[Row], &[Span<'_>]),
        cache: &mut Cache,
        work: &mut Workspace,
    ) -> Result<(), NonFinite> {
        let (layer, shape) = (&self.layers[index], &self.config.shape);
        work.normed.clone_from(&work.x);
        self.norm(&mut work.normed, &layer.attention_norm);
        self.linear_rows(
            &work.normed,
            &mut work.quantised,
            &mut [
                (&layer.query, &mut work.query),
                (&layer.key, &mut work.key),
                (&layer.value, &mut work.value),
            ],
        )?;
        self.norm(&mut work.query, &layer.query_norm);
        self.norm(&mut work.key, &layer.key_norm);
        let turns = &self.ropes[self.config.layers[index].rope];
        let (q_dim, kv_dim) = (shape.n_heads * shape.head_dim, shape.n_kv_heads * shape.head_dim);
        self.each_row(&mut work.query, q_dim, &|row, q| {
            rope::rotate(q, turns.angles(rows[row].position));
            q.iter_mut().for_each(|q| *q *= self.config.attention_scale);
        });
        self.each_row(&mut work.key, kv_dim, &|row, k| {
            rope::rotate(k, turns.angles(rows[row].position));
        });
        let kv = work.key.chunks_exact(kv_dim).zip(work.value.chunks_exact(kv_dim));
        for (row, kv) in rows.iter().zip(kv) {
            cache.write(row.request, index, row.position, kv);
        }
        self.attend(index, spans, cache, work);
        let outputs = &mut [(&layer.output, &mut work.added)];
        self.linear_rows(&work.attended, &mut work.quantised, outputs)?;
        self.norm(&mut work.added, &layer.post_attention_norm);
        self.add_rows(&mut work.x, &work.added);
        Ok(())
    }

    /// Softmax attention of every row over the positions it may see.
    ///
    /// A work item is a run of positions of one span for one KV head: its queries share each
    /// read of keys and values.
    fn attend(&self, index: usize, spans: &[Span<'_>], cache: &Cache, work: &mut Workspace) {
        let shape = &self.config.shape;
        let (head_dim, group) = (shape.head_dim, shape.n_heads / shape.n_kv_heads);
        let q_dim = shape.n_heads * head_dim;
        let padded = head_dim.next_multiple_of(causeway_kernels::TILE);
        let window = self.config.layers[index].window;
        let mut items = Vec::new();
        let mut first_row = 0;
        for (span, tokens) in spans.iter().map(|span| (span, span.tokens.len())) {
            for start in (0..tokens).step_by(POSITIONS_PER_ITEM) {
                let count = POSITIONS_PER_ITEM.min(tokens - start);
                let first = (first_row + start, span.first_position + start);
                items.extend((0..shape.n_kv_heads).map(|head| (span.request, first, count, head)));
            }
            first_row += tokens;
        }
        let item_len = POSITIONS_PER_ITEM * group * padded;
        work.tiles.resize(items.len() * item_len, 0.0);
        let query = &work.query;
        self.pool.chunks(&mut work.tiles, item_len, &|item, out| {
            let (request, (first_row, first_position), count, head) = items[item];
            let (store, table) = cache.view(request, index);
            let (mut queries, mut visible) = (Vec::new(), Vec::new());
            for i in 0..count {
                let end = first_position + i + 1;
                let first = window.map_or(0, |window| end.saturating_sub(window));
                for member in 0..group {
                    let at = (first_row + i) * q_dim + (head * group + member) * head_dim;
                    queries.push(&query[at..at + head_dim]);
                    visible.push((first, end));
                }
            }
            let queries = HeadQueries { queries: &queries, visible: &visible };
            let out = &mut out[..count * group * padded];
            self.kernels.attend(queries, &store.slab(table, head), out);
        });
        work.attended.resize(query.len(), 0.0);
        for (&(_, (first_row, _), count, head), tile) in
            items.iter().zip(work.tiles.chunks_exact(item_len))
        {
            for (i, out) in tile.chunks_exact(padded).take(count * group).enumerate() {
                let at = (first_row + i / group) * q_dim + (head * group + i % group) * head_dim;
                work.attended[at..at + head_dim].copy_from_slice(&out[..head_dim]);
            }
        }
    }

    /// `x += down(act(gate(n)) * up(n))` on the normed stream n.
    fn feed_forward(&self, layer: &LayerWeights, work: &mut Workspace) -> Result<(), NonFinite> {
        work.normed.clone_from(&work.x);
        self.norm(&mut work.normed, &layer.ffn_norm);
        let outputs = &mut [(&layer.gate, &mut work.gate), (&layer.up, &mut work.up)];
        self.linear_rows(&work.normed, &mut work.quantised, outputs)?;
        let len = ROWS_PER_ITEM * self.config.shape.ffn_dim / 2;
        let up = &work.up;
        self.pool.chunks(&mut work.gate, len, &|item, gate| {
            let up = &up[item * len..item * len + gate.len()];
            match self.config.activation {
                Activation::Silu => self.kernels.silu_mul(gate, up),
                Activation::Gelu => self.kernels.gelu_mul(gate, up),
            }
        });
        let outputs = &mut [(&layer.down, &mut work.added)];
        self.linear_rows(&work.gate, &mut work.quantised, outputs)?;
        self.norm(&mut work.added, &layer.post_ffn_norm);
        self.add_rows(&mut work.x, &work.added);
        Ok(())
    }

    fn logits(
        &self,
        spans: &[Span<'_>],
        rows: &[Row],
        work: &mut Workspace,
    ) -> Result<Logits, ModelError> {
        let (hidden_dim, vocab_size) = (self.config.shape.hidden_dim, self.config.shape.vocab_size);
        work.normed.clear();
        let (mut end, mut positions) = (0, Vec::new());
        for span in spans {
            end += span.tokens.len();
            let first = end - span.logits_wanted.min(span.tokens.len());
            work.normed.extend_from_slice(&work.x[first * hidden_dim..end * hidden_dim]);
            positions.extend(rows[first..end].iter().map(|row| row.position));
        }
        self.norm(&mut work.normed, &self.output_norm);
        let values = self.output_rows(work).map_err(|source| {
            let (layer, position) = (self.layers.len(), positions[source.row]);
            ModelError::NotFinite { layer, position, source }
        })?;
        Ok(Logits { vocab_size, values })
    }

    /// `normed . output^T`. A quantised output meets its activations with twice the bits: the
    /// rounding of this one product would reach the logits unsmoothed.
    fn output_rows(&self, work: &mut Workspace) -> Result<Vec<f32>, NonFinite> {
        let (input, quantised, output) = (&work.normed, &mut work.quantised, &self.output);
        let (columns, vocab_size) = (output.columns(), output.rows());
        let mut values = vec![0.0; input.len() / columns * vocab_size];
        if !output.format().is_quantised() {
            self.kernels.matmul_float(&mut [(output, &mut values)], input, &self.pool);
            return Ok(values);
        }
        self.kernels.quantise_with_rest(input, columns, quantised, &self.pool)?;
        let mut pairs = vec![0.0; 2 * values.len()];
        self.kernels.matmul(&mut [(output, &mut pairs)], quantised, &self.pool);
        for (row, pair) in
            values.chunks_exact_mut(vocab_size).zip(pairs.chunks_exact(2 * vocab_size))
        {
            let (codes, rest) = pair.split_at(vocab_size);
            row.iter_mut().zip(codes).zip(rest).for_each(|((out, a), b)| *out = a + b);
        }
        Ok(values)
    }

    /// `x += y`, rows shared out over the threads.
    fn add_rows(&self, x: &mut [f32], y: &[f32]) {
        let hidden_dim = self.config.shape.hidden_dim;
        self.each_row(x, hidden_dim, &|row, x| add(x, &y[row * hidden_dim..][..hidden_dim]));
    }

    /// Calls `work` with every row of `x`, rows shared out over the threads.
    fn each_row(&self, x: &mut [f32], row_len: usize, work: &(dyn Fn(usize, &mut [f32]) + Sync)) {
        self.pool.chunks(x, ROWS_PER_ITEM * row_len, &|item, rows| {
            for (index, row) in rows.chunks_exact_mut(row_len).enumerate() {
                work(item * ROWS_PER_ITEM + index, row);
            }
        });
    }

    /// RMS norm of each piece of the weight's length; nothing where there is no weight.
    fn norm(&self, x: &mut [f32], weight: &[f32]) {
        if weight.is_empty() {
            return;
        }
        self.pool.chunks(x, ROWS_PER_ITEM * weight.len(), &|_, x| {
            self.kernels.rms_norm(x, weight, self.config.norm_eps);
        });
    }

    /// Several products of the same input, which is quantised at most once.
    fn linear_rows(
        &self,
        x: &[f32],
        quantised: &mut QuantisedRows,
        outputs: &mut [(&Linear, &mut Vec<f32>)],
    ) -> Result<(), NonFinite> {
        let columns = outputs[0].0.weight.columns();
        let (mut codes, mut floats) = (Vec::new(), Vec::new());
        for (linear, out) in outputs.iter_mut() {
            let weight = &linear.weight;
            out.resize(x.len() / columns * weight.rows(), 0.0);
            let product = (weight, out.as_mut_slice());
            if weight.format().is_quantised() { codes.push(product) } else { floats.push(product) }
        }
        if !codes.is_empty() {
            self.kernels.quantise(x, columns, quantised, &self.pool)?;
            self.kernels.matmul(&mut codes, quantised, &self.pool);
        }
        self.kernels.matmul_float(&mut floats, x, &self.pool);
        for (Linear { bias, .. }, out) in outputs.iter_mut().filter(|(l, _)| !l.bias.is_empty()) {
            out.chunks_exact_mut(bias.len()).for_each(|row| add(row, bias));
        }
        Ok(())
    }
}

/// `x += y`, element by element.
fn add(x: &mut [f32], y: &[f32]) {
    for (x, y) in x.iter_mut().zip(y) {
        *x += y;
    }
}
