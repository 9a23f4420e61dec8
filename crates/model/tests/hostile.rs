//! Model files that lie about themselves: each is refused in one sentence, none is half loaded.
#![expect(clippy::unwrap_used, reason = "a test that cannot write its files has failed")]

#[path = "../../weights/tests/support/mod.rs"]
mod files;
mod support;

use std::sync::Arc;

use causeway_kernels::{Isa, Kernels, KvType};
use causeway_model::{Model, ModelError, RopeScaling, Settings};
use causeway_weights::ModelFile;
use files::{BOOL, F32, Gguf, Random, U8};
use support::{all_logits, bits, load};

/// A key and what is written in place of its good value.
type Patch = (&'static str, u32);

/// Sizes of the small llama: 256 suits K types.
const KEYS: [(&str, u32); 7] = [
    ("llama.block_count", 2),
    ("llama.context_length", 64),
    ("llama.embedding_length", 256),
    ("llama.feed_forward_length", 256),
    ("llama.attention.head_count", 4),
    ("llama.attention.head_count_kv", 2),
    ("llama.rope.dimension_count", 64),
];

/// GGUF's number, block length and block bytes of each type.
const TYPES: [(u32, usize, usize); 15] = [
    (0, 1, 4),
    (1, 1, 2),
    (30, 1, 2),
    (2, 32, 18),
    (3, 32, 20),
    (6, 32, 22),
    (7, 32, 24),
    (8, 32, 34),
    (10, 256, 84),
    (11, 256, 110),
    (12, 256, 144),
    (13, 256, 176),
    (14, 256, 210),
    (20, 32, 18),
    (23, 256, 136),
];

/// A llama of two layers whose matrices are of one type, with patched keys and a layer count.
fn model(kind: (u32, usize, usize), patches: &[Patch], layers: usize) -> Gguf {
    let mut file = Gguf::new().string("general.architecture", "llama");
    for (key, value) in KEYS {
        let patched = patches.iter().find(|patch| patch.0 == key);
        file = file.u32(key, patched.map_or(value, |patch| patch.1));
    }
    let eps = 1e-5f32.to_le_bytes();
    file = file.number("llama.attention.layer_norm_rms_epsilon", F32, &eps);
    let mut random = Random(9);
    let mut matrix = |file: Gguf, name: &str, rows: usize, columns: usize| {
        let (id, len, bytes) = kind;
        // Bytes below 0x30 keep every scale a small positive number.
        let byte = |_| u8::try_from(random.below(0x30)).unwrap();
        let bytes: Vec<u8> = (0..rows * columns / len * bytes).map(byte).collect();
        file.tensor(name, &[columns as u64, rows as u64], id, &bytes)
    };
    let ones: Vec<u8> = [1.0f32; 256].iter().flat_map(|one| one.to_le_bytes()).collect();
    file = matrix(file, "token_embd.weight", 40, 256);
    file = file.tensor("output_norm.weight", &[256], 0, &ones);
    for layer in 0..layers {
        let name = |part: &str| format!("blk.{layer}.{part}.weight");
        for (part, rows) in [("attn_q", 256), ("attn_k", 128), ("attn_v", 128)] {
            file = matrix(file, &name(part), rows, 256);
        }
        for part in ["attn_output", "ffn_gate", "ffn_up", "ffn_down"] {
            file = matrix(file, &name(part), 256, 256);
        }
        file = file.tensor(&name("attn_norm"), &[256], 0, &ones);
        file = file.tensor(&name("ffn_norm"), &[256], 0, &ones);
    }
    file
}

/// The same without one of its keys.
fn without(key: &str) -> Gguf {
    let mut file = model(Q4_0, &[], 2);
    file.keys.retain(|entry| !entry.starts_with(&files::text(key)));
    file
}

const Q4_0: (u32, usize, usize) = TYPES[3];

fn open(file: &Gguf) -> (tempfile::TempDir, Arc<ModelFile>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    std::fs::write(&path, file.build()).unwrap();
    let file = Arc::new(ModelFile::open(&path).unwrap());
    (folder, file)
}

fn try_load(file: &Gguf) -> Result<Model, Box<ModelError>> {
    let (_folder, file) = open(file);
    let settings = Settings { context_len: None, kv_type: KvType::F16, threads: 1 };
    Model::load(file, settings, Kernels::best()).map_err(Box::new)
}

/// The refusal as one sentence, and that it holds all of `wanted`.
fn check(file: &Gguf, wanted: &[&str]) {
    let sentence = files::sentence(&*try_load(file).unwrap_err());
    for part in wanted {
        assert!(sentence.contains(part), "{sentence:?} does not name {part:?}");
    }
}

#[test]
fn every_type_computes_the_same_bits_on_every_path() {
    let ids: Vec<u32> = (0..21).map(|i| i * 7 % 40).collect();
    for kind in TYPES {
        let (_folder, file) = open(&model(kind, &[], 2));
        let want = bits(&all_logits(&load(&file, Isa::Scalar, 1, KvType::F16), &ids, ids.len()));
        assert!(want.iter().flatten().all(|bits| f32::from_bits(*bits).is_finite()));
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_present()) {
            let got = bits(&all_logits(&load(&file, isa, 2, KvType::F16), &ids, 4));
            assert!(got == want, "type {} {isa:?}", kind.0);
        }
    }
}

#[test]
fn absurd_sizes_are_refused_by_name_and_value() {
    let patched = |key, value| model(Q4_0, &[(key, value)], 2);
    check(&patched("llama.block_count", 513), &["layer count", "513"]);
    check(&patched("llama.block_count", 100_000), &["layer count", "100000"]);
    check(&patched("llama.block_count", 0), &["layer count", "0"]);
    check(&patched("llama.block_count", 3), &["blk.2.attn_norm.weight", "missing"]);
    check(&patched("llama.block_count", 1), &["blk.1", "belongs to no part"]);
    check(&patched("llama.attention.head_count", 0), &["head count", "0"]);
    check(&patched("llama.attention.head_count_kv", 0), &["KV head count", "0"]);
    check(&patched("llama.attention.head_count_kv", 7), &["4 heads", "7 KV heads"]);
    check(&patched("llama.embedding_length", 0), &["hidden size", "0"]);
    check(&patched("llama.embedding_length", 128), &["rope.dimension_count", "64"]);
    check(&patched("llama.feed_forward_length", 512), &["ffn_gate", "[256, 256]", "[512, 256]"]);
    check(&patched("llama.context_length", 0), &["context length", "0"]);
    check(&patched("llama.context_length", u32::MAX), &["context length", "4294967295"]);
    check(&patched("llama.rope.dimension_count", 62), &["rope.dimension_count", "62"]);
}

#[test]
fn missing_keys_tensors_and_kinds_are_refused_by_name() {
    check(&Gguf::new(), &["general.architecture", "missing"]);
    let empty = Gguf::new().string("general.architecture", "llama");
    check(&empty, &["token_embd.weight", "missing"]);
    for key in ["block_count", "context_length", "embedding_length", "feed_forward_length"] {
        check(&without(&format!("llama.{key}")), &[&format!("`llama.{key}`"), "missing"]);
    }
    for key in ["attention.head_count", "attention.layer_norm_rms_epsilon"] {
        check(&without(&format!("llama.{key}")), &[&format!("`llama.{key}`"), "missing"]);
    }
    let other = Gguf::new().string("general.architecture", "mamba");
    check(&other, &["`mamba`", "llama, qwen2, qwen3"]);
    let wrong = Gguf::new().number("general.architecture", U8, &[1]);
    check(&wrong, &["general.architecture"]);
    let scaled = |kind| model(Q4_0, &[], 2).string("llama.rope.scaling.type", kind);
    check(&scaled("dynamic"), &["llama.rope.scaling.type", "`dynamic`", "yarn"]);
    check(&scaled("yarn"), &["llama.rope.scaling.factor", "missing"]);
    check(&scaled("longrope"), &["rope_factors_short.weight", "missing"]);
    let nan = model(Q4_0, &[], 2).number("llama.rope.freq_base", F32, &f32::NAN.to_le_bytes());
    check(&nan, &["llama.rope.freq_base", "NaN", "a positive number"]);
    for (key, sentence) in [
        ("llama.expert_weights_scale", "is 2.5, wanted 1"),
        ("llama.rope.scaling.yarn_ext_factor", "is 2.5, wanted 1"),
        ("llama.rope.scale_linear", "rope.scaling.factor"),
    ] {
        check(&model(Q4_0, &[], 2).number(key, F32, &2.5f32.to_le_bytes()), &[key, sentence]);
    }
    let long = model(Q4_0, &[], 2).array("llama.rope.freq_base", F32, 2_000, &[0; 8_000]);
    check(&long, &["llama.rope.freq_base", "a list of 2000", "a positive number"]);
    let text = without("llama.block_count").string("llama.block_count", "two");
    check(&text, &["llama.block_count", "\"two\"", "a whole number"]);
    let gated = model(Q4_0, &[], 2).u32("llama.expert_gating_func", 2);
    check(&gated, &["llama.expert_gating_func", "is 2", "softmax"]);
    let both_ways = model(Q4_0, &[], 2).number("llama.attention.causal", BOOL, &[0]);
    check(&both_ways, &["llama.attention.causal", "false", "true"]);
    let factors = model(Q4_0, &[], 2).tensor("rope_freqs.weight", &[31], 0, &[0x3f; 124]);
    check(&factors, &["31 RoPE factors", "32 pairs"]);
    let one = model(Q4_0, &[], 2).tensor("rope_factors_short.weight", &[32], 0, &[0x3f; 128]);
    check(&one, &["rope_factors_long.weight", "missing"]);
    let experts = model(Q4_0, &[], 2).u32("llama.expert_count", 4);
    check(&experts, &["llama.expert_used_count", "missing"]);
    let extra = model(Q4_0, &[], 2).tensor("blk.0.ssm_in.weight", &[32], 2, &[0; 18]);
    check(&extra, &["blk.0.ssm_in.weight", "llama"]);
    // IQ2_XXS, a type that is listed but not computed with.
    let unknown = model((16, 256, 66), &[], 2);
    check(&unknown, &["token_embd.weight", "IQ2_XXS"]);
    // Bytes below 0x30 as exponents: scales that no f16 has.
    let tiny_scales = model((39, 32, 17), &[], 2);
    check(&tiny_scales, &["attn_q.weight", "MXFP4 with a scale of 2^-"]);
}

#[test]
fn a_factor_without_a_type_is_linear() {
    let file = model(Q4_0, &[], 2);
    let scaled = file.number("llama.rope.scaling.factor", F32, &4.0f32.to_le_bytes());
    let scaling = |file: &Gguf| try_load(file).unwrap().config().ropes[0].scaling.clone();
    assert_eq!(scaling(&scaled), RopeScaling::Linear { factor: 4.0 });
    let none = scaled.string("llama.rope.scaling.type", "none");
    assert_eq!(scaling(&none), RopeScaling::None);
}

#[test]
fn random_keys_never_panic() {
    let mut random = Random(3);
    for _ in 0..400 {
        let (key, _) = KEYS[random.below(KEYS.len())];
        let value = [0, 1, 2, 3, 5, 63, 64, 65, 255, 1 << 20, u32::MAX][random.below(11)];
        let (second, _) = KEYS[random.below(KEYS.len())];
        let patches = [(key, value), (second, u32::try_from(random.below(300)).unwrap())];
        let _ = try_load(&model(Q4_0, &patches, 1 + random.below(2)));
    }
}

#[test]
fn tokens_and_positions_out_of_range_are_errors() {
    use causeway_kv_cache::Cache;
    use causeway_model::{Span, Workspace};
    use causeway_request::RequestId;
    let (_folder, file) = open(&model(Q4_0, &[], 2));
    let model = load(&file, Isa::best(), 1, KvType::F16);
    for (first_position, id, want) in [(0, 40, "token 40"), (64, 1, "position 64")] {
        let mut cache = Cache::new(&model.kv_shape(1, 8));
        let tokens = support::tokens(&[id]);
        cache.reserve(RequestId(0), first_position + 1).unwrap();
        let request = RequestId(0);
        let span = Span { request, first_position, tokens: &tokens, logits_wanted: 1 };
        let error = model.forward(&[span], &mut cache, &mut Workspace::default()).unwrap_err();
        assert!(error.to_string().contains(want), "{error}");
        assert!(error.is_callers_mistake());
    }
}

#[test]
fn numbers_that_are_not_finite_name_their_layer_and_position() {
    let mut file = model(Q4_0, &[], 2);
    let end = file.bytes.len();
    // The last tensor is the second layer's feed-forward norm.
    file.bytes[end - 4..].copy_from_slice(&f32::INFINITY.to_le_bytes());
    let (_folder, file) = open(&file);
    let model = load(&file, Isa::best(), 1, KvType::F16);
    let (request, tokens) = (causeway_request::RequestId(0), support::tokens(&[1, 2, 3]));
    // The last layer is computed only where logits are wanted.
    for (logits_wanted, position) in [(3, 0), (1, 2)] {
        let mut cache = causeway_kv_cache::Cache::new(&model.kv_shape(1, 8));
        cache.reserve(request, 3).unwrap();
        let span =
            causeway_model::Span { request, first_position: 0, tokens: &tokens, logits_wanted };
        let mut work = causeway_model::Workspace::default();
        let error = model.forward(&[span], &mut cache, &mut work).unwrap_err();
        let want = format!("layer 1, position {position}: activation 255 of row 0 is not finite");
        assert_eq!(files::sentence(&error), want);
    }
}
