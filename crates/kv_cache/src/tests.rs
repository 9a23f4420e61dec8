//! Blocks are counted right, windows give back what they cannot read, numbers come back.

mod prefixes;

use causeway_kernels::{HeadQueries, Kernels};
use causeway_request::RequestId;

use crate::{Blocks, Cache, CacheError, KvShape, KvType, LayerShape};

fn cache(windows: &[Option<usize>], kind: KvType, positions_max: usize) -> Cache {
    let layer = |&window: &Option<usize>| LayerShape { n_kv_heads: 2, head_dim: 20, window };
    Cache::new(&KvShape {
        layers: windows.iter().map(layer).collect(),
        kind,
        positions_max,
        chunk_max: 32,
        sequences_max: 2,
    })
}

#[test]
fn the_lowest_free_block_comes_first_and_shared_blocks_stay() {
    let mut blocks = Blocks::new(3);
    let (a, b) = (blocks.allocate().unwrap(), blocks.allocate().unwrap());
    blocks.share(a);
    assert!(!blocks.release(a));
    assert_eq!((blocks.held_count(), blocks.free_count()), (2, 1));
    assert!(blocks.release(b));
    assert_eq!((blocks.held_count(), blocks.idle_count(), blocks.free_count()), (1, 1, 1));
    blocks.discard(b);
    assert_eq!(blocks.allocate(), Some(b));
    assert!(blocks.allocate().is_some());
    assert_eq!(blocks.allocate(), None);
    assert!(blocks.release(a));
    assert_eq!(blocks.allocate(), None, "an idle block is not handed out");
    blocks.share(a);
    assert_eq!((blocks.held_count(), blocks.idle_count()), (3, 0));
}

#[test]
fn a_window_keeps_only_what_the_next_query_reads() {
    let mut cache = cache(&[None, Some(20), None, Some(20)], KvType::F32, 1000);
    let request = RequestId(4);
    for end in 1..=600 {
        cache.reserve(request, end).unwrap();
        cache.retire(request, end);
        let held: Vec<usize> = cache.held_counts().collect();
        assert_eq!(held[0], end.div_ceil(16));
        assert!(held[1] <= 3, "window 20 needs at most 3 blocks of 16, holds {}", held[1]);
        let (_, table) = cache.view(request, 1);
        assert!(table.first_block() * 16 <= (end + 1).saturating_sub(20), "readable is kept");
    }
    cache.remove(request);
    assert!(cache.held_counts().all(|held| held == 0));
}

#[test]
fn a_full_pool_is_refused_with_its_size() {
    let mut cache = cache(&[None], KvType::F16, 32);
    cache.reserve(RequestId(0), 48).unwrap();
    let error = cache.reserve(RequestId(1), 32).unwrap_err();
    assert_eq!(error, CacheError::NoBlocks { blocks_max: 4 });
    cache.remove(RequestId(0));
    cache.remove(RequestId(1));
    cache.reserve(RequestId(1), 32).unwrap();
}

#[test]
fn kv_bytes_count_kv_heads_and_the_head_dimension() {
    // (type, layers, KV heads, head dimension, bytes a position)
    for (kind, n_layers, n_kv_heads, head_dim, want) in [
        (KvType::F16, 32, 8, 128, 131_072),
        (KvType::F16, 32, 32, 128, 524_288),
        (KvType::F16, 36, 8, 128, 147_456),
        (KvType::F32, 32, 8, 128, 262_144),
        (KvType::Q8_0, 32, 8, 128, 69_632),
        (KvType::Q8_0, 30, 3, 64, 12_240),
    ] {
        let layer = LayerShape { n_kv_heads, head_dim, window: None };
        let cache = Cache::new(&KvShape {
            layers: vec![layer; n_layers],
            kind,
            positions_max: 1,
            chunk_max: 1,
            sequences_max: 1,
        });
        assert_eq!(cache.position_bytes(), want);
    }
}

/// A row of two heads whose numbers every KV type holds as they are: codes times a power of two.
fn exact_row(position: usize) -> Vec<f32> {
    let size = 2.0f32.powi(i32::try_from(position % 9).unwrap() - 6);
    let code =
        |i: usize| if i % 20 == position % 20 { 127 } else { (i * 37 + position * 11) % 128 };
    let sign = |i: usize| if i.is_multiple_of(3) { -1.0 } else { 1.0 };
    (0..40).map(|i| sign(i) * code(i) as f32 * size).collect()
}

/// What two queries of the second head read of positions 0 to 49.
fn attended(cache: &Cache, request: RequestId) -> Vec<u32> {
    let (layer, table) = cache.view(request, 0);
    let queries: Vec<Vec<f32>> =
        (1..3u8).map(|q| (0..20u8).map(|d| f32::from(d % (3 + q)) / 4096.0).collect()).collect();
    let queries: Vec<&[f32]> = queries.iter().map(Vec::as_slice).collect();
    let mut out = vec![0.0; 2 * 32];
    let queries =
        HeadQueries { queries: &queries, visible: &[(0, 50), (7, 49)], ..HeadQueries::default() };
    Kernels::best().attend(queries, &layer.slab(table, 1), &mut out);
    out.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn numbers_that_every_type_holds_are_read_alike_from_each() {
    let request = RequestId(1);
    let fill = |kind: KvType| {
        let mut cache = cache(&[None], kind, 64);
        // Blocks that were used before, for numbers far larger.
        for (request, scale) in [(RequestId(0), 300.0), (request, 1.0)] {
            cache.reserve(request, 50).unwrap();
            for position in 0..50 {
                let row: Vec<f32> = exact_row(position).iter().map(|x| x * scale).collect();
                cache.open_blocks(0, &[(request, position)])[0].write(position, &row, &row);
            }
            if request == RequestId(0) {
                cache.remove(request);
            }
        }
        cache
    };
    let want = attended(&fill(KvType::F32), request);
    assert!(want[20..32].iter().all(|&bits| bits == 0), "padding is zeros");
    for kind in [KvType::F16, KvType::Q8_0] {
        let filled = fill(kind);
        assert_eq!(attended(&filled, request), want, "{kind:?}");
        // As bytes, elsewhere and in another order.
        let mut moved = cache(&[None], kind, 64);
        moved.reserve(RequestId(9), 1).unwrap();
        moved.reserve(request, 50).unwrap();
        for block in 0..4 {
            let tiles = filled.groups[0].tiles.block(crate::BlockId(block));
            let bytes: Vec<u8> = tiles.flatten().copied().collect();
            moved.groups[0].tiles.set_block(crate::BlockId(block + 1), &bytes);
        }
        assert_eq!(attended(&moved, request), want, "{kind:?} moved");
    }
}

#[test]
fn every_head_of_every_layer_reads_its_own_numbers_however_far_it_goes() {
    let mut cache = cache(&[None, None], KvType::F32, 1_000);
    let request = RequestId(3);
    // Every other block belongs to somebody else, and one pass writes to all of its own.
    for block in 1..=40 {
        cache.reserve(request, block * 16).unwrap();
        cache.reserve(RequestId(4), block * 8).unwrap();
    }
    let places: Vec<(RequestId, usize)> = (0..640).map(|position| (request, position)).collect();
    let number = |layer: usize, position: usize, at: usize| {
        f32::from(u16::try_from(layer * 30_000 + position * 40 + at).unwrap())
    };
    for layer in 0..2 {
        for block in &mut cache.open_blocks(layer, &places) {
            for position in block.rows() {
                let row: Vec<f32> = (0..40).map(|at| number(layer, position, at)).collect();
                let negated: Vec<f32> = row.iter().map(|x| -x).collect();
                block.write(position, &row, &negated);
            }
        }
    }
    let read = |bytes: &[u8], at: usize| {
        f32::from_le_bytes(bytes[4 * at..4 * at + 4].try_into().expect("four bytes"))
    };
    for (layer, head, position) in (0..2 * 2 * 640).map(|i| (i % 2, i / 2 % 2, i / 4)) {
        let (view, table) = cache.view(request, layer);
        let slab = view.slab(table, head);
        let (keys, values) = (slab.keys_of(position / 16), slab.values_of(position / 16));
        for d in 0..20 {
            let want = number(layer, position, head * 20 + d);
            assert_eq!(read(keys, d * 16 + position % 16).to_bits(), want.to_bits());
            assert_eq!(read(values, position % 16 * 32 + d).to_bits(), (-want).to_bits());
        }
    }
}

#[test]
fn a_cache_beyond_all_addresses_is_refused_with_its_size() {
    let mut cache = cache(&[None], KvType::F16, usize::MAX / 2);
    let refused = cache.reserve(RequestId(0), 1);
    assert!(matches!(refused, Err(CacheError::OutOfMemory { bytes }) if bytes > 1 << 40));
    assert_eq!(cache.held_counts().sum::<usize>(), 0);
}
