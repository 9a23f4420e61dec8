//! The residual stream of tiny models, layer by layer, against their references.

#[path = "../tests/support/mod.rs"]
mod support;

use std::path::Path;
use std::sync::Arc;

use causeway_kernels::{Kernels, KvType};
use causeway_kv_cache::Cache;
use causeway_request::{RequestId, TokenId};
use causeway_weights::ModelFile;
use support::{arrays, dequantised, f32s, safetensors, testdata, u32s};

use crate::{Model, Settings, Span, Workspace};

/// Largest difference that a float32 forward pass may show against the reference.
const TOLERANCE: f32 = 5e-4;

/// A model under one of its configs, its weights in floats.
fn open(folder: &Path, config: &str) -> Model {
    let copy = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(folder.join(config)).unwrap();
    // Experts in MXFP4 meet activations of 8 bits; the references were computed in floats.
    let text = text.replace("\"quantization_config\"", "\"as_it_was_before\"");
    std::fs::write(copy.path().join("config.json"), text).unwrap();
    let (from, to) = (folder.join("model.safetensors"), copy.path().join("model.safetensors"));
    let tensors = arrays(&from);
    if tensors.keys().any(|name| name.ends_with("_blocks")) {
        std::fs::write(to, safetensors(&dequantised(&tensors))).unwrap();
    } else {
        std::fs::copy(from, to).unwrap();
    }
    let file = Arc::new(ModelFile::open(copy.path()).unwrap());
    // LongRoPE's factors are those of short sequences, as the reference's are.
    let context_len = folder.ends_with("phi3_longrope").then_some(64);
    let settings = Settings { context_len, kv_type: KvType::F32, threads: 2 };
    Model::load(file, settings, Kernels::best()).unwrap()
}

/// The stream behind the layers that the model has, and the same normed, for every position.
fn streams(model: &Model, tokens: &[TokenId], chunk: usize) -> (Vec<f32>, Vec<f32>) {
    let mut cache = Cache::new(&model.kv_shape(1, chunk));
    let (mut work, mut stream, mut normed) = (Workspace::default(), Vec::new(), Vec::new());
    let request = RequestId(0);
    for (index, tokens) in tokens.chunks(chunk).enumerate() {
        let (first_position, logits_wanted) = (index * chunk, tokens.len());
        cache.reserve(request, first_position + tokens.len()).unwrap();
        let span = Span { request, first_position, tokens, logits_wanted };
        model.forward(&[span], &mut cache, &mut work).unwrap();
        stream.extend_from_slice(&work.x);
        normed.extend_from_slice(&work.normed);
    }
    (stream, normed)
}

/// The stream behind each layer of a model, as one pass and token by token.
fn check(folder: &Path, config: &str) {
    let reference = arrays(&folder.join("reference.safetensors"));
    let tokens = support::tokens(&u32s(&reference["ids.0"].1));
    let mut model = open(folder, config);
    let n_layers = model.layers.len();
    // With fewer and fewer layers, the stream ends where the reference was taken.
    for layers in (0..=n_layers).rev() {
        model.layers.truncate(layers);
        let want = f32s(&reference[&format!("hidden.0.{layers}")].1);
        for chunk in [1, tokens.len()] {
            let (stream, normed) = streams(&model, &tokens, chunk);
            // The last one was taken behind the final norm.
            let got = if layers == n_layers { normed } else { stream };
            assert_eq!(got.len(), want.len());
            let worst = got.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            let at = format!("{} {config}, {layers} layers", folder.display());
            assert!(worst <= TOLERANCE, "{at}, chunks of {chunk}: {worst}");
        }
    }
}

#[test]
fn hidden_states_match_the_references_in_prefill_and_in_decode() {
    let folders = std::fs::read_dir(testdata().join("tiny")).unwrap().map(|e| e.unwrap().path());
    let folders: Vec<_> = folders.filter(|path| path.is_dir()).collect();
    assert!(folders.len() >= 22, "{} tiny models", folders.len());
    for folder in folders {
        check(&folder, "config.json");
        check(&folder, "config_v5.json");
    }
}
