//! Blocks are counted right, windows give back what they cannot read, numbers come back.

mod prefixes;

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
    // (layers, KV heads, head dimension, bytes a position at f16)
    for (n_layers, n_kv_heads, head_dim, want) in
        [(32, 8, 128, 131_072), (32, 32, 128, 524_288), (36, 8, 128, 147_456)]
    {
        let layer = LayerShape { n_kv_heads, head_dim, window: None };
        let cache = Cache::new(&KvShape {
            layers: vec![layer; n_layers],
            kind: KvType::F16,
            positions_max: 1,
            chunk_max: 1,
            sequences_max: 1,
        });
        assert_eq!(cache.position_bytes(), want);
    }
}
