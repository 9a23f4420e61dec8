//! Attention of every SIMD path: scores with keys in lanes, values with head dimensions in lanes.

/// Attention over segments; repeats `scalar::attend` operation for operation.
macro_rules! lane_attention {
    ($features:literal, tile $tile:literal) => {
        use crate::attention::{HeadQueries, KvSlab, KvType, SEGMENT, TILE};

        /// Softmax state of one query: largest score, sum of exponentials.
        #[derive(Clone, Copy)]
        struct Running {
            max: f32,
            sum: f32,
        }

        #[target_feature(enable = $features)]
        #[inline]
        fn kv_load<const HALF: bool>(bytes: &[u8], at: usize) -> F {
            if HALF {
                f_half(bytes[at * 2..].first_chunk().expect("sixteen halves"))
            } else {
                let bytes = &bytes[at * 4..][..64];
                f_load(bytemuck::cast_slice(bytes).first_chunk().expect("sixteen numbers"))
            }
        }

        /// As `scalar::attend`.
        #[target_feature(enable = $features)]
        pub(crate) fn attend(queries: HeadQueries<'_>, slab: &KvSlab<'_>, out: &mut [f32]) {
            queries.check(slab, out);
            for (tile, out) in out.chunks_mut($tile * slab.padded_dim).enumerate() {
                let count = out.len() / slab.padded_dim;
                let tile = HeadQueries {
                    queries: &queries.queries[tile * $tile..][..count],
                    visible: &queries.visible[tile * $tile..][..count],
                };
                match slab.kind {
                    KvType::F16 => attend_tile::<true>(tile, slab, out),
                    KvType::F32 => attend_tile::<false>(tile, slab, out),
                }
            }
        }

        #[target_feature(enable = $features)]
        fn attend_tile<const HALF: bool>(
            queries: HeadQueries<'_>,
            slab: &KvSlab<'_>,
            out: &mut [f32],
        ) {
            let count = queries.queries.len();
            let mut state = [Running { max: 0.0, sum: 0.0 }; $tile];
            let mut started = [false; $tile];
            let first = queries.visible.iter().map(|v| v.0).min().unwrap_or(0);
            let end = queries.visible.iter().map(|v| v.1).max().unwrap_or(0);
            let mut weights = [[0.0f32; SEGMENT]; $tile];
            for segment in first / SEGMENT..end.div_ceil(SEGMENT) {
                let start = segment * SEGMENT;
                let mut ranges = [(0, 0); $tile];
                for (range, &(first, end)) in ranges.iter_mut().zip(queries.visible) {
                    let low = first.clamp(start, start + SEGMENT);
                    *range = (low, end.clamp(low, start + SEGMENT));
                }
                scores::<HALF>(queries.queries, slab, (start, &ranges[..count]), &mut weights);
                let mut parts = [Running { max: 0.0, sum: 0.0 }; $tile];
                let mut factors = [(0.0f32, 0.0f32); $tile];
                for q in 0..count {
                    let (low, high) = ranges[q];
                    if low == high {
                        continue;
                    }
                    parts[q] = exponentials(&mut weights[q], low - start, high - start);
                    if started[q] {
                        let max = crate::math::max(state[q].max, parts[q].max);
                        let keep = crate::math::exp(state[q].max - max);
                        let add = crate::math::exp(parts[q].max - max);
                        state[q].sum = crate::scalar::fma(state[q].sum, keep, parts[q].sum * add);
                        state[q].max = max;
                        factors[q] = (keep, add);
                    } else {
                        state[q] = parts[q];
                    }
                }
                let task = (start, &ranges[..count]);
                values::<HALF>(slab, task, (&weights, &factors, &started), out);
                for q in 0..count {
                    started[q] |= ranges[q].0 < ranges[q].1;
                }
            }
            for (q, out) in out.chunks_exact_mut(slab.padded_dim).enumerate() {
                let sum = f_splat(state[q].sum);
                for lanes in out.as_chunks_mut::<16>().0 {
                    let quotient = f_div(f_load(lanes), sum);
                    f_store(quotient, lanes);
                }
            }
        }

        /// Scores of every query against the tiles that any of them sees in this segment.
        #[target_feature(enable = $features)]
        #[inline]
        fn scores<const HALF: bool>(
            queries: &[&[f32]],
            slab: &KvSlab<'_>,
            (start, ranges): (usize, &[(usize, usize)]),
            weights: &mut [[f32; SEGMENT]; $tile],
        ) {
            let seen = || ranges.iter().filter(|r| r.0 < r.1);
            let Some(low) = seen().map(|r| r.0).min() else {
                return;
            };
            let high = seen().map(|r| r.1).max().unwrap_or(low);
            for tile in low / TILE..high.div_ceil(TILE) {
                let keys = slab.keys_of(tile);
                let mut sums = [f_splat(0.0); $tile];
                for d in 0..queries[0].len() {
                    let key = kv_load::<HALF>(keys, d * TILE);
                    for (sum, query) in sums.iter_mut().zip(queries) {
                        *sum = f_fma(key, f_splat(query[d]), *sum);
                    }
                }
                let at = tile * TILE - start;
                for (weights, &sum) in weights.iter_mut().zip(&sums).take(queries.len()) {
                    f_store(sum, weights[at..].first_chunk_mut().expect("a tile"));
                }
            }
        }

        /// Turns scores `low..high` of a segment into `e^(score - max)`, in place.
        #[target_feature(enable = $features)]
        #[inline]
        fn exponentials(weights: &mut [f32; SEGMENT], low: usize, high: usize) -> Running {
            let max =
                weights[low..high].iter().fold(f32::NEG_INFINITY, |m, &s| crate::math::max(m, s));
            let mut sums = f_splat(0.0);
            for tile in low / TILE..high.div_ceil(TILE) {
                let at = tile * TILE;
                let lanes: &mut [f32; 16] = weights[at..].first_chunk_mut().expect("a tile");
                let e = f_exp(f_sub(f_load(lanes), f_splat(max)));
                f_store(e, lanes);
                // What no query of the range may see adds nothing to the sum.
                lanes[..low.saturating_sub(at).min(16)].fill(0.0);
                lanes[(high - at).min(16)..].fill(0.0);
                sums = f_add(sums, f_load(lanes));
            }
            let mut lanes = [0.0f32; 16];
            f_store(sums, &mut lanes);
            Running { max, sum: crate::scalar::tree_sum(&lanes) }
        }

        /// Weighted values of this segment, merged into `out`.
        #[target_feature(enable = $features)]
        #[inline]
        fn values<const HALF: bool>(
            slab: &KvSlab<'_>,
            (start, ranges): (usize, &[(usize, usize)]),
            (weights, factors, started): (
                &[[f32; SEGMENT]; $tile],
                &[(f32, f32); $tile],
                &[bool; $tile],
            ),
            out: &mut [f32],
        ) {
            let dim = slab.padded_dim;
            // What all queries see is computed together; before and after, each alone.
            let low = ranges.iter().map(|r| r.0).max().unwrap_or(0);
            let high = ranges.iter().map(|r| r.1).min().unwrap_or(0).max(low);
            let value = |position: usize, d: usize| {
                kv_load::<HALF>(slab.values_of(position / TILE), position % TILE * dim + d)
            };
            for d in (0..dim).step_by(16) {
                let mut sums = [f_splat(0.0); $tile];
                let one = |sum: &mut F, q: usize, from: usize, to: usize| {
                    for position in from..to {
                        let weight = f_splat(weights[q][position - start]);
                        *sum = f_fma(value(position, d), weight, *sum);
                    }
                };
                for (q, &(from, to)) in ranges.iter().enumerate() {
                    one(&mut sums[q], q, from, to.min(low));
                }
                for position in low..high {
                    let v = value(position, d);
                    for (q, sum) in sums.iter_mut().enumerate().take(ranges.len()) {
                        *sum = f_fma(v, f_splat(weights[q][position - start]), *sum);
                    }
                }
                for (q, &(from, to)) in ranges.iter().enumerate() {
                    one(&mut sums[q], q, from.max(high), to);
                }
                for (q, &(from, to)) in ranges.iter().enumerate() {
                    if from == to {
                        continue;
                    }
                    let lanes: &mut [f32; 16] =
                        out[q * dim + d..].first_chunk_mut().expect("sixteen dimensions");
                    let merged = if started[q] {
                        let (keep, add) = factors[q];
                        let added = f_mul(sums[q], f_splat(add));
                        f_fma(f_load(lanes), f_splat(keep), added)
                    } else {
                        sums[q]
                    };
                    f_store(merged, lanes);
                }
            }
        }
    };
}
pub(crate) use lane_attention;
