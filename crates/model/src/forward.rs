//! One forward pass over spans of sequences, straight down the paper.

use causeway_kernels::{BLOCK, NonFinite, NormStep, QuantisedRows};
use causeway_kv_cache::Cache;
use causeway_request::{RequestId, TokenId};

use crate::load::{FeedForward, Gated, LayerWeights, Linear};
use crate::{Model, ModelError, Workspace};

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
pub(crate) struct Row {
    pub(crate) request: RequestId,
    pub(crate) position: usize,
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
        let wanted = spans.iter().map(|span| span.logits_wanted.min(span.tokens.len())).sum();
        work.reserve(&self.config, rows.len(), wanted)?;
        self.embed(spans, work)?;
        work.added.clear();
        let (mut spans, mut rows) = (spans.to_vec(), rows);
        for (index, layer) in self.layers.iter().enumerate() {
            let not_finite = |rows: &[Row], source: NonFinite| {
                let position = rows[source.row].position;
                ModelError::NotFinite { layer: index, position, source }
            };
            let before = index.checked_sub(1).map(|before| &self.layers[before]);
            let added_norm = before.map_or(&[][..], |before| &before.post_ffn_norm);
            let projected = self.project(index, added_norm, &rows, work);
            projected.map_err(|source| not_finite(&rows, source))?;
            self.keep(index, &rows, cache, work);
            if index + 1 == self.layers.len() {
                spans = self.keep_wanted(&spans, work);
                rows = self.rows(&spans)?;
            }
            let attended = self.attention(index, &spans, cache, work);
            attended.map_err(|source| not_finite(&rows, source))?;
            let fed = self.feed_forward(layer, work);
            fed.map_err(|source| not_finite(&rows, source))?;
        }
        let added_norm = self.layers.last().map_or(&[][..], |last| &last.post_ffn_norm);
        let step = NormStep { added_norm, norm: &[], added: &work.added, eps: self.eps() };
        let x = (work.x.as_mut_slice(), self.config.shape.hidden_dim);
        let summed = self.kernels.norm_step(x, &step, &mut work.quantised, &self.pool);
        summed.expect("invariant: only what is quantised must be finite");
        self.logits(&rows, work)
    }

    /// Leaves in the stream and the queries only rows whose logits are wanted; gives their spans.
    ///
    /// The last layer's keys and values are all that later tokens read of the others.
    fn keep_wanted<'t>(&self, spans: &[Span<'t>], work: &mut Workspace) -> Vec<Span<'t>> {
        let shape = &self.config.shape;
        let lens = (shape.hidden_dim, shape.n_heads * shape.head_dim);
        let mut wanted = Vec::with_capacity(spans.len());
        let (mut end, mut kept) = (0, 0);
        for span in spans {
            let count = span.logits_wanted.min(span.tokens.len());
            let skipped = span.tokens.len() - count;
            end += span.tokens.len();
            for (rows, len) in [(&mut work.x, lens.0), (&mut work.query, lens.1)] {
                rows.copy_within((end - count) * len..end * len, kept * len);
            }
            kept += count;
            let (first_position, tokens) = (span.first_position + skipped, &span.tokens[skipped..]);
            wanted.push(Span { first_position, tokens, ..*span });
        }
        work.x.truncate(kept * lens.0);
        work.query.truncate(kept * lens.1);
        wanted
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
        let tokens: Vec<_> = spans.iter().flat_map(|span| span.tokens).collect();
        if let Some(token) = tokens.iter().find(|token| token.index() >= vocab_size) {
            return Err(ModelError::Token { token: token.0, vocab_size });
        }
        work.x.resize(tokens.len() * hidden_dim, 0.0);
        let rows = tokens.iter().map(|token| token.index());
        self.file.dequantize_rows(&embedding, rows, &mut work.x)?;
        let scale = self.config.embedding_scale;
        work.x.iter_mut().for_each(|x| *x *= scale);
        Ok(())
    }

    pub(crate) fn eps(&self) -> f32 {
        self.config.norm_eps
    }

    /// Adds what the part before gave to the stream and norms the stream for the next part, as
    /// codes and, where one of `readers` has float weights or wants to choose rows, as floats.
    fn next_part(
        &self,
        (added_norm, norm): (&[f32], &[f32]),
        readers: &[&Linear],
        chooses_rows: bool,
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
        if codes && norm.is_empty() {
            self.kernels.quantise(&work.x, hidden_dim, &mut work.quantised, &self.pool)?;
        }
        if chooses_rows || !readers.iter().all(is_quantised) {
            work.normed.clone_from(&work.x);
            if !norm.is_empty() {
                self.pool.chunks(&mut work.normed, ROWS_PER_ITEM * hidden_dim, &|_, x| {
                    self.kernels.rms_norm(x, norm, self.eps());
                });
            }
        }
        Ok(())
    }

    /// Queries, keys and values of the normed stream, without their biases.
    fn project(
        &self,
        index: usize,
        added_norm: &[f32],
        rows: &[Row],
        work: &mut Workspace,
    ) -> Result<(), NonFinite> {
        let layer = &self.layers[index];
        let readers = [&layer.query, &layer.key, &layer.value];
        self.next_part((added_norm, &layer.attention_norm), &readers, false, work)?;
        let Workspace { query, key, value, .. } = work;
        let outputs = &mut [(readers[0], query), (readers[1], key), (readers[2], value)];
        self.products((&work.normed, &work.quantised), rows.len(), outputs);
        Ok(())
    }

    /// What attention adds: `output(attend(q, k, v))`.
    fn attention(
        &self,
        index: usize,
        spans: &[Span<'_>],
        cache: &Cache,
        work: &mut Workspace,
    ) -> Result<(), NonFinite> {
        let output = &self.layers[index].output;
        self.attend(index, spans, cache, work)?;
        let rows = work.x.len() / self.config.shape.hidden_dim;
        let outputs = &mut [(output, &mut work.added)];
        self.products((&work.attended, &work.quantised), rows, outputs);
        add_bias(output, &mut work.added);
        self.scale_added(work);
        Ok(())
    }

    /// What a part adds, as the stream takes it.
    fn scale_added(&self, work: &mut Workspace) {
        let scale = self.config.residual_scale;
        if scale.to_bits() != 1.0_f32.to_bits() {
            work.added.iter_mut().for_each(|added| *added *= scale);
        }
    }

    /// What the feed-forward part adds.
    fn feed_forward(&self, layer: &LayerWeights, work: &mut Workspace) -> Result<(), NonFinite> {
        let norms = (layer.post_attention_norm.as_slice(), layer.ffn_norm.as_slice());
        let rows = work.x.len() / self.config.shape.hidden_dim;
        match &layer.feed_forward {
            FeedForward::One(one) => {
                self.next_part(norms, &[&one.gate, &one.up], false, work)?;
                self.gated(one, rows, work)?;
            }
            FeedForward::Experts { router, experts } => {
                self.next_part(norms, &[router], true, work)?;
                self.through_experts(router, experts, rows, work)?;
            }
        }
        self.scale_added(work);
        Ok(())
    }

    /// `added = down(act(gate(n)) * up(n))` on the normed stream n.
    pub(crate) fn gated(
        &self,
        part: &Gated,
        rows: usize,
        work: &mut Workspace,
    ) -> Result<(), NonFinite> {
        let (gate, up) = (&part.gate.weight, &part.up.weight);
        let matrices = [gate, up, &part.down.weight];
        let is_fused = matrices.iter().all(|weight| weight.format().is_quantised())
            && gate.rows().is_multiple_of(BLOCK)
            && part.gate.bias.is_empty()
            && part.up.bias.is_empty();
        if is_fused {
            let (from, to) = (&work.quantised, &mut work.inner);
            self.kernels.gated((gate, up), self.config.activation, from, to, &self.pool)?;
        } else {
            self.gated_floats(part, rows, work)?;
        }
        let outputs = &mut [(&part.down, &mut work.added)];
        self.products((&work.gate, &work.inner), rows, outputs);
        add_bias(&part.down, &mut work.added);
        Ok(())
    }

    /// The gated product in `work.gate`, and its codes where the down projection wants them.
    fn gated_floats(
        &self,
        part: &Gated,
        rows: usize,
        work: &mut Workspace,
    ) -> Result<(), NonFinite> {
        let Workspace { gate, up, normed, quantised, inner, .. } = work;
        self.products((normed, quantised), rows, &mut [(&part.gate, gate), (&part.up, up)]);
        add_bias(&part.gate, gate);
        add_bias(&part.up, up);
        let ffn_dim = part.gate.weight.rows();
        let len = ROWS_PER_ITEM * ffn_dim;
        self.pool.chunks(gate, len, &|item, gate| {
            let up = &up[item * len..item * len + gate.len()];
            self.kernels.activate(self.config.activation, gate, up);
        });
        if part.down.weight.format().is_quantised() {
            self.kernels.quantise(gate, ffn_dim, inner, &self.pool)?;
        }
        Ok(())
    }

    /// The logits of every row of the stream.
    fn logits<'w>(&self, rows: &[Row], work: &'w mut Workspace) -> Result<Logits<'w>, ModelError> {
        let (hidden_dim, vocab_size) = (self.config.shape.hidden_dim, self.config.shape.vocab_size);
        work.normed.clone_from(&work.x);
        self.pool.chunks(&mut work.normed, ROWS_PER_ITEM * hidden_dim, &|_, x| {
            self.kernels.rms_norm(x, &self.output_norm, self.eps());
        });
        work.logits.resize(rows.len() * vocab_size, 0.0);
        self.output_rows(work).map_err(|source| {
            let (layer, position) = (self.layers.len(), rows[source.row].position);
            ModelError::NotFinite { layer, position, source }
        })?;
        self.shape_logits(work);
        Ok(Logits { vocab_size, values: &work.logits })
    }

    /// Divides and caps logits, in families that do.
    fn shape_logits(&self, work: &mut Workspace) {
        let (divisor, cap) = (self.config.logit_divisor, self.config.logit_cap);
        let vocab_size = self.config.shape.vocab_size;
        if divisor.to_bits() != 1.0_f32.to_bits() {
            self.pool.chunks(&mut work.logits, vocab_size, &|_, row| {
                row.iter_mut().for_each(|logit| *logit /= divisor);
            });
        }
        if cap > 0.0 {
            self.pool.chunks(&mut work.logits, vocab_size, &|_, row| {
                self.kernels.soft_cap(row, cap);
            });
        }
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
    pub(crate) fn products(
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
pub(crate) fn add_bias(linear: &Linear, out: &mut [f32]) {
    if !linear.bias.is_empty() {
        out.chunks_exact_mut(linear.bias.len()).for_each(|row| add(row, &linear.bias));
    }
}

/// `x += y`, element by element; nothing where `y` is empty.
pub(crate) fn add(x: &mut [f32], y: &[f32]) {
    for (x, y) in x.iter_mut().zip(y) {
        *x += y;
    }
}
