//! Attention of one forward pass: keys and values into the cache, queries over what they see.

use std::ops::Range;

use causeway_kernels::{BLOCK, Cut, HeadQueries, NonFinite, PutRow, SEGMENT, STATE, Scratch, TILE};
use causeway_kv_cache::Cache;
use causeway_request::RequestId;

use crate::forward::{Row, Span, add};
use crate::{HeadNorms, Model, Workspace, rope};

/// Query positions of one head group that one work item computes.
const POSITIONS_PER_ITEM: usize = 8;
/// Fewest work items per thread that segments are shared out into: the fewer, the longer the
/// runs of memory that each reads.
const SHARES_PER_THREAD: usize = 2;
/// Fewest segments that are worth an item of their own.
const SEGMENTS_PER_ITEM_MIN: usize = 3;
/// Work items of attention per thread from which segments need not be shared out.
const ITEMS_PER_THREAD: usize = 8;

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
    /// Biases, norms and turns keys, and writes them and the values into the cache.
    pub(crate) fn keep(&self, index: usize, rows: &[Row], cache: &mut Cache, work: &mut Workspace) {
        let (layer, shape) = (&self.layers[index], &self.config.shape);
        let (head_dim, kv_dim) = (shape.head_dim, shape.n_kv_heads * shape.head_dim);
        let turns = self.turns(index);
        let places: Vec<_> = rows.iter().map(|row| (row.request, row.position)).collect();
        let mut blocks = cache.open_blocks(index, &places);
        let (keys, values) = (&work.key, &work.value);
        self.pool.chunks(&mut blocks, 1, &|_, block| {
            let block = &mut block[0];
            block.bring(rows[block.rows().start].position);
            let mut turned = Scratch::of(2 * kv_dim);
            let (k, v) = turned.split_at_mut(kv_dim);
            for row in block.rows() {
                k.copy_from_slice(&keys[row * kv_dim..(row + 1) * kv_dim]);
                v.copy_from_slice(&values[row * kv_dim..(row + 1) * kv_dim]);
                add(k, &layer.key.bias);
                add(v, &layer.value.bias);
                if !layer.key_norm.is_empty() {
                    self.kernels.rms_norm(k, &layer.key_norm, self.eps());
                }
                if let Some(turns) = turns {
                    rope::rotate(k, head_dim, turns.angles(rows[row].position));
                }
                block.write(rows[row].position, k, v);
            }
        });
    }

    /// What turns a layer's queries and keys.
    fn turns(&self, index: usize) -> Option<&rope::Rope> {
        self.config.layers[index].rope.map(|rope| &self.ropes[rope])
    }

    /// Softmax attention of every row over the positions it may see, as the output projection
    /// meets it: codes, or floats in `attended`.
    ///
    /// A work item is a run of positions of one span for one KV head: its queries share each
    /// read of keys and values.
    pub(crate) fn attend(
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
        if !is_one_each || segments <= SEGMENTS_PER_ITEM_MIN || runs.len() * heads >= enough {
            parts.clear();
            return 0;
        }
        let (group, padded) = self.group_and_padded();
        let segment_len = group * (padded + STATE);
        let (wholes, threads) = (runs.len() * heads, self.pool.threads());
        let least = (SHARES_PER_THREAD * threads).div_ceil(wholes);
        // As many for each thread as for the others; `threads` shares of each head are.
        let even = (least..least + threads).find(|shares| wholes * shares % threads == 0);
        let per_item = segments.div_ceil(even.unwrap_or(least)).max(SEGMENTS_PER_ITEM_MIN);
        let per_head = segments.div_ceil(per_item);
        let item_len = per_item * segment_len;
        parts.resize(runs.len() * heads * per_head * item_len, 0.0);
        let places = runs.iter().flat_map(|&run| (0..heads).map(move |head| (run, head)));
        let queries: Vec<_> =
            places.map(|(run, head)| self.queries((index, head), run, query)).collect();
        self.pool.chunks(parts, item_len, &|item, out| {
            let (place, part) = (item / per_head, item % per_head);
            let (run, head) = (runs[place / heads], place % heads);
            let all = self.segments(index, run);
            let first = all.start + part * per_item;
            let mine = first..all.end.min(first + per_item);
            if mine.is_empty() {
                return;
            }
            let out = &mut out[..mine.len() * segment_len];
            let (queries, visible) = &queries[place];
            let queries: Vec<&[f32]> = queries.chunks_exact(self.config.shape.head_dim).collect();
            let soft_cap = self.config.score_cap;
            // A sink joins where the segments are merged.
            let queries = HeadQueries { queries: &queries, visible, soft_cap, sinks: &[] };
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
    ) -> (Scratch, Vec<(usize, usize)>) {
        let (layer, shape) = (&self.layers[index], &self.config.shape);
        let (head_dim, group) = (shape.head_dim, shape.n_heads / shape.n_kv_heads);
        let (q_dim, width) = (shape.n_heads * head_dim, group * head_dim);
        let turns = self.turns(index);
        let first = head * width;
        let bias = layer.query.bias.get(first..first + width).unwrap_or_default();
        let mut queries = Scratch::of(run.count * width);
        let mut visible = Vec::with_capacity(run.count * group);
        for (i, heads) in queries.chunks_exact_mut(width).enumerate() {
            let (at, position) = ((run.row + i) * q_dim + first, run.position + i);
            if self.config.head_norms == HeadNorms::Whole {
                let mut whole = query[at - first..][..q_dim].to_vec();
                add(&mut whole, &layer.query.bias);
                self.kernels.rms_norm(&mut whole, &layer.query_norm, self.eps());
                heads.copy_from_slice(&whole[first..first + width]);
            } else {
                heads.copy_from_slice(&query[at..at + width]);
                add(heads, bias);
                if !layer.query_norm.is_empty() {
                    self.kernels.rms_norm(heads, &layer.query_norm, self.eps());
                }
            }
            if let Some(turns) = turns {
                rope::rotate(heads, head_dim, turns.angles(position));
            }
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
        let mut out = Scratch::of(run.count * group * padded);
        let sinks = self.layers[index].sinks.get(head * group..(head + 1) * group);
        let sinks = sinks.unwrap_or_default().repeat(run.count);
        if parts.is_empty() {
            let (queries, visible) = self.queries((index, head), run, query);
            let queries: Vec<&[f32]> = queries.chunks_exact(head_dim).collect();
            let (visible, soft_cap) = (visible.as_slice(), self.config.score_cap);
            let queries = HeadQueries { queries: &queries, visible, soft_cap, sinks: &sinks };
            let (store, table) = cache.view(run.request, index);
            self.kernels.attend(queries, &store.slab(table, head), &mut out);
        } else {
            let sees = (self.first_seen(index, run.position), run.position + 1);
            let visible = vec![sees; group];
            let segments = self.segments(index, run);
            let parts = &parts[..segments.len() * group * (padded + STATE)];
            let seen = (visible.as_slice(), sinks.as_slice());
            self.kernels.merge_segments(seen, segments.start, parts, &mut out);
        }
        for (i, out) in out.chunks_exact_mut(group * padded).enumerate() {
            for member in (1..group).filter(|_| padded > head_dim) {
                out.copy_within(member * padded..member * padded + head_dim, member * head_dim);
            }
            put(run.row + i, &out[..group * head_dim]);
        }
    }
}
