//! Every path gives the bits of the scalar definition, for every type and every edge.

use crate::activations::{ActivationBlock, Finite};
use crate::attention::{HeadQueries, KV_BLOCK, KvSlab, KvType, quantise_kv};
use crate::scalar;
use crate::{
    Activation, BLOCK, Format, Isa, Kernels, PackedMatrix, Pool, QuantisedRows, RawBlock, RowSource,
};

/// A small reproducible source of numbers (SplitMix64, Steele et al. 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    /// Uniform in -1 to 1, times a power of two drawn from a wide range.
    fn float(&mut self) -> f32 {
        let unit = (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
        let exponent = (self.next() % 12) as i32 - 6;
        unit * 2.0f32.powi(exponent)
    }
}

/// Rows of random blocks; scales include zero, subnormal and negative halves.
struct RandomRows {
    format: Format,
    seed: u64,
}

impl RowSource for RandomRows {
    fn blocks(&self, row: usize, blocks: &mut [RawBlock]) {
        let mut random = Random(self.seed ^ (row as u64) << 20);
        let mask = u8::MAX >> (8 - self.format.bits());
        let per_d = self.format.row_multiple() / BLOCK;
        let mut shared = RawBlock::default();
        for (index, block) in blocks.iter_mut().enumerate() {
            if index % per_d == 0 {
                shared.d = half(&mut random);
                shared.m = half(&mut random);
            }
            *block = shared;
            block.codes = std::array::from_fn(|_| random.byte() & mask);
            let (scales, minima) = sub_blocks(self.format, &mut random);
            (block.scales, block.minima) = (scales, minima);
            let has_minimum = matches!(
                self.format,
                Format::Q4_1 | Format::Q5_1 | Format::Q2K | Format::Q4K | Format::Q5K
            );
            block.m = if has_minimum { block.m } else { 0 };
        }
    }

    fn floats(&self, row: usize, bits: &mut [u32]) {
        let mut random = Random(self.seed ^ (row as u64) << 20);
        for bits in bits {
            let value = random.float();
            *bits = match self.format {
                Format::F32 => value.to_bits(),
                Format::F16 => u32::from(half::f16::from_f32(value).to_bits()),
                _ => value.to_bits() >> 16,
            };
        }
    }
}

fn half(random: &mut Random) -> u16 {
    match random.next() % 16 {
        0 => 0,
        1 => 0x0001,
        2 => 0x83ff,
        _ => half::f16::from_f32(random.float() / 64.0).to_bits(),
    }
}

fn sub_blocks(format: Format, random: &mut Random) -> ([i8; 2], [u8; 2]) {
    let six = (random.byte() & 63) as i8;
    match format {
        Format::Q4K | Format::Q5K => {
            let m = random.byte() & 63;
            ([six, six], [m, m])
        }
        Format::Q6K => ([random.byte() as i8, random.byte() as i8], [0, 0]),
        Format::Iq4Xs => ([six - 32, six - 32], [0, 0]),
        Format::Q3K => ([six - 32, (random.byte() & 63) as i8 - 32], [0, 0]),
        Format::Q2K => {
            let scales = [random.byte() & 15, random.byte() & 15].map(|s| s as i8);
            (scales, [random.byte() & 15, random.byte() & 15])
        }
        _ => ([0, 0], [0, 0]),
    }
}

fn paths() -> Vec<Kernels> {
    Isa::ALL.into_iter().filter_map(|isa| Kernels::with_isa(isa).ok()).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

fn product(kernels: &Kernels, weights: &PackedMatrix, x: &[f32], pool: &Pool) -> Vec<u32> {
    let mut out = vec![0.0; x.len() / weights.columns() * weights.rows()];
    if weights.format().is_quantised() {
        let mut rows = QuantisedRows::default();
        kernels.quantise(x, weights.columns(), &mut rows, pool).unwrap();
        kernels.matmul(&mut [(weights, &mut out)], &rows, pool);
    } else {
        kernels.matmul_float(&mut [(weights, &mut out)], x, pool);
    }
    bits(&out)
}

#[test]
fn a_packed_block_is_the_block_that_went_in() {
    let pool = Pool::new(2);
    for format in Format::ALL.into_iter().filter(|f| f.is_quantised()) {
        let (rows, columns) = (19, 512);
        let source = RandomRows { format, seed: 7 };
        let packed = PackedMatrix::pack(format, (rows, columns), &source, &pool).unwrap();
        for row in 0..rows {
            let mut want = vec![RawBlock::default(); columns / BLOCK];
            source.blocks(row, &mut want);
            for (index, want) in want.iter().enumerate() {
                assert_eq!(packed.block(row, index), *want, "{format:?} row {row} block {index}");
            }
        }
    }
}

#[test]
fn every_path_gives_the_bits_of_the_definition() {
    let scalar = Kernels::with_isa(Isa::Scalar).unwrap();
    let pools = [Pool::new(1), Pool::new(2), Pool::new(3)];
    for format in Format::ALL {
        let unit = format.row_multiple();
        for (rows, columns, inputs) in [
            (1, unit, 1),
            (16, 2 * unit, 2),
            (33, 3 * unit, 5),
            (40, 256, 8),
            (70, 512, 19),
            (20, 256, 47),
            (17, 256, 7),
            (17, 256, 13),
        ] {
            let columns = columns.next_multiple_of(unit);
            let source = RandomRows { format, seed: rows as u64 };
            let packed = PackedMatrix::pack(format, (rows, columns), &source, &pools[0]).unwrap();
            let mut random = Random(99);
            let x: Vec<f32> = (0..inputs * columns).map(|_| random.float()).collect();
            let want = product(&scalar, &packed, &x, &pools[0]);
            for path in paths() {
                for pool in &pools {
                    let got = product(&path, &packed, &x, pool);
                    assert_eq!(got, want, "{format:?} {rows}x{columns}, {inputs}, {path:?}");
                }
            }
        }
    }
}

#[test]
fn a_row_does_not_depend_on_the_rows_beside_it() {
    let (rows, columns) = (48, 256);
    let pool = Pool::new(2);
    for format in Format::ALL {
        let source = RandomRows { format, seed: 3 };
        let packed = PackedMatrix::pack(format, (rows, columns), &source, &pool).unwrap();
        let mut random = Random(5);
        let x: Vec<f32> = (0..11 * columns).map(|_| random.float()).collect();
        for path in paths() {
            let all = product(&path, &packed, &x, &pool);
            for (row, x) in x.chunks_exact(columns).enumerate() {
                let alone = product(&path, &packed, x, &pool);
                assert_eq!(alone, all[row * rows..(row + 1) * rows], "{format:?} row {row}");
            }
        }
    }
}

#[test]
fn places_to_spare_in_the_last_tile_are_nobodys() {
    let (outputs, columns) = (32, 64);
    let pool = Pool::new(2);
    let source = RandomRows { format: Format::Q4_0, seed: 8 };
    let packed = PackedMatrix::pack(Format::Q4_0, (outputs, columns), &source, &pool).unwrap();
    let mut random = Random(21);
    let x: Vec<f32> = (0..48 * columns).map(|_| random.float()).collect();
    for path in paths() {
        // One buffer for all: places keep what lay there before.
        let mut used = QuantisedRows::default();
        for rows in (1..=48).rev() {
            let x = &x[..rows * columns];
            path.quantise(x, columns, &mut used, &pool).unwrap();
            let mut got = vec![f32::NAN; rows * outputs];
            path.matmul(&mut [(&packed, &mut got)], &used, &pool);
            let bits: Vec<u32> = got.iter().map(|v| v.to_bits()).collect();
            assert_eq!(bits, product(&path, &packed, x, &pool), "{path:?} {rows}");
            assert!(used.each_tile().all(|tile| tile.rows <= tile.places && tile.rows > 0));
            assert_eq!(used.each_tile().map(|tile| tile.rows).sum::<usize>(), rows);
        }
    }
}

#[test]
fn extreme_activations_quantise_alike_on_every_path() {
    let ones = |v: f32| [v; 32];
    let mut mixed = [0.0f32; 32];
    for (i, v) in mixed.iter_mut().enumerate() {
        *v = [f32::MAX, -f32::MAX, 1.0, -0.5, 1e-30, -0.0, 0.0, 3.5][i % 8];
    }
    let mut ties = [0.5f32; 32];
    ties[0] = 127.0;
    ties[1] = -1.5;
    ties[2] = 2.5;
    let cases = [ones(0.0), ones(1e-45), ones(1e-38), ones(f32::MAX), mixed, ties, ones(-7.25)];
    let scalar = Kernels::with_isa(Isa::Scalar).unwrap();
    for x in cases {
        let mut want = ActivationBlock::default();
        assert_eq!((scalar.quantise_block)(&x, &mut want), Finite(true));
        for path in paths() {
            let mut got = ActivationBlock { halves: [1, 1], ..ActivationBlock::default() };
            assert_eq!((path.quantise_block)(&x, &mut got), Finite(true));
            assert_eq!(got, want, "{path:?} {x:?}");
        }
    }
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut x = [1.0f32; 64];
        x[41] = bad;
        for path in paths() {
            let mut rows = QuantisedRows::default();
            let error = path.quantise(&x, 32, &mut rows, &Pool::new(2)).unwrap_err();
            assert_eq!((error.row, error.column), (1, 9), "{path:?}");
        }
    }
}

#[test]
fn elementwise_functions_are_the_same_on_every_path() {
    let mut random = Random(1);
    let mut x: Vec<f32> = (0..1000).map(|_| random.float() * 4.0).collect();
    x.extend([0.0, -0.0, 1e-45, -1e-40, 88.0, 89.5, -88.0, -103.9, -104.5, 1e30, -1e30, 700.0]);
    let y: Vec<f32> = x.iter().rev().copied().collect();
    let scalar = Kernels::with_isa(Isa::Scalar).unwrap();
    for len in [1, 15, 16, 17, 100, x.len()] {
        for path in paths() {
            let apply = |kernels: &Kernels| {
                let gated = |activation| {
                    let mut gate = x[..len].to_vec();
                    kernels.activate(activation, &mut gate, &y[..len]);
                    gate
                };
                let [silu, gelu] = [Activation::Silu, Activation::Gelu].map(gated);
                let clamped = gated(Activation::ClampedSwiglu);
                let mut capped = x[..len].to_vec();
                kernels.soft_cap(&mut capped, 30.0);
                let mut norm = x[..len].iter().map(|v| v.clamp(-9e9, 9e9)).collect::<Vec<_>>();
                kernels.rms_norm(&mut norm, &y[..len], 1e-5);
                [silu, gelu, clamped, capped, norm].map(|v| bits(&v))
            };
            assert_eq!(apply(&path), apply(&scalar), "{path:?} {len}");
        }
    }
}

#[test]
fn exp_is_within_two_ulp_of_the_true_value() {
    let mut worst = 0.0f64;
    for i in -87_000..88_000 {
        let x = i as f32 / 1000.0;
        let want = f64::from(x).exp();
        let error = (f64::from(crate::exp(x)) - want).abs() / want;
        worst = worst.max(error);
    }
    assert!(worst < 2.0 * f64::from(f32::EPSILON) / 2.0, "relative error {worst:e}");
    for (x, want) in [(0.0, 1.0f32), (f32::NEG_INFINITY, 0.0), (1000.0, f32::INFINITY)] {
        assert_eq!(crate::exp(x).to_bits(), want.to_bits(), "{x}");
    }
}

/// Keys and values of `positions` for one head, tiles in a shuffled order.
struct Cache {
    kind: KvType,
    keys: Vec<u8>,
    values: Vec<u8>,
    table: Vec<u32>,
    padded_dim: usize,
}

/// What some positions' numbers are multiplied with: as they are, or out to the KV type's ends.
fn reach(kind: KvType, position: usize) -> f32 {
    match (kind, position % 11) {
        (KvType::F16 | KvType::Q8_0, 3) => 1e-5,
        (KvType::F16 | KvType::Q8_0, 5) => 1e-9,
        (KvType::F32, 5) => 1e-39,
        (KvType::Q8_0, 7) => 1e5,
        (_, 9) => 0.0,
        _ => 1.0,
    }
}

fn cache(kind: KvType, positions: usize, dim: usize, seed: u64) -> Cache {
    let padded_dim = dim.next_multiple_of(16);
    let tiles = positions.div_ceil(16);
    let mut random = Random(seed);
    let mut table: Vec<u32> = (0..u32::try_from(tiles).unwrap()).collect();
    for i in (1..tiles).rev() {
        let j = usize::try_from(random.next() % (i as u64 + 1)).unwrap();
        table.swap(i, j);
    }
    let tile_bytes = kind.tile_bytes(padded_dim);
    let (mut keys, mut values) = (vec![0; tiles * tile_bytes], vec![0; tiles * tile_bytes]);
    for position in 0..positions {
        let mut random = Random(seed ^ (position as u64 * 77));
        let mut row = |size: f32| -> Vec<f32> { (0..dim).map(|_| random.float() * size).collect() };
        let size = reach(kind, position);
        let (key, value) = (row(size.min(1.0) / 8.0), row(size));
        let (base, lane) = (table[position / 16] as usize * tile_bytes, position % 16);
        let (key_tile, value_tile) = (&mut keys[base..], &mut values[base..]);
        put(kind, &mut key_tile[..tile_bytes], (padded_dim, lane), &key, |d| d * 16 + lane);
        let row_of = |d| lane * padded_dim + d;
        put(kind, &mut value_tile[..tile_bytes], (padded_dim, lane), &value, row_of);
    }
    Cache { kind, keys, values, table, padded_dim }
}

/// Writes one position of one tile, dimension `d` to `place(d)`.
fn put(
    kind: KvType,
    tile: &mut [u8],
    (padded_dim, lane): (usize, usize),
    row: &[f32],
    place: impl Fn(usize) -> usize,
) {
    for (block, x) in row.chunks(KV_BLOCK).enumerate() {
        let mut codes = vec![0; x.len()];
        let scale = scalar::quantise_kv(x, &mut codes);
        if kind == KvType::Q8_0 {
            let at = padded_dim * 16 + (block * 16 + lane) * 2;
            tile[at..at + 2].copy_from_slice(&scale.to_le_bytes());
        }
        for (i, (&value, &code)) in x.iter().zip(&codes).enumerate() {
            let at = place(block * KV_BLOCK + i);
            match kind {
                KvType::F32 => tile[at * 4..][..4].copy_from_slice(&value.to_le_bytes()),
                KvType::F16 => {
                    let half = half::f16::from_f32(value).to_le_bytes();
                    tile[at * 2..][..2].copy_from_slice(&half);
                }
                KvType::Q8_0 => tile[at] = code.to_le_bytes()[0],
            }
        }
    }
}

impl Cache {
    fn slab(&self) -> KvSlab<'_> {
        KvSlab {
            kind: self.kind,
            keys: &self.keys,
            values: &self.values,
            table: &self.table,
            first_tile: 0,
            padded_dim: self.padded_dim,
        }
    }
}

/// The attention computed segment by segment, then merged.
fn in_parts(kernels: &Kernels, queries: HeadQueries<'_>, slab: &KvSlab<'_>) -> Vec<u32> {
    let (visible, sinks) = (queries.visible, queries.sinks);
    let segments = queries.segments();
    let part = visible.len() * (slab.padded_dim + crate::STATE);
    let mut parts = vec![f32::NAN; segments.len() * part];
    for (segment, out) in segments.clone().zip(parts.chunks_exact_mut(part)) {
        kernels.attend_segments(queries, slab, segment..segment + 1, out);
    }
    let mut out = vec![0.0; visible.len() * slab.padded_dim];
    kernels.merge_segments((visible, sinks), segments.start, &parts, &mut out);
    bits(&out)
}

#[test]
fn attention_is_the_same_on_every_path_and_in_every_tiling() {
    for kind in KvType::ALL {
        for (dim, positions) in [(16, 5), (64, 300), (24, 140), (96, 129), (80, 260), (256, 33)] {
            let cache = cache(kind, positions, dim, dim as u64);
            let slab = cache.slab();
            let mut random = Random(8);
            let count = 13;
            let queries: Vec<Vec<f32>> =
                (0..count).map(|_| (0..dim).map(|_| random.float()).collect()).collect();
            let queries: Vec<&[f32]> = queries.iter().map(Vec::as_slice).collect();
            let visible: Vec<(usize, usize)> = (0..count)
                .map(|q| {
                    let end = 1 + (q * 29 + 3) % positions;
                    (if q % 3 == 0 { end.saturating_sub(20) } else { 0 }, end)
                })
                .collect();
            let sinks: Vec<f32> = (0..count).map(|_| random.float()).collect();
            for (soft_cap, sinks) in [(0.0, &[][..]), (4.0, &[]), (0.0, &sinks), (50.0, &sinks)] {
                let all = HeadQueries { queries: &queries, visible: &visible, soft_cap, sinks };
                check_attention(all, &slab);
            }
        }
    }
}

/// Compares every path with the definition, of all queries together, one by one, and in parts.
fn check_attention(all: HeadQueries<'_>, slab: &KvSlab<'_>) {
    let (count, dim) = (all.queries.len(), slab.padded_dim);
    let attend = |kernels: &Kernels, from: usize, to: usize| {
        let mut out = vec![0.0; (to - from) * dim];
        kernels.attend(all.part(from..to), slab, &mut out);
        bits(&out)
    };
    let want = attend(&Kernels::with_isa(Isa::Scalar).unwrap(), 0, count);
    let (kind, soft_cap) = (slab.kind, all.soft_cap);
    for path in paths() {
        let way = format!("{kind:?} {dim} cap {soft_cap} {path:?}");
        assert_eq!(attend(&path, 0, count), want, "{way}");
        assert_eq!(in_parts(&path, all, slab), want, "{way}");
        for q in 0..count {
            let alone = attend(&path, q, q + 1);
            assert_eq!(alone, want[q * dim..(q + 1) * dim], "{way} query {q}");
        }
    }
}

#[test]
fn a_soft_cap_is_the_hyperbolic_tangent_and_keeps_what_is_no_number() {
    for cap in [4.0f32, 30.0, 50.0] {
        for i in -4_000..4_000 {
            let x = i as f32 / 10.0;
            let want = f64::from(cap) * (f64::from(x) / f64::from(cap)).tanh();
            let error = (f64::from(crate::math::soft_cap(x, cap)) - want).abs();
            assert!(error < 4e-7 * f64::from(cap), "{x} under {cap}: {error:e}");
        }
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(crate::math::soft_cap(bad, cap).is_nan(), "{bad}");
        }
    }
}

#[test]
fn a_clamped_gate_has_the_stated_bounds() {
    let want = |g: f64, u: f64| {
        let (g, u) = (g.min(7.0), u.clamp(-7.0, 7.0));
        (u + 1.0) * g / (1.0 + (-1.702 * g).exp())
    };
    for (g, u) in [(0.5, 0.25), (-3.0, 2.0), (9.0, 9.0), (-20.0, -9.0), (7.0, -7.0)] {
        let got = f64::from(crate::math::clamped_swiglu(g, u));
        assert!((got - want(g.into(), u.into())).abs() < 1e-5, "{g} {u}: {got}");
    }
    assert!(crate::math::clamped_swiglu(f32::NAN, 1.0).is_nan());
    assert!(crate::math::clamped_swiglu(1.0, f32::NAN).is_nan());
}

#[test]
fn a_sink_takes_its_share_of_the_softmax() {
    let cache = cache(KvType::F32, 40, 16, 3);
    let mut random = Random(2);
    let query: Vec<f32> = (0..16).map(|_| random.float()).collect();
    let attend = |sinks: &[f32]| {
        let mut out = vec![0.0; 16];
        let (queries, visible) = (&[query.as_slice()][..], &[(0, 40)][..]);
        let queries = HeadQueries { queries, visible, soft_cap: 0.0, sinks };
        Kernels::best().attend(queries, &cache.slab(), &mut out);
        out
    };
    let (without, unheard, all) = (attend(&[]), attend(&[-1e4]), attend(&[1e4]));
    assert_eq!(bits(&without), bits(&unheard));
    assert_eq!(all, [0.0; 16]);
}

#[test]
fn scores_that_are_no_numbers_are_the_same_on_every_path() {
    let scalar = Kernels::with_isa(Isa::Scalar).unwrap();
    let (dim, positions) = (32, 140);
    let query: Vec<f32> = (0..dim).map(|d| (d as f32).sin()).collect();
    for (position, value) in [(3, f32::NAN), (15, f32::INFINITY), (130, f32::NAN), (139, 0.0)] {
        let mut cache = cache(KvType::F32, positions, dim, 5);
        let base = cache.table[position / 16] as usize * KvType::F32.tile_bytes(dim);
        for d in 0..dim {
            let at = base + (d * 16 + position % 16) * 4;
            cache.keys[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        for visible in [(0, positions), (2, 137), (0, 16)] {
            let attend = |kernels: &Kernels| {
                let mut out = vec![0.0; dim];
                let (queries, visible) = (&[query.as_slice()][..], &[visible][..]);
                let queries = HeadQueries { queries, visible, ..HeadQueries::default() };
                kernels.attend(queries, &cache.slab(), &mut out);
                bits(&out)
            };
            for path in paths() {
                assert_eq!(attend(&path), attend(&scalar), "{path:?} {position} {visible:?}");
            }
        }
    }
}

#[test]
fn keys_and_values_are_rounded_as_the_definition_rounds_them() {
    let mut random = Random(4);
    let mut cases: Vec<Vec<f32>> = vec![
        vec![0.0, -0.0],
        vec![127.0, 0.5, 1.5, -2.5, -0.5, -127.0],
        vec![1e-45; 32],
        vec![1e-38, -1e-38],
        vec![8e6, -1.0],
        vec![f32::MAX; 3],
        vec![1.0, f32::INFINITY],
        vec![1.0, f32::NAN, 3.0],
        vec![],
    ];
    // Scales of every size, those that f16 keeps as subnormal numbers and as zero among them.
    for exponent in -40..24 {
        for len in [1, 7, 16, 31, 32] {
            let size = 2.0f32.powi(exponent);
            cases.push((0..len).map(|_| random.float() * size).collect());
        }
    }
    for x in cases {
        let (mut got, mut want) = (vec![1; x.len()], vec![2; x.len()]);
        let scale = scalar::quantise_kv(&x, &mut want);
        assert_eq!((quantise_kv(&x, &mut got), &got), (scale, &want), "{x:?}");
        let scale = half::f16::from_bits(scale).to_f32();
        let largest = x.iter().fold(0.0f32, |largest, v| largest.max(v.abs()));
        let has_nan = x.iter().any(|v| v.is_nan());
        assert_eq!(scale.is_nan(), has_nan || largest > 127.0 * 65_519.0, "{x:?}");
        // Half a step, where no code was cut off and the scale did not vanish.
        if scale * 127.5 >= largest {
            for (x, code) in x.iter().zip(&got) {
                let error = (f64::from(*code) * f64::from(scale) - f64::from(*x)).abs();
                assert!(error <= f64::from(scale) * 0.500_001, "{x} is {code} times {scale}");
            }
        }
    }
}

#[test]
fn a_tile_begins_on_a_line_and_scales_follow_its_codes() {
    for (dim, want) in [(16, 320), (32, 576), (64, 1088), (80, 1408), (96, 1664), (256, 4352)] {
        assert_eq!(KvType::Q8_0.tile_bytes(dim), want, "{dim}");
        assert_eq!(KvType::F16.tile_bytes(dim), dim * 32);
        assert_eq!(KvType::F32.tile_bytes(dim), dim * 64);
    }
    for kind in KvType::ALL {
        assert_eq!(KvType::from_name(kind.name()), Some(kind));
    }
    assert_eq!(KvType::from_name("q8"), None);
}

#[test]
fn a_path_is_refused_by_name() {
    let error = "sse9".parse::<Isa>().unwrap_err();
    assert!(error.to_string().contains("`sse9`"));
    for isa in Isa::ALL {
        assert_eq!(isa.name().parse::<Isa>().unwrap(), isa);
        assert_eq!(Kernels::with_isa(isa).is_ok(), isa.is_present(), "{isa:?}");
    }
}

#[test]
fn a_panic_in_the_pool_reaches_the_caller_and_the_pool_lives() {
    let pool = Pool::new(3);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        pool.run(100, &|item| assert!(item != 41, "item 41"));
    }));
    assert!(caught.is_err());
    let count = std::sync::atomic::AtomicUsize::new(0);
    for _ in 0..200 {
        pool.run(7, &|_| {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        });
    }
    assert_eq!(count.load(std::sync::atomic::Ordering::Relaxed), 1400);
}

#[test]
fn a_row_length_that_does_not_suit_the_type_is_refused() {
    let source = RandomRows { format: Format::Q4K, seed: 1 };
    let error = PackedMatrix::pack(Format::Q4K, (4, 288), &source, &Pool::new(1)).unwrap_err();
    assert!(error.to_string().contains("288") && error.to_string().contains("256"));
}
