//! Attention of every SIMD path: scores with keys in lanes, values with head dimensions in lanes.

/// Attention over segments; repeats `scalar::attend` operation for operation.
///
/// Queries come in tiles of at most `tile`. Tiles of two, of up to four and larger ones have as
/// many vectors of keys or values `beside` each other as give enough sums to keep the units busy.
macro_rules! lane_attention {
    ($features:literal, tile $tile:literal, beside $two:literal, $four:literal, $whole:literal) => {
        use crate::attention::{
            HeadQueries, KV_BLOCK, KvSlab, KvType, SEGMENT, STATE, Seen, TILE, range_in, ranges_in,
        };
        use crate::scratch::Scratch;

        const F32: u8 = KvType::F32 as u8;
        const F16: u8 = KvType::F16 as u8;
        const Q8_0: u8 = KvType::Q8_0 as u8;
        /// Queries of the Qwen 2 models that share a KV head, as far as a tile holds them.
        const SEVEN: usize = if $tile < 7 { $tile } else { 7 };

        /// Softmax state of one query: largest score, sum of exponentials.
        #[derive(Clone, Copy)]
        struct Running {
            max: f32,
            sum: f32,
        }

        /// Sixteen numbers of a tile of the KV type, or codes that are yet to be scaled.
        #[target_feature(enable = $features)]
        #[inline]
        fn kv_load<const KIND: u8>(tile: &[u8], at: usize) -> F {
            match KIND {
                F32 => {
                    let bytes = &tile[at * 4..][..64];
                    f_load(bytemuck::cast_slice(bytes).first_chunk().expect("sixteen numbers"))
                }
                F16 => f_half(tile[at * 2..].first_chunk().expect("sixteen halves")),
                _ => f_from_i(i_bytes(tile[at..].first_chunk().expect("sixteen codes"))),
            }
        }

        /// Scales of sixteen positions for one block of head dimensions; 1 where there are none.
        #[target_feature(enable = $features)]
        #[inline]
        fn kv_scales<const KIND: u8>(tile: &[u8], dim: usize, block: usize) -> F {
            if KIND != Q8_0 {
                return f_splat(1.0);
            }
            let at = dim * TILE + block * TILE * size_of::<u16>();
            f_half(tile[at..].first_chunk().expect("sixteen scales"))
        }

        /// Bytes that sixteen numbers of a tile take.
        const fn row_bytes(kind: u8) -> usize {
            match kind {
                F32 => TILE * 4,
                F16 => TILE * 2,
                _ => TILE,
            }
        }

        /// As `scalar::attend`.
        #[target_feature(enable = $features)]
        pub(crate) fn attend(queries: HeadQueries<'_>, slab: &KvSlab<'_>, out: &mut [f32]) {
            queries.check(slab, out.len());
            // Queries of one position bring keys and values in; those of many find them.
            let alone = queries.queries.len() <= $tile;
            for (tile, out) in out.chunks_mut($tile * slab.padded_dim).enumerate() {
                let count = out.len() / slab.padded_dim;
                let tile = queries.part(tile * $tile..tile * $tile + count);
                match slab.kind {
                    KvType::F32 => attend_few_or_many::<F32>(tile, slab, alone, out),
                    KvType::F16 => attend_few_or_many::<F16>(tile, slab, alone, out),
                    KvType::Q8_0 => attend_few_or_many::<Q8_0>(tile, slab, alone, out),
                }
            }
        }

        /// Few queries, as when one position of a small group is decoded, take few lanes.
        #[target_feature(enable = $features)]
        #[inline]
        fn attend_few_or_many<const KIND: u8>(
            tile: HeadQueries<'_>,
            slab: &KvSlab<'_>,
            alone: bool,
            out: &mut [f32],
        ) {
            match (tile.queries.len(), alone) {
                (1 | 2, _) => attend_tile::<KIND, 2, $two, true>(tile, slab, out),
                (3, _) => attend_tile::<KIND, 3, $four, true>(tile, slab, out),
                (4, _) => attend_tile::<KIND, 4, $four, true>(tile, slab, out),
                (7, true) => attend_tile::<KIND, SEVEN, $whole, true>(tile, slab, out),
                (_, true) => attend_tile::<KIND, $tile, $whole, true>(tile, slab, out),
                (_, false) => attend_tile::<KIND, $tile, $whole, false>(tile, slab, out),
            }
        }

        #[target_feature(enable = $features)]
        fn attend_tile<const KIND: u8, const T: usize, const K: usize, const BRINGS: bool>(
            queries: HeadQueries<'_>,
            slab: &KvSlab<'_>,
            out: &mut [f32],
        ) {
            let count = queries.queries.len();
            let turned = turned::<T>(queries);
            let turned = (turned.as_chunks().0, queries.soft_cap);
            let mut state = [Running { max: 0.0, sum: 0.0 }; T];
            let mut started = [false; T];
            let dim = slab.padded_dim;
            let mut scores = [[0.0f32; SEGMENT]; T];
            let mut part = Scratch::of(count * dim);
            for segment in queries.segments() {
                let mut ranges = [(0, 0); T];
                let ranges = ranges_in(segment, queries.visible, &mut ranges);
                let task = (segment * SEGMENT, ranges);
                // What nothing comes before needs no merging, and goes to its place at once.
                let is_first = started == [false; T];
                let into = if is_first { &mut *out } else { &mut *part };
                let into = (into, dim);
                let parts = segment_of::<KIND, T, K, BRINGS>(turned, slab, task, &mut scores, into);
                if is_first {
                    started = std::array::from_fn(|q| ranges.get(q).is_some_and(|r| r.0 < r.1));
                    state = parts;
                    continue;
                }
                for (q, _) in ranges.iter().enumerate().filter(|(_, r)| r.0 < r.1) {
                    let (out, part) = (&mut out[q * dim..][..dim], &part[q * dim..][..dim]);
                    if started[q] {
                        merge(&mut state[q], parts[q], out, part);
                    } else {
                        (state[q], started[q]) = (parts[q], true);
                        out.copy_from_slice(part);
                    }
                }
            }
            for (q, out) in out.chunks_exact_mut(dim).enumerate() {
                finish(state[q], queries.sinks.get(q), out);
            }
        }

        /// As `scalar::attend_segments`.
        #[target_feature(enable = $features)]
        pub(crate) fn attend_segments(
            queries: HeadQueries<'_>,
            slab: &KvSlab<'_>,
            segments: std::ops::Range<usize>,
            out: &mut [f32],
        ) {
            let (count, row_len) = (queries.queries.len(), slab.padded_dim + STATE);
            for first in (0..count).step_by($tile) {
                let end = count.min(first + $tile);
                let tile = queries.part(first..end);
                ask_for_keys(slab, segments.start);
                let outs = out.chunks_mut(count * row_len);
                let outs = outs.map(|out| &mut out[first * row_len..end * row_len]);
                let each = segments.clone().zip(outs);
                match slab.kind {
                    KvType::F32 => segments_of_few_or_many::<F32>(tile, slab, each),
                    KvType::F16 => segments_of_few_or_many::<F16>(tile, slab, each),
                    KvType::Q8_0 => segments_of_few_or_many::<Q8_0>(tile, slab, each),
                }
            }
        }

        /// As `attend_few_or_many`, of each segment by itself.
        #[target_feature(enable = $features)]
        #[inline]
        fn segments_of_few_or_many<'o, const KIND: u8>(
            tile: HeadQueries<'_>,
            slab: &KvSlab<'_>,
            each: impl Iterator<Item = (usize, &'o mut [f32])>,
        ) {
            match tile.queries.len() {
                1 | 2 => segments_of_tile::<KIND, 2, $two>(tile, slab, each),
                3 => segments_of_tile::<KIND, 3, $four>(tile, slab, each),
                4 => segments_of_tile::<KIND, 4, $four>(tile, slab, each),
                7 => segments_of_tile::<KIND, SEVEN, $whole>(tile, slab, each),
                _ => segments_of_tile::<KIND, $tile, $whole>(tile, slab, each),
            }
        }

        /// Asks for the keys of one segment, which no segment before it has asked for.
        #[target_feature(enable = $features)]
        #[inline]
        fn ask_for_keys(slab: &KvSlab<'_>, segment: usize) {
            let tiles = segment * SEGMENT / TILE..(segment + 1) * SEGMENT / TILE;
            for keys in tiles.filter_map(|tile| slab.keys_at(tile)) {
                let bytes = slab.kind.tile_bytes(slab.padded_dim);
                (0..bytes).step_by(64).for_each(|line| prefetch(keys.wrapping_add(line)));
            }
        }

        /// Segments by themselves: of each, every query's values, then its softmax state.
        #[target_feature(enable = $features)]
        fn segments_of_tile<'o, const KIND: u8, const T: usize, const K: usize>(
            queries: HeadQueries<'_>,
            slab: &KvSlab<'_>,
            each: impl Iterator<Item = (usize, &'o mut [f32])>,
        ) {
            let turned = turned::<T>(queries);
            let turned = (turned.as_chunks().0, queries.soft_cap);
            let row_len = slab.padded_dim + STATE;
            let mut scores = [[0.0f32; SEGMENT]; T];
            for (segment, out) in each {
                let mut ranges = [(0, 0); T];
                let ranges = ranges_in(segment, queries.visible, &mut ranges);
                let task = (segment * SEGMENT, ranges);
                let into = (&mut *out, row_len);
                let parts = segment_of::<KIND, T, K, true>(turned, slab, task, &mut scores, into);
                for (out, part) in out.chunks_exact_mut(row_len).zip(parts) {
                    out[slab.padded_dim..][..2].copy_from_slice(&[part.max, part.sum]);
                }
            }
        }

        /// As `scalar::merge_segments`.
        #[target_feature(enable = $features)]
        pub(crate) fn merge_segments(
            (visible, sinks, first): Seen<'_>,
            parts: &[f32],
            out: &mut [f32],
        ) {
            let dim = out.len() / visible.len();
            let row_len = dim + STATE;
            for (q, (&seen, out)) in visible.iter().zip(out.chunks_exact_mut(dim)).enumerate() {
                let mut state = None;
                for (index, parts) in parts.chunks_exact(visible.len() * row_len).enumerate() {
                    let (low, high) = range_in(first + index, seen);
                    if low == high {
                        continue;
                    }
                    let (part, numbers) = parts[q * row_len..][..row_len].split_at(dim);
                    let running = Running { max: numbers[0], sum: numbers[1] };
                    match &mut state {
                        Some(state) => merge(state, running, out, part),
                        None => {
                            state = Some(running);
                            out.copy_from_slice(part);
                        }
                    }
                }
                let state = state.unwrap_or(Running { max: 0.0, sum: 1.0 });
                finish(state, sinks.get(q), out);
            }
        }

        /// Adds a segment's softmax to that of the segments before it.
        #[target_feature(enable = $features)]
        #[inline]
        fn merge(state: &mut Running, part: Running, out: &mut [f32], from: &[f32]) {
            let max = crate::math::max(state.max, part.max);
            let (keep, add) = (one_exp(state.max - max), one_exp(part.max - max));
            state.sum = crate::scalar::fma(state.sum, keep, part.sum * add);
            state.max = max;
            let (keep, add) = (f_splat(keep), f_splat(add));
            for (out, from) in out.as_chunks_mut::<16>().0.iter_mut().zip(from.as_chunks().0) {
                let merged = f_fma(f_load(out), keep, f_mul(f_load(from), add));
                f_store(merged, out);
            }
        }

        /// As `scalar::finish`.
        #[target_feature(enable = $features)]
        #[inline]
        fn finish(state: Running, sink: Option<&f32>, out: &mut [f32]) {
            let mut sum = state.sum;
            if let Some(&sink) = sink {
                let max = crate::math::max(state.max, sink);
                let keep = one_exp(state.max - max);
                sum = crate::scalar::fma(sum, keep, one_exp(sink - max));
                for lanes in out.as_chunks_mut::<16>().0 {
                    let kept = f_mul(f_load(lanes), f_splat(keep));
                    f_store(kept, lanes);
                }
            }
            for lanes in out.as_chunks_mut::<16>().0 {
                let quotient = f_div(f_load(lanes), f_splat(sum));
                f_store(quotient, lanes);
            }
        }

        /// Queries with their numbers side by side: `(head_dim, T)`.
        #[target_feature(enable = $features)]
        #[inline]
        fn turned<const T: usize>(queries: HeadQueries<'_>) -> Scratch {
            let mut scratch = Scratch::of(queries.queries[0].len() * T);
            let turned: &mut [[f32; T]] = scratch.as_chunks_mut().0;
            for (q, query) in queries.queries.iter().enumerate() {
                turned.iter_mut().zip(*query).for_each(|(lane, &x)| lane[q] = x);
            }
            scratch
        }

        /// Softmax states of one segment, and its weighted values in `out`, whose rows are
        /// `row_len` apart; nothing of a query that sees none of it.
        #[target_feature(enable = $features)]
        #[inline]
        fn segment_of<const KIND: u8, const T: usize, const K: usize, const BRINGS: bool>(
            (turned, soft_cap): (&[[f32; T]], f32),
            slab: &KvSlab<'_>,
            (start, ranges): (usize, &[(usize, usize)]),
            scores: &mut [[f32; SEGMENT]; T],
            (out, row_len): (&mut [f32], usize),
        ) -> [Running; T] {
            scores_of::<KIND, T, K, BRINGS>(turned, slab, (start, ranges), scores);
            let mut parts = [Running { max: 0.0, sum: 0.0 }; T];
            for (q, &(low, high)) in ranges.iter().enumerate().filter(|(_, r)| r.0 < r.1) {
                let (low, high) = (low - start, high - start);
                if soft_cap > 0.0 {
                    cap_scores(&mut scores[q][low..high], soft_cap);
                }
                parts[q] = exponentials(&mut scores[q], low, high);
            }
            let whole = slab.padded_dim / (16 * K) * (16 * K);
            for d in (0..whole).step_by(16 * K) {
                let into = (d, row_len, &mut *out);
                values::<KIND, T, K, BRINGS>(slab, (start, ranges), scores, into);
            }
            for d in (whole..slab.padded_dim).step_by(16) {
                let into = (d, row_len, &mut *out);
                values::<KIND, T, 1, BRINGS>(slab, (start, ranges), scores, into);
            }
            parts
        }

        /// Caps scores. Kept apart, since few models have it.
        #[target_feature(enable = $features)]
        #[cold]
        #[inline(never)]
        fn cap_scores(scores: &mut [f32], cap: f32) {
            soft_cap(scores, cap);
        }

        /// `math::exp` of one number, with this path's instructions.
        #[target_feature(enable = $features)]
        #[inline]
        fn one_exp(x: f32) -> f32 {
            let mut lanes = [0.0f32; 16];
            f_store(f_exp(f_splat(x)), &mut lanes);
            lanes[0]
        }

        /// Scores of every query against the tiles that any of them sees in this segment.
        #[target_feature(enable = $features)]
        #[inline]
        fn scores_of<const KIND: u8, const T: usize, const K: usize, const BRINGS: bool>(
            queries: &[[f32; T]],
            slab: &KvSlab<'_>,
            (start, ranges): (usize, &[(usize, usize)]),
            scores: &mut [[f32; SEGMENT]; T],
        ) {
            let seen = || ranges.iter().filter(|r| r.0 < r.1);
            let Some(low) = seen().map(|r| r.0).min() else { return };
            let high = seen().map(|r| r.1).max().unwrap_or(low);
            let (mut tile, end) = (low / TILE, high.div_ceil(TILE));
            while tile + K <= end {
                key_tiles::<KIND, T, K, BRINGS>(queries, slab, (tile, start), scores);
                tile += K;
            }
            for tile in tile..end {
                key_tiles::<KIND, T, 1, BRINGS>(queries, slab, (tile, start), scores);
            }
        }

        /// Scores of every query against `K` tiles of keys.
        #[target_feature(enable = $features)]
        #[inline]
        fn key_tiles<const KIND: u8, const T: usize, const K: usize, const BRINGS: bool>(
            queries: &[[f32; T]],
            slab: &KvSlab<'_>,
            (tile, start): (usize, usize),
            scores: &mut [[f32; SEGMENT]; T],
        ) {
            let keys: [&[u8]; K] = std::array::from_fn(|k| slab.keys_of(tile + k));
            let values: [&[u8]; K] = std::array::from_fn(|k| slab.values_of(tile + k));
            let row_bytes = row_bytes(KIND);
            let mut sums = [[f_splat(0.0); T]; K];
            // Dimensions that share their scales; all of them where there are none.
            let step = if KIND == Q8_0 { KV_BLOCK } else { queries.len().max(1) };
            for (block, queries) in queries.chunks(step).enumerate() {
                let mut scales = [f_splat(1.0); K];
                for ((scales, keys), values) in scales.iter_mut().zip(&keys).zip(values) {
                    *scales = kv_scales::<KIND>(keys, slab.padded_dim, block);
                    if BRINGS && KIND == Q8_0 {
                        let behind = slab.padded_dim * TILE + block * TILE * size_of::<u16>();
                        prefetch(values.as_ptr().wrapping_add(behind));
                    }
                }
                for (d, query) in (block * step..).zip(queries) {
                    // The values of these positions are read next; they are as many bytes.
                    if BRINGS && d * row_bytes % 64 == 0 {
                        for values in values {
                            prefetch(values.as_ptr().wrapping_add(d * row_bytes));
                        }
                    }
                    for ((keys, scales), sums) in keys.iter().zip(&scales).zip(&mut sums) {
                        let mut key = kv_load::<KIND>(keys, d * TILE);
                        if KIND == Q8_0 {
                            key = f_mul(key, *scales);
                        }
                        for (sum, &x) in sums.iter_mut().zip(query) {
                            *sum = f_fma(key, f_splat(x), *sum);
                        }
                    }
                }
            }
            for (k, sums) in sums.iter().enumerate() {
                let at = (tile + k) * TILE - start;
                for (scores, &sum) in scores.iter_mut().zip(sums) {
                    f_store(sum, scores[at..].first_chunk_mut().expect("a tile"));
                }
            }
        }

        /// Turns scores `low..high` of a segment into `e^(score - max)`, in place; what lies
        /// beside them in their tiles becomes 0.
        #[target_feature(enable = $features)]
        fn exponentials(scores: &mut [f32; SEGMENT], low: usize, high: usize) -> Running {
            let tiles = low / TILE * TILE..high.next_multiple_of(TILE);
            let tiles = scores[tiles.clone()].as_chunks_mut::<16>().0;
            let first = low % TILE;
            let end = high - low / TILE * TILE;
            let mask = |tiles: &mut [[f32; 16]], with: f32| {
                let flat = tiles.as_flattened_mut();
                flat[..first].fill(with);
                flat[end..].fill(with);
            };
            mask(tiles, f32::NEG_INFINITY);
            let mut maxima = f_splat(f32::NEG_INFINITY);
            for tile in tiles.iter() {
                maxima = f_max(maxima, f_load(tile));
            }
            let max = f_tree_max(maxima);
            for tile in tiles.iter_mut() {
                let e = f_exp(f_sub(f_load(tile), f_splat(max)));
                f_store(e, tile);
            }
            mask(tiles, 0.0);
            let mut sums = f_splat(0.0);
            for tile in tiles.iter() {
                sums = f_add(sums, f_load(tile));
            }
            Running { max, sum: f_tree_sum(sums) }
        }

        /// Scales of a tile of values for dimensions `d..d + 16 K`, block by block.
        #[target_feature(enable = $features)]
        #[inline]
        fn scales_of<const KIND: u8, const K: usize>(
            tile: &[u8],
            dim: usize,
            d: usize,
        ) -> [[f32; TILE]; 2] {
            const { assert!(K == 1 || K == 2 || K == 4, "at most two blocks, whole but for one") };
            let mut scales = [[1.0; TILE]; 2];
            if KIND == Q8_0 {
                for (block, scales) in scales.iter_mut().take(K.div_ceil(2)).enumerate() {
                    f_store(kv_scales::<KIND>(tile, dim, d / KV_BLOCK + block), scales);
                }
            }
            scales
        }

        /// The `k`th sixteen numbers of `part`, some dimensions of one position's value; `scale` is
        /// that of their block.
        #[target_feature(enable = $features)]
        #[inline]
        fn value_load<const KIND: u8>(part: &[u8], k: usize, scale: f32) -> F {
            let v = kv_load::<KIND>(part, 16 * k);
            if KIND == Q8_0 { f_mul(v, f_splat(scale)) } else { v }
        }

        /// Weighted values of this segment for dimensions `d..d + 16 K`.
        #[target_feature(enable = $features)]
        #[inline]
        fn values<const KIND: u8, const T: usize, const K: usize, const BRINGS: bool>(
            slab: &KvSlab<'_>,
            (start, ranges): (usize, &[(usize, usize)]),
            weights: &[[f32; SEGMENT]; T],
            (d, row_len, out): (usize, usize, &mut [f32]),
        ) {
            let dim = slab.padded_dim;
            let row_bytes = row_bytes(KIND);
            // What all queries see is computed together; before and after, each alone.
            let low = ranges.iter().map(|r| r.0).max().unwrap_or(0);
            let high = ranges.iter().map(|r| r.1).min().unwrap_or(0).max(low);
            let mut sums = [[f_splat(0.0); T]; K];
            let alone = |sums: &mut [[F; T]; K], q: usize, from: usize, to: usize| {
                for position in from..to {
                    let values = slab.values_of(position / TILE);
                    let scales = scales_of::<KIND, K>(values, dim, d);
                    let weight = f_splat(weights[q][position - start]);
                    let lane = position % TILE;
                    let part = &values[(lane * dim + d) * row_bytes / TILE..][..K * row_bytes];
                    for (k, sums) in sums.iter_mut().enumerate() {
                        let v = value_load::<KIND>(part, k, scales[k / 2][lane]);
                        sums[q] = f_fma(v, weight, sums[q]);
                    }
                }
            };
            for (q, &(from, to)) in ranges.iter().enumerate() {
                alone(&mut sums, q, from, to.min(low));
            }
            // Indexed by constants alone, so that these stay in registers.
            let mut together = sums;
            let mut position = low;
            while position < high {
                let values = slab.values_of(position / TILE);
                let scales = scales_of::<KIND, K>(values, dim, d);
                // The keys of the next segment are read next; they are as many bytes.
                let ahead = if BRINGS { slab.keys_at((position + SEGMENT) / TILE) } else { None };
                if let (Some(keys), true) = (ahead, KIND == Q8_0) {
                    let behind = dim * TILE + d / KV_BLOCK * TILE * size_of::<u16>();
                    prefetch(keys.wrapping_add(behind));
                }
                let end = high.min((position / TILE + 1) * TILE);
                let rows = values.chunks_exact(dim * row_bytes / TILE).enumerate();
                let lanes = position % TILE..(end - 1) % TILE + 1;
                for (lane, row) in rows.take(lanes.end).skip(lanes.start) {
                    if let Some(keys) = ahead {
                        let from = (lane * dim + d) * row_bytes / TILE;
                        for line in (0..K * row_bytes).step_by(64) {
                            prefetch(keys.wrapping_add(from + line));
                        }
                    }
                    let part = &row[d * row_bytes / TILE..][..K * row_bytes];
                    let at = position / TILE * TILE - start + lane;
                    for (k, sums) in together.iter_mut().enumerate() {
                        let v = value_load::<KIND>(part, k, scales[k / 2][lane]);
                        for (sum, weights) in sums.iter_mut().zip(weights) {
                            // A segment's length is a power of two: the index needs no check.
                            *sum = f_fma(v, f_splat(weights[at % SEGMENT]), *sum);
                        }
                    }
                }
                position = end;
            }
            sums = together;
            for (q, &(from, to)) in ranges.iter().enumerate() {
                alone(&mut sums, q, from.max(high), to);
            }
            for (q, _) in ranges.iter().enumerate().filter(|(_, r)| r.0 < r.1) {
                for (k, sums) in sums.iter().enumerate() {
                    let at = q * row_len + d + 16 * k;
                    f_store(sums[q], out[at..].first_chunk_mut().expect("sixteen dimensions"));
                }
            }
        }
    };
}
pub(crate) use lane_attention;
