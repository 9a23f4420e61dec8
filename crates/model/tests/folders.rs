//! Folders whose `config.json` asks for what is not computed, or contradicts the weights.
#![expect(clippy::unwrap_used, reason = "a test that cannot write its files has failed")]

#[path = "../../weights/tests/support/mod.rs"]
mod files;
mod support;

use std::sync::Arc;

use causeway_kernels::{Isa, Kernels, KvType};
use causeway_model::{Export, Model, Settings};
use causeway_weights::gguf::{NewTensor, Source};
use causeway_weights::{ModelFile, Value as GgufValue};
use serde_json::{Value, json};
use support::{all_logits, arrays, bits, load, safetensors, testdata};

/// Logits of a few tokens.
fn rows(model: &Model) -> Vec<Vec<u32>> {
    bits(&all_logits(model, &(0..40).map(|id| id * 7 % 500).collect::<Vec<_>>(), 40))
}

/// A tiny model as what reads text in a model that sees too: names with other beginnings, config
/// in an object of its own, and tensors beside it that no text goes through.
fn in_a_model_that_sees(
    name: &str,
    (layers, output): (&str, &str),
    without: &[&str],
) -> Arc<ModelFile> {
    let folder = testdata().join("tiny").join(name);
    let mut text: Value =
        serde_json::from_slice(&std::fs::read(folder.join("config.json")).unwrap()).unwrap();
    without.iter().for_each(|key| drop(text.as_object_mut().unwrap().remove(*key)));
    let config = json!({ "model_type": "sees", "text_config": text, "vision_config": {} });
    let weights = std::fs::read(folder.join("model.safetensors")).unwrap();
    let len = usize::try_from(u64::from_le_bytes(weights[..8].try_into().unwrap())).unwrap();
    let header: Value = serde_json::from_slice(&weights[8..8 + len]).unwrap();
    let renamed = header.as_object().unwrap().iter().map(|(name, entry)| {
        let name = match name.strip_prefix("model.") {
            Some(rest) => format!("{layers}{rest}"),
            None if name.starts_with("lm_head") => format!("{output}{name}"),
            None => name.clone(),
        };
        (name, entry.clone())
    });
    let mut header: serde_json::Map<String, Value> = renamed.collect();
    let end = weights.len() - 8 - len;
    let seen = json!({ "dtype": "F32", "shape": [1], "data_offsets": [end, end + 4] });
    header.insert("vision_tower.patch.weight".to_owned(), seen);
    let header = Value::from(header).to_string();
    let bytes = [&weights[8 + len..], &[0; 4]].concat();
    let files = files::Folder::with(&[
        ("config.json", config.to_string().as_bytes()),
        ("model.safetensors", &files::safetensors(&header, &bytes)),
    ]);
    Arc::new(ModelFile::open(files.path()).unwrap())
}

/// All that a folder's GGUF file would hold, where it can be written.
type Written = (Vec<(String, GgufValue)>, Vec<(NewTensor, Vec<u8>)>);

fn written(file: &ModelFile) -> Option<Written> {
    let export = Export::of(file, Vec::new()).ok()?;
    let bytes = |index| export.bytes(index).unwrap().into_owned();
    let tensors = export.tensors().into_iter().enumerate();
    Some((export.keys(), tensors.map(|(index, new)| (new, bytes(index))).collect()))
}

#[test]
fn what_reads_text_in_a_model_that_sees_has_the_bits_that_it_has_alone() {
    // Folders of such models leave out what their family means anyway.
    let gemma = ["rms_norm_eps", "rope_theta", "rope_local_base_freq"];
    for (name, without) in [("gemma3", &gemma[..]), ("mistral", &[]), ("llama_tied", &[])] {
        let want = rows(&try_load(name, &json!({})).unwrap());
        let alone = written(&ModelFile::open(&testdata().join("tiny").join(name)).unwrap());
        for prefixes in
            [("language_model.model.", "language_model."), ("model.language_model.", "")]
        {
            let file = in_a_model_that_sees(name, prefixes, without);
            let model = load(&file, Isa::best(), 1, KvType::F32);
            assert!(model.config().architecture.ends_with(", the text part of \"sees\""));
            let got = rows(&model);
            assert!(got == want, "{name} under {prefixes:?}");
            assert!(alone.is_some() && written(&file) == alone, "{name} under {prefixes:?}");
        }
    }
}

#[test]
fn configs_with_any_value_at_any_key_never_panic() {
    let strange = [
        json!(null),
        json!(-1),
        json!(0),
        json!(1.5),
        json!(u64::MAX),
        json!(1e300),
        json!(true),
        json!("x"),
        json!([]),
        json!([0, "x"]),
        json!({}),
        json!({ "full_attention": 1, "rope_type": "yarn", "type": 3 }),
    ];
    let _ = try_load("phi3_longrope", &json!({ "original_max_position_embeddings": u64::MAX }));
    let mut random = files::Random(11);
    for entry in std::fs::read_dir(testdata().join("tiny")).unwrap() {
        let folder = entry.unwrap().path();
        let Ok(weights) = std::fs::read(folder.join("model.safetensors")) else { continue };
        for config in ["config.json", "config_v5.json"] {
            let text = std::fs::read(folder.join(config)).unwrap();
            let whole: Value = serde_json::from_slice(&text).unwrap();
            for key in whole.as_object().unwrap().keys() {
                let mut config = whole.clone();
                config[key] = strange[random.below(strange.len())].clone();
                let _ = try_load_of(config.to_string().as_bytes(), &weights);
            }
        }
    }
}

/// Loads a folder of this config and these weights; what cannot be loaded cannot be written.
fn try_load_of(config: &[u8], weights: &[u8]) -> Result<Model, String> {
    let folder = files::Folder::with(&[("config.json", config), ("model.safetensors", weights)]);
    let file = Arc::new(ModelFile::open(folder.path()).unwrap());
    let written = written(&file);
    let settings = Settings { context_len: None, kv_type: KvType::F32, threads: 1 };
    let loaded = Model::load(file, settings, Kernels::best());
    assert!(loaded.is_ok() || written.is_none(), "what is not computed is not written");
    loaded.map_err(|error| files::sentence(&error))
}

/// Loads a tiny model under a config with other values; null takes a key away.
fn try_load(name: &str, patch: &Value) -> Result<Model, String> {
    let folder = testdata().join("tiny").join(name);
    let text = std::fs::read(folder.join("config.json")).unwrap();
    let mut config: Value = serde_json::from_slice(&text).unwrap();
    for (key, value) in patch.as_object().unwrap() {
        config[key] = value.clone();
    }
    let weights = std::fs::read(folder.join("model.safetensors")).unwrap();
    try_load_of(config.to_string().as_bytes(), &weights)
}

#[test]
fn a_tensor_that_is_missing_or_of_another_shape_is_named_in_every_model() {
    let folders = std::fs::read_dir(testdata().join("tiny")).unwrap().map(|e| e.unwrap().path());
    for folder in folders.filter(|path| path.is_dir()) {
        let config = std::fs::read(folder.join("config.json")).unwrap();
        let whole = arrays(&folder.join("model.safetensors"));
        // The layers are alike.
        let names = whole.keys().filter(|name| !name.contains("layers.") || name.contains(".0."));
        for name in names {
            let mut without = whole.clone();
            let (shape, bytes) = without.remove(name).unwrap();
            let mut shorter = without.clone();
            let rows = [&[shape[0] - 1], &shape[1..]].concat();
            let len = bytes.len() / shape[0] * rows[0];
            shorter.insert(name.clone(), (rows, bytes[..len].to_vec()));
            for arrays in [without, shorter] {
                let loaded = try_load_of(&config, &safetensors(&arrays));
                let sentence = loaded.expect_err("a tensor is wrong");
                assert!(sentence.contains(name), "{}: {sentence:?} {name}", folder.display());
            }
        }
    }
}

#[track_caller]
fn check(name: &str, patch: Value, wanted: &[&str]) {
    let sentence = try_load(name, &patch).expect_err("the config is wrong");
    for part in wanted {
        assert!(sentence.contains(part), "{sentence:?} does not name {part:?}");
    }
}

#[test]
fn what_is_not_computed_is_refused_by_name() {
    check("llama", json!({ "model_type": "mamba" }), &["`mamba`", "llama", "qwen3_moe", "gpt_oss"]);
    let scaled = |kind: &str| json!({ "rope_scaling": { "rope_type": kind, "factor": 2.0 } });
    check("llama", scaled("dynamic"), &["rope_type", "`dynamic`", "fixed at load", "length"]);
    check("llama", scaled("mrope"), &["rope_type", "`mrope`", "yarn or longrope"]);
    check("olmo2", json!({ "model_type": "olmo9" }), &["`olmo9`", "olmo2"]);
    check("qwen2", json!({ "use_sliding_window": true }), &["use_sliding_window", "false"]);
    check("gpt_oss", json!({ "swiglu_limit": 5.0 }), &["swiglu_limit", "is 5", "7"]);
    let quantised = json!({ "quantization_config": { "quant_method": "gptq" } });
    check("llama", quantised, &["quantization_config", "gptq", "null"]);
    check("gemma2", json!({ "hidden_activation": "relu" }), &["hidden_act", "`relu`"]);
}

#[test]
fn numbers_out_of_range_are_refused_with_both_values() {
    let llama3 = |low: f64, high: f64| {
        json!({ "rope_scaling": {
            "rope_type": "llama3", "factor": 8.0, "low_freq_factor": low,
            "high_freq_factor": high, "original_max_position_embeddings": 128,
        } })
    };
    check("llama", llama3(4.0, 1.0), &["high less low frequency factor", "-3"]);
    check("llama", json!({ "rope_scaling": { "rope_type": "linear" } }), &["`factor`", "missing"]);
    check("llama", json!({ "rope_scaling": 8 }), &["`rope_scaling` is 8", "an object"]);
    let short = json!({ "type": "longrope", "short_factor": [1.0], "long_factor": [1.0] });
    check("phi3_longrope", json!({ "rope_scaling": short }), &["1 RoPE factors", "8 pairs"]);
    let part = json!({ "partial_rotary_factor": 1.5 });
    check("phi3", part, &["`partial_rotary_factor` is 1.5", "at most 1"]);
    let cap = json!({ "attn_logit_softcapping": -1.0 });
    check("gemma2", cap, &["`attn_logit_softcapping` is -1", "0 or a positive number"]);
    check("llama", json!({ "rms_norm_eps": 0 }), &["`rms_norm_eps` is 0", "a positive number"]);
    check("llama", json!({ "rope_theta": 1e300 }), &["`rope_theta`", "a positive number"]);
    let linear = json!({ "rope_scaling": { "rope_type": "linear", "factor": 0 } });
    check("llama", linear, &["`factor` is 0", "a positive number"]);
    check("gemma2", json!({ "sliding_window": null }), &["`sliding_window`", "missing"]);
    check("gemma2", json!({ "layer_types": ["full_attention"] }), &["layer_types", "a layer"]);
    let strange = json!(["full_attention", "chunked_attention"]);
    check("gpt_oss", json!({ "layer_types": strange }), &["layer_types", "chunked_attention"]);
    check("granite", json!({ "residual_multiplier": 0.0 }), &["residual_multiplier", "is 0"]);
    check("mixtral", json!({ "num_experts_per_tok": 5 }), &["experts of a row", "5", "4"]);
    check("mixtral", json!({ "num_local_experts": null }), &["num_local_experts", "missing"]);
    check("smollm3", json!({ "no_rope_layers": [1, 1] }), &["no_rope_layers", "a layer"]);
}

#[test]
fn a_config_that_contradicts_the_weights_names_tensor_and_both_shapes() {
    let wanted = ["`vocab_size` is 500", "512", "model.embed_tokens.weight"];
    check("qwen3", json!({ "vocab_size": 500 }), &wanted);
    check(
        "qwen3",
        json!({ "hidden_size": 32 }),
        &["embed_tokens.weight", "[512, 64]", "[512, 32]"],
    );
    check("llama", json!({ "num_hidden_layers": 1 }), &["model.layers.1.", "with 1 layers"]);
    check("llama", json!({ "num_hidden_layers": 3 }), &["model.layers.2.", "missing"]);
    check("phi3", json!({ "intermediate_size": 80 }), &["gate_up_proj", "[192, 64]", "[160, 64]"]);
    check("mixtral", json!({ "num_local_experts": 3 }), &["block_sparse_moe.gate", "[4, 64]"]);
    check("qwen3_moe", json!({ "mlp_only_layers": [0, 1] }), &["mlp.gate_proj.weight", "missing"]);
    check("gpt_oss", json!({ "num_local_experts": 5 }), &["mlp.router", "[4, 64]", "[5, 64]"]);
    check(
        "gpt_oss_mxfp4",
        json!({ "num_local_experts": 3 }),
        &["mlp.router.weight", "[4, 64]", "[3, 64]"],
    );
    let inner = json!({ "intermediate_size": 65 });
    check("gpt_oss_mxfp4", inner, &["gate_up_proj_blocks", "[4, 128", "[4, 130"]);
    check("llama_tied", json!({ "tie_word_embeddings": false }), &["lm_head.weight", "missing"]);
    check("olmo2", json!({ "model_type": "llama" }), &["input_layernorm.weight", "missing"]);
    check("llama", json!({ "model_type": "qwen3" }), &["q_norm.weight", "missing"]);
    check("qwen3", json!({ "model_type": "llama" }), &["_norm.weight", "belongs to no part"]);
    check("qwen3", json!({ "model_type": "qwen2" }), &["q_proj.bias", "missing"]);
    check("gpt_oss", json!({ "model_type": "llama" }), &["mlp.gate_proj.weight", "missing"]);
}

#[test]
fn biases_that_the_config_denies_or_wants_are_named_with_the_way_out() {
    let says = |key: &str, value: bool| json!({ key: value });
    let wanted = ["`attention_bias` is true", "q_proj.bias", "is missing", "set it to false"];
    check("llama", says("attention_bias", true), &wanted);
    check("granite", says("attention_bias", true), &wanted);
    let wanted = ["`mlp_bias` is true", "gate_proj.bias", "is missing", "set it to false"];
    check("llama", says("mlp_bias", true), &wanted);
    let wanted = ["`attention_bias` is false", "q_proj.bias", "is there", "set it to true"];
    check("llama_linear_bias", says("attention_bias", false), &wanted);
    let wanted = ["`mlp_bias` is false", "gate_proj.bias", "is there", "set it to true"];
    check("llama_linear_bias", says("mlp_bias", false), &wanted);
    check("llama", json!({ "attention_bias": "yes" }), &["attention_bias", "\"yes\"", "true"]);
    // These have biases whatever a config says.
    assert!(try_load("qwen2", &says("attention_bias", false)).is_ok());
}

#[test]
fn a_cap_that_is_null_is_none() {
    let none = json!({ "attn_logit_softcapping": null, "final_logit_softcapping": null });
    let model = try_load("gemma2", &none).unwrap();
    let caps = [model.config().score_cap, model.config().logit_cap];
    assert_eq!(caps.map(f32::to_bits), [0, 0]);
}
