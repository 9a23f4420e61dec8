//! A model's memory by its parts, from a file and its settings alone.

use std::path::Path;

use causeway_kernels::KvType;
use causeway_model::Settings;

use super::*;

fn opening(name: &str, kv_type: KvType) -> Opening {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name);
    let settings = Settings { context_len: Some(128), kv_type, threads: 1 };
    Opening { name: "tiny".to_owned(), path, settings }
}

fn memory(kv_type: KvType, limits: Limits) -> Memory {
    Memory::of(&opening("tiny/llama", kv_type), &limits)
}

#[test]
fn each_part_follows_what_it_depends_on() {
    let small = memory(KvType::F16, Limits::new(2, 16));
    assert!(small.weights > 0 && small.kv > 0 && small.workspace > 0, "{small:?}");
    assert_eq!(small.total(), small.weights + small.kv + small.workspace);
    // The same weights; twice the bytes of a number, more sequences, larger passes.
    let wide = memory(KvType::F32, Limits::new(2, 16));
    assert_eq!(wide, Memory { kv: 2 * small.kv, ..small });
    let many = memory(KvType::F16, Limits::new(8, 16));
    assert!(many.kv > 3 * small.kv && many.workspace > small.workspace, "{many:?}");
    let large = memory(KvType::F16, Limits::new(2, 256));
    assert!(large.workspace > 8 * small.workspace && large.kv == small.kv, "{large:?}");
    // A limit on positions bounds what the cache can grow to.
    let limits = Limits { kv_positions_max: Some(64), ..Limits::new(8, 16) };
    assert!(memory(KvType::F16, limits).kv < many.kv / 4);
}

#[test]
fn a_file_that_cannot_be_read_counts_as_its_bytes() {
    let found = Memory::of(&opening("tiny/README.md", KvType::F16), &Limits::new(2, 16));
    assert!(found.weights > 0);
    assert_eq!(found, Memory { weights: found.weights, ..Memory::default() });
}

#[test]
fn its_parts_are_told() {
    let memory = Memory { weights: 1, kv: 20, workspace: 300 };
    let want = "321 bytes (1 of weights, 20 of keys and values, 300 of workspace)";
    assert_eq!(memory.to_string(), want);
}
