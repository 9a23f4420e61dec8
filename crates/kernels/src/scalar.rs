//! The definition: plain loops, one number at a time, in the stated order.
//!
//! Every SIMD path must give these bits. Nothing here is ever edited for speed.

use std::ops::Range;

use crate::activations::{AMAX_MIN, ActivationBlock, ActivationTile, Finite};
use crate::attention::{HeadQueries, KV_BLOCK, KvSlab, KvType, STATE, Seen, TILE, range_in};
use crate::format::Layout;
use crate::sink::Sink;
use crate::{Format, LANES, PackedMatrix, RawBlock, math};

/// Bits of an absolute value from which a float is infinite or not a number.
pub(crate) const INFINITY_BITS: u32 = 0x7f80_0000;

/// `a * b + c`, rounded once.
pub(crate) fn fma(a: f32, b: f32, c: f32) -> f32 {
    a.mul_add(b, c)
}

#[expect(clippy::cast_precision_loss, reason = "rounding to nearest even is what is meant")]
fn to_f32(x: i32) -> f32 {
    x as f32
}

fn half(bits: u16) -> f32 {
    half::f16::from_bits(bits).to_f32()
}

/// Quantises one block, unless a value is not finite. See `ActivationBlock`.
pub(crate) fn quantise_block(x: &[f32; 32], to: &mut ActivationBlock) -> Finite {
    let largest = x.iter().map(|v| v.abs().to_bits()).max().unwrap_or(0);
    if largest >= INFINITY_BITS {
        return Finite(false);
    }
    let amax = f32::from_bits(largest);
    *to = ActivationBlock::default();
    if amax < AMAX_MIN {
        return Finite(true);
    }
    let inverse = 127.0 / amax;
    for (code, v) in to.codes.iter_mut().flatten().zip(x) {
        #[expect(clippy::cast_possible_truncation, reason = "at most 127 in size")]
        let rounded = (v * inverse).round_ties_even() as i8;
        *code = rounded;
    }
    let sum = |words: &[[i8; 4]]| words.iter().flatten().map(|&c| i32::from(c)).sum();
    to.finish(amax / 127.0, [sum(&to.codes[..4]), sum(&to.codes[4..])]);
    Finite(true)
}

/// Adds one block to one output: `sum + weights . activations` in the order of `numerics.md`.
fn add_block<L: Layout>(raw: &RawBlock, x: &ActivationBlock, sum: f32) -> f32 {
    let (d_x, sums) = (x.scale, x.halves.map(i32::from));
    let dot_of = |from: usize, to: usize| -> i32 {
        let pair = |i: usize| i32::from(raw.codes[i]) * i32::from(x.codes[i / 4][i % 4]);
        (from..to).map(pair).sum()
    };
    let (d, m) = (half(raw.d), half(raw.m));
    let (scales, minima) = (raw.scales.map(i32::from), raw.minima.map(i32::from));
    if L::SUBS == 2 {
        let first = (dot_of(0, 16) - L::OFFSET * sums[0]) * scales[0];
        let second = (dot_of(16, 32) - L::OFFSET * sums[1]) * scales[1];
        let sum = fma(d * d_x, to_f32(first + second), sum);
        if !L::MINIMUM {
            return sum;
        }
        let offset = minima[0] * sums[0] + minima[1] * sums[1];
        return fma(-m * d_x, to_f32(offset), sum);
    }
    let dot = dot_of(0, 32) - L::OFFSET * x.sum;
    let d = if L::K { d * to_f32(scales[0]) } else { d };
    let sum = fma(d * d_x, to_f32(dot), sum);
    if !L::MINIMUM {
        return sum;
    }
    let m = if L::K { -m * to_f32(minima[0]) } else { m };
    fma(m, x.scaled_sum, sum)
}

/// Some groups of sixteen output rows against one tile of activations.
pub(crate) fn tile_product<L: Layout>(
    weights: &PackedMatrix,
    groups: Range<usize>,
    x: ActivationTile<'_>,
    out: &mut Sink<'_, '_>,
) {
    for group in groups {
        let mut lanes = vec![[0.0f32; LANES]; x.rows];
        let first = group * LANES;
        for row in first..weights.rows().min(first + LANES) {
            for (block, x) in x.blocks.chunks_exact(x.places).enumerate() {
                let raw = weights.block(row, block);
                for (x, lanes) in x.iter().zip(&mut lanes) {
                    lanes[row - first] = add_block::<L>(&raw, x, lanes[row - first]);
                }
            }
        }
        for (row, lanes) in (x.first..).zip(&lanes) {
            out.put(group, row, lanes);
        }
    }
}

/// One group of float weights against all rows of `x`: one chain over ascending inputs.
pub(crate) fn group_float(weights: &PackedMatrix, group: usize, x: &[f32], out: &mut Sink<'_, '_>) {
    let number = |bits: u32| match weights.format() {
        Format::F32 => f32::from_bits(bits),
        Format::F16 => half(bits.to_le_bytes()[..2].try_into().map_or(0, u16::from_le_bytes)),
        _ => f32::from_bits(bits << 16),
    };
    let first = group * LANES;
    for (t, x) in x.chunks_exact(weights.columns()).enumerate() {
        let mut lanes = [0.0f32; LANES];
        for row in first..weights.rows().min(first + LANES) {
            for (column, &x) in x.iter().enumerate() {
                let w = number(weights.float_bits(row, column));
                lanes[row - first] = fma(w, x, lanes[row - first]);
            }
        }
        out.put(group, t, &lanes);
    }
}

/// As on the other paths: `rounds` times twelve dot products of sixty-four bytes.
pub(crate) fn dot_rounds(rounds: usize) -> u8 {
    let mut sum = 0i32;
    for round in 0..rounds * 12 * 16 {
        let x = std::hint::black_box(1);
        let code = i32::from(round.to_le_bytes()[0]);
        sum = sum.wrapping_add(code * x + (code + 1) * x + (code + 2) * x + (code + 3) * x);
    }
    sum.to_le_bytes()[0]
}

/// Reads every byte once and returns something that depends on all of them.
pub(crate) fn read_through(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |a, b| a | b)
}

/// Folds sixteen lanes into one by a fixed tree: lane l with l + 8, then 4, 2, 1.
fn tree(mut lanes: [f32; LANES], fold: impl Fn(f32, f32) -> f32) -> f32 {
    for width in [8, 4, 2, 1] {
        for l in 0..width {
            lanes[l] = fold(lanes[l], lanes[l + width]);
        }
    }
    lanes[0]
}

/// `1 / sqrt(mean of squares + eps)`, given the sum of squares.
pub(crate) fn norm_scale(sum: f32, count: usize, eps: f32) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "row lengths are far below 2^24")]
    let mean = sum / count as f32;
    1.0 / (mean + eps).sqrt()
}

/// RMS norm (Zhang & Sennrich 2019) in place: `x * scale * weight`, left to right.
pub(crate) fn rms_norm(x: &mut [f32], weight: &[f32], eps: f32) {
    let scale = rms_scale(x, eps);
    for (x, w) in x.iter_mut().zip(weight) {
        *x = *x * scale * w;
    }
}

/// What `rms_norm` multiplies a row by before its weights.
pub(crate) fn rms_scale(x: &[f32], eps: f32) -> f32 {
    let mut lanes = [0.0f32; LANES];
    for (i, &v) in x.iter().enumerate() {
        lanes[i % LANES] = fma(v, v, lanes[i % LANES]);
    }
    norm_scale(tree(lanes, |a, b| a + b), x.len(), eps)
}

/// Quantises one block of a row that goes through a norm first.
pub(crate) fn quantise_normed(
    x: &[f32; 32],
    (weight, scale): (&[f32; 32], f32),
    to: &mut ActivationBlock,
) -> Finite {
    quantise_block(&std::array::from_fn(|i| x[i] * scale * weight[i]), to)
}

/// `x += y`.
pub(crate) fn add(x: &mut [f32], y: &[f32]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
}

/// SwiGLU (Shazeer 2020): `gate = silu(gate) * up`.
pub(crate) fn silu_mul(gate: &mut [f32], up: &[f32]) {
    for (g, u) in gate.iter_mut().zip(up) {
        *g = math::silu(*g) * u;
    }
}

/// GeGLU (Shazeer 2020): `gate = gelu(gate) * up`.
pub(crate) fn gelu_mul(gate: &mut [f32], up: &[f32]) {
    for (g, u) in gate.iter_mut().zip(up) {
        *g = math::gelu(*g) * u;
    }
}

/// The clamped `SwiGLU` of gpt-oss in `gate`.
pub(crate) fn clamped_swiglu(gate: &mut [f32], up: &[f32]) {
    for (g, u) in gate.iter_mut().zip(up) {
        *g = math::clamped_swiglu(*g, *u);
    }
}

/// Caps every number of `x`.
pub(crate) fn soft_cap(x: &mut [f32], cap: f32) {
    x.iter_mut().for_each(|x| *x = math::soft_cap(*x, cap));
}

/// Rounds at most 32 head dimensions of one position to q8_0; gives the f16 bits of the scale.
#[cfg(test)]
pub(crate) fn quantise_kv(x: &[f32], codes: &mut [i8]) -> u16 {
    let amax = f32::from_bits(x.iter().map(|v| v.abs().to_bits()).max().unwrap_or(0));
    let scale = half::f16::from_f32(amax / 127.0);
    if !scale.is_finite() {
        codes.fill(0);
        return half::f16::NAN.to_bits();
    }
    for (code, v) in codes.iter_mut().zip(x) {
        let steps = if scale.to_f32() == 0.0 { 0.0 } else { v / scale.to_f32() };
        #[expect(clippy::cast_possible_truncation, reason = "at most 127 in size")]
        let rounded = steps.round_ties_even().clamp(-127.0, 127.0) as i8;
        *code = rounded;
    }
    scale.to_bits()
}

/// One dimension of one position, a key's or a value's, as `at` counts them in the tile.
fn kv_number(slab: &KvSlab<'_>, tile: &[u8], at: usize, (d, lane): (usize, usize)) -> f32 {
    let bits_of = |bytes: &[u8]| bytes.iter().rev().fold(0, |bits, &b| bits << 8 | u32::from(b));
    let half_of = |bits| half(u16::try_from(bits).expect("invariant: two bytes fit"));
    let size = slab.kind.bytes();
    let number = &tile[at * size..][..size];
    match slab.kind {
        KvType::F32 => f32::from_bits(bits_of(number)),
        KvType::F16 => half_of(bits_of(number)),
        KvType::Q8_0 => {
            let scales = &tile[slab.padded_dim * TILE..];
            let scale = &scales[(d / KV_BLOCK * TILE + lane) * 2..][..2];
            f32::from(i8::from_le_bytes([number[0]])) * half_of(bits_of(scale))
        }
    }
}

/// Attention of queries over what each may see, segment by segment.
pub(crate) fn attend(queries: HeadQueries<'_>, slab: &KvSlab<'_>, out: &mut [f32]) {
    queries.check(slab, out.len());
    for (q, out) in out.chunks_exact_mut(slab.padded_dim).enumerate() {
        attend_one(queries.part(q..q + 1), slab, out);
    }
}

fn attend_one(query: HeadQueries<'_>, slab: &KvSlab<'_>, out: &mut [f32]) {
    let mut state = None;
    for segment in query.segments() {
        let mut values = vec![0.0; out.len()];
        let part = attend_segment(query, segment, slab, &mut values);
        state = Some(merge(state, part, out, &values));
    }
    let state = state.expect("invariant: a query sees a position");
    finish(state, query.sinks.first(), out);
}

/// Takes the sink into the softmax, where there is one, and divides by its sum.
fn finish((max, sum): (f32, f32), sink: Option<&f32>, out: &mut [f32]) {
    let mut sum = sum;
    if let Some(&sink) = sink {
        let new_max = math::max(max, sink);
        let keep = math::exp(max - new_max);
        sum = fma(sum, keep, math::exp(sink - new_max));
        out.iter_mut().for_each(|out| *out *= keep);
    }
    out.iter_mut().for_each(|out| *out /= sum);
}

/// One segment of one query by itself: its largest score and the sum of its exponentials; values
/// in `out`.
fn attend_segment(
    one: HeadQueries<'_>,
    segment: usize,
    slab: &KvSlab<'_>,
    out: &mut [f32],
) -> (f32, f32) {
    let (query, (low, high)) = (one.queries[0], range_in(segment, one.visible[0]));
    let score = |position: usize| {
        let keys = slab.keys_of(position / TILE);
        let lane = position % TILE;
        let key = |d: usize| kv_number(slab, keys, d * TILE + lane, (d, lane));
        (0..query.len()).fold(0.0, |sum, d| fma(key(d), query[d], sum))
    };
    let mut scores: Vec<f32> = (low..high).map(score).collect();
    if one.soft_cap > 0.0 {
        soft_cap(&mut scores, one.soft_cap);
    }
    // Whole tiles, as the lanes have them: even what is not a number gives the same everywhere.
    let mut lanes = [f32::NEG_INFINITY; LANES];
    for position in low / TILE * TILE..high.next_multiple_of(TILE) {
        let seen = position.checked_sub(low).and_then(|index| scores.get(index));
        let lane = &mut lanes[position % LANES];
        *lane = math::max(*lane, seen.copied().unwrap_or(f32::NEG_INFINITY));
    }
    let max = tree(lanes, math::max);
    let weights: Vec<f32> = scores.iter().map(|s| math::exp(s - max)).collect();
    let mut lanes = [0.0f32; LANES];
    for (position, weight) in (low..high).zip(&weights) {
        lanes[position % LANES] += weight;
    }
    for (d, out) in out.iter_mut().enumerate() {
        *out = (low..high).zip(&weights).fold(0.0, |sum, (position, &weight)| {
            let values = slab.values_of(position / TILE);
            let lane = position % TILE;
            let at = lane * slab.padded_dim + d;
            fma(kv_number(slab, values, at, (d, lane)), weight, sum)
        });
    }
    (max, tree(lanes, |a, b| a + b))
}

/// Adds a segment's softmax to that of the segments before it.
fn merge(
    before: Option<(f32, f32)>,
    (part_max, part_sum): (f32, f32),
    out: &mut [f32],
    part: &[f32],
) -> (f32, f32) {
    let Some((max, sum)) = before else {
        out.copy_from_slice(part);
        return (part_max, part_sum);
    };
    let new_max = math::max(max, part_max);
    let (keep, add) = (math::exp(max - new_max), math::exp(part_max - new_max));
    out.iter_mut().zip(part).for_each(|(out, part)| *out = fma(*out, keep, part * add));
    (new_max, fma(sum, keep, part_sum * add))
}

/// Some segments, each by itself; see `Kernels::attend_segments`.
pub(crate) fn attend_segments(
    queries: HeadQueries<'_>,
    slab: &KvSlab<'_>,
    segments: Range<usize>,
    out: &mut [f32],
) {
    let row_len = slab.padded_dim + STATE;
    for (segment, out) in segments.zip(out.chunks_exact_mut(queries.queries.len() * row_len)) {
        for (q, out) in out.chunks_exact_mut(row_len).enumerate() {
            let range = range_in(segment, queries.visible[q]);
            if range.0 < range.1 {
                let (values, state) = out.split_at_mut(slab.padded_dim);
                let query = queries.part(q..q + 1);
                (state[0], state[1]) = attend_segment(query, segment, slab, values);
            }
        }
    }
}

/// Merges segments that were taken one by one; see `Kernels::merge_segments`.
pub(crate) fn merge_segments((visible, sinks, first): Seen<'_>, parts: &[f32], out: &mut [f32]) {
    let dim = out.len() / visible.len();
    let row_len = dim + STATE;
    for (q, (&seen, out)) in visible.iter().zip(out.chunks_exact_mut(dim)).enumerate() {
        let mut state = None;
        for (index, parts) in parts.chunks_exact(visible.len() * row_len).enumerate() {
            let (low, high) = range_in(first + index, seen);
            if low < high {
                let (part, numbers) = parts[q * row_len..][..row_len].split_at(dim);
                state = Some(merge(state, (numbers[0], numbers[1]), out, part));
            }
        }
        let state = state.expect("invariant: a query sees a position");
        finish(state, sinks.get(q), out);
    }
}
