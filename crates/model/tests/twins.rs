//! Every tiny model as a GGUF file, written by the project and by this test: one and the same.
#![expect(clippy::unwrap_used, reason = "a test that cannot read its fixture must stop")]

#[path = "../../weights/tests/support/mod.rs"]
mod files;
mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use causeway_kernels::{Isa, KvType};
use causeway_model::{Config, Export};
use causeway_weights::gguf::{Source, write_directory};
use causeway_weights::{ModelFile, Value as GgufValue};
use files::{BOOL, F32, Gguf, Random};
use serde_json::Value;
use support::{Arrays, all_logits, arrays, bits, load, testdata, u32s};

/// GGUF's numbers of types.
const BF16: u32 = 30;
const MXFP4: u32 = 39;

/// `model_type`, GGUF's architecture, and whether its query and key rows lie in pairs there.
const FAMILIES: [(&str, &str, bool); 13] = [
    ("llama", "llama", true),
    ("mistral", "llama", true),
    ("mixtral", "llama", true),
    ("qwen2", "qwen2", false),
    ("qwen3", "qwen3", false),
    ("qwen3_moe", "qwen3moe", false),
    ("gemma2", "gemma2", false),
    ("gemma3_text", "gemma3", false),
    ("phi3", "phi3", false),
    ("granite", "granite", true),
    ("olmo2", "olmo2", false),
    ("smollm3", "smollm3", true),
    ("gpt_oss", "gpt-oss", false),
];

/// A layer's tensors, as folders and GGUF files call them; the first that fits holds.
const PARTS: [(&str, &str); 26] = [
    ("input_layernorm", "attn_norm"),
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.qkv_proj", "attn_qkv"),
    ("self_attn.o_proj", "attn_output"),
    ("self_attn.q_norm", "attn_q_norm"),
    ("self_attn.k_norm", "attn_k_norm"),
    ("self_attn.sinks", "attn_sinks.weight"),
    ("pre_feedforward_layernorm", "ffn_norm"),
    ("post_feedforward_layernorm", "post_ffw_norm"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.gate_up_proj", "ffn_up"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
    ("mlp.gate", "ffn_gate_inp"),
    ("mlp.router", "ffn_gate_inp"),
    ("block_sparse_moe.gate", "ffn_gate_inp"),
    ("experts.w1", "ffn_gate_exps"),
    ("experts.w2", "ffn_down_exps"),
    ("experts.w3", "ffn_up_exps"),
    ("experts.gate_proj", "ffn_gate_exps"),
    ("experts.up_proj", "ffn_up_exps"),
    ("experts.down_proj_bias", "ffn_down_exps.bias"),
    ("experts.down_proj", "ffn_down_exps"),
    ("post_attention_layernorm", "ffn_norm"),
];

/// A key of `config.json` and what GGUF files call it.
const SIZES: [(&str, &str); 10] = [
    ("num_hidden_layers", "block_count"),
    ("max_position_embeddings", "context_length"),
    ("hidden_size", "embedding_length"),
    ("intermediate_size", "feed_forward_length"),
    ("num_attention_heads", "attention.head_count"),
    ("num_key_value_heads", "attention.head_count_kv"),
    ("sliding_window", "attention.sliding_window"),
    ("num_local_experts", "expert_count"),
    ("num_experts_per_tok", "expert_used_count"),
    ("moe_intermediate_size", "expert_feed_forward_length"),
];

const NUMBERS: [(&str, &str); 9] = [
    ("rms_norm_eps", "attention.layer_norm_rms_epsilon"),
    ("rope_theta", "rope.freq_base"),
    ("rope_local_base_freq", "rope.freq_base_swa"),
    ("attn_logit_softcapping", "attn_logit_softcapping"),
    ("final_logit_softcapping", "final_logit_softcapping"),
    ("embedding_multiplier", "embedding_scale"),
    ("residual_multiplier", "residual_scale"),
    ("logits_scaling", "logit_scale"),
    ("attention_multiplier", "attention.scale"),
];

#[expect(clippy::cast_possible_truncation, reason = "config numbers are rounded once")]
fn rounded(value: &Value) -> Option<f32> {
    value.as_f64().map(|number| number as f32)
}

fn size(config: &Value, key: &str) -> Option<usize> {
    config[key].as_u64().map(|value| usize::try_from(value).unwrap())
}

fn f32_bytes(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    values.into_iter().flat_map(f32::to_le_bytes).collect()
}

/// Numbers of a float tensor, whose type its length tells.
fn floats((shape, bytes): &(Vec<usize>, Vec<u8>)) -> Vec<f32> {
    let width = bytes.len() / shape.iter().product::<usize>();
    let bits = |bytes: &[u8]| bytes.iter().rev().fold(0, |bits, &b| bits << 8 | u32::from(b));
    bytes.chunks(width).map(|b| f32::from_bits(bits(b) << (32 - 8 * width))).collect()
}

/// Keys of the file but those of RoPE scaling.
fn keys(mut file: Gguf, architecture: &str, config: &Value, head_dim: usize) -> Gguf {
    let u32_of = |value: usize| u32::try_from(value).unwrap();
    let name = |key: &str| format!("{architecture}.{key}");
    for (theirs, ours) in SIZES {
        if let Some(value) = size(config, theirs) {
            file = file.u32(&name(ours), u32_of(value));
        }
    }
    for (theirs, ours) in NUMBERS {
        if let Some(value) = rounded(&config[theirs]) {
            file = file.number(&name(ours), F32, &value.to_le_bytes());
        }
    }
    if let Some(scalar) = rounded(&config["query_pre_attn_scalar"]) {
        let scale = 1.0 / scalar.sqrt();
        file = file.number(&name("attention.scale"), F32, &scale.to_le_bytes());
    }
    if config["norm_topk_prob"] == false {
        file = file.number(&name("expert_weights_norm"), BOOL, &[0]);
    }
    let part = config["partial_rotary_factor"].as_f64().unwrap_or(1.0);
    // The one tiny model whose heads are turned in part has three quarters.
    let dims = if part < 1.0 { head_dim / 4 * 3 } else { head_dim };
    file.u32(&name("attention.key_length"), u32_of(head_dim))
        .u32(&name("attention.value_length"), u32_of(head_dim))
        .u32(&name("rope.dimension_count"), u32_of(dims))
}

/// What the file says of RoPE scaling.
fn scaling(mut file: Gguf, architecture: &str, config: &Value, head_dim: usize) -> Gguf {
    let name = |key: &str| format!("{architecture}.rope.scaling.{key}");
    let all = &config["rope_scaling"];
    let number = |key: &str| rounded(&all[key]).unwrap();
    let kind = all["rope_type"].as_str().or(all["type"].as_str()).unwrap_or("default");
    let original = "original_max_position_embeddings";
    let original = size(all, original).or(size(config, original));
    if let Some(original) = original {
        file = file.u32(&name("original_context_length"), u32::try_from(original).unwrap());
    }
    let pairs = (head_dim / 2) as u64;
    match kind {
        "linear" | "yarn" => file.string(&name("type"), kind).number(
            &name("factor"),
            F32,
            &number("factor").to_le_bytes(),
        ),
        "llama3" => {
            let factors = f32_bytes(llama3_factors(config, head_dim));
            file.tensor("rope_freqs.weight", &[pairs], 0, &factors)
        }
        "longrope" => {
            let context = rounded(&config["max_position_embeddings"]).unwrap();
            let original = rounded(&config["original_max_position_embeddings"]).unwrap();
            let stretch = libm::logf(context / original) / libm::logf(original);
            let magnitude = (1.0 + stretch).sqrt().to_le_bytes();
            file = file.number(&name("attn_factor"), F32, &magnitude);
            for (theirs, ours) in [("short_factor", "short"), ("long_factor", "long")] {
                let list = all[theirs].as_array().unwrap();
                let factors = f32_bytes(list.iter().map(|value| rounded(value).unwrap()));
                let name = format!("rope_factors_{ours}.weight");
                file = file.tensor(&name, &[pairs], 0, &factors);
            }
            file
        }
        _ => file,
    }
}

/// Numbers that Llama 3 divides its frequencies by (Llama 3.1, its published code).
fn llama3_factors(config: &Value, head_dim: usize) -> Vec<f32> {
    let all = &config["rope_scaling"];
    let number = |key: &str| all[key].as_f64().unwrap();
    let (factor, low, high) =
        (number("factor"), number("low_freq_factor"), number("high_freq_factor"));
    let dims = f64::from(u32::try_from(head_dim).unwrap());
    let base = config["rope_theta"].as_f64().unwrap();
    let one = |pair: usize| {
        let pair = f64::from(u32::try_from(pair).unwrap());
        let plain = libm::pow(base, -2.0 * pair / dims);
        let turns = number("original_max_position_embeddings") * plain / std::f64::consts::TAU;
        let kept = ((turns - low) / (high - low)).clamp(0.0, 1.0);
        let divisor = 1.0 / (kept + (1.0 - kept) / factor);
        rounded(&Value::from(divisor)).unwrap()
    };
    (0..head_dim / 2).map(one).collect()
}

/// Rows of each head from halves (i, i + d/2) to pairs (2i, 2i + 1).
fn paired((shape, bytes): &(Vec<usize>, Vec<u8>), head_dim: usize) -> (Vec<usize>, Vec<u8>) {
    let row_bytes = bytes.len() / shape[0];
    let half = head_dim / 2;
    let source = |row: usize| {
        let (head, within) = (row / head_dim, row % head_dim);
        head * head_dim + within / 2 + within % 2 * half
    };
    let row = |row: usize| &bytes[source(row) * row_bytes..][..row_bytes];
    (shape.clone(), (0..shape[0]).flat_map(row).copied().collect())
}

/// `(experts, inputs, outputs)` as `(experts, outputs, inputs)`, of the outputs each `step`th.
fn across(
    (shape, bytes): &(Vec<usize>, Vec<u8>),
    first: usize,
    step: usize,
) -> (Vec<usize>, Vec<u8>) {
    let (&[count, columns, rows], width) = (&shape[..].try_into().unwrap(), 2);
    let mut out = Vec::new();
    for expert in 0..count {
        for row in (first..rows).step_by(step) {
            for column in 0..columns {
                let at = ((expert * columns + column) * rows + row) * width;
                out.extend_from_slice(&bytes[at..at + width]);
            }
        }
    }
    (vec![count, rows / step, columns], out)
}

/// Experts by their number joined in one tensor, and fused ones taken apart.
fn experts(tensors: Arrays) -> Arrays {
    let mut out = Arrays::new();
    for (name, tensor) in &tensors {
        let (head, tail) = name.split_once(".experts.").unwrap_or((name, ""));
        let first = tail.split('.').next().unwrap_or_default();
        if let Ok(index) = first.parse::<usize>() {
            let joined = format!("{head}.experts.{}", &tail[first.len() + 1..]);
            let (shape, bytes) = out.entry(joined).or_default();
            assert_eq!(index, shape.first().copied().unwrap_or_default(), "fewer than ten");
            *shape = [&[index + 1], &tensor.0[..]].concat();
            bytes.extend(&tensor.1);
        } else if tail.ends_with("_scales") {
            // They go with their codes.
        } else if let Some(part) = tail.strip_suffix("_blocks") {
            let scales = &tensors[&name.replace("_blocks", "_scales")].1;
            let own = |part: &str| format!("{head}.experts.{part}.weight");
            if part == "gate_up_proj" {
                out.insert(own("gate_proj"), mxfp4_blocks(tensor, scales, (0, 2)));
                out.insert(own("up_proj"), mxfp4_blocks(tensor, scales, (1, 2)));
            } else {
                out.insert(own(part), mxfp4_blocks(tensor, scales, (0, 1)));
            }
        } else if tail == "gate_up_proj" {
            out.insert(format!("{head}.experts.gate_proj.weight"), across(tensor, 0, 2));
            out.insert(format!("{head}.experts.up_proj.weight"), across(tensor, 1, 2));
        } else if tail == "down_proj" {
            out.insert(format!("{name}.weight"), across(tensor, 0, 1));
        } else if tail == "gate_up_proj_bias" {
            let (shape, bytes) = tensor;
            for (part, first) in [("gate", 0), ("up", 2)] {
                let bytes = bytes.chunks(4).flat_map(|two| &two[first..first + 2]);
                let half = (vec![shape[0], shape[1] / 2], bytes.copied().collect());
                out.insert(format!("{head}.experts.{part}_proj.bias"), half);
            }
        } else {
            out.insert(name.clone(), tensor.clone());
        }
    }
    out
}

/// MXFP4 numbers whose codes and scales lie apart, each `step`th row from `first` on, as blocks
/// with numbers i and i + 16 in one byte: their shape and bytes.
fn mxfp4_blocks(
    (shape, codes): &(Vec<usize>, Vec<u8>),
    scales: &[u8],
    (first, step): (usize, usize),
) -> (Vec<usize>, Vec<u8>) {
    let &[count, rows, blocks, 16] = &shape[..] else { panic!("codes have four sizes") };
    let mut out = Vec::new();
    for row in (first..count * rows).step_by(step) {
        for block in row * blocks..(row + 1) * blocks {
            let codes = &codes[block * 16..][..16];
            let nibble = |index: usize| codes[index / 2] >> (4 * (index % 2)) & 15;
            out.push(scales[block]);
            out.extend((0..16).map(|index| nibble(index) | nibble(index + 16) << 4));
        }
    }
    (vec![count, rows / step, blocks * 32], out)
}

/// What a GGUF file calls a tensor.
fn gguf_name(name: &str, model_type: &str) -> String {
    match name {
        "model.embed_tokens.weight" => return "token_embd.weight".to_owned(),
        "model.norm.weight" => return "output_norm.weight".to_owned(),
        "lm_head.weight" => return "output.weight".to_owned(),
        _ => {}
    }
    let (layer, part) = name.strip_prefix("model.layers.").unwrap().split_once('.').unwrap();
    let own = ["gemma2", "gemma3_text", "olmo2", "gpt_oss"].contains(&model_type);
    let part = part.strip_prefix("mlp.experts").map_or(part.to_owned(), |e| format!("experts{e}"));
    let part = part
        .strip_prefix("block_sparse_moe.experts")
        .map_or(part.clone(), |e| format!("experts{e}"));
    let fits = |theirs: &str| {
        let rest = part.strip_prefix(theirs)?;
        matches!(rest, "" | ".weight" | ".bias").then(|| rest.to_owned())
    };
    let (theirs, ours, rest) = PARTS
        .iter()
        .find_map(|(theirs, ours)| Some((*theirs, *ours, fits(theirs)?)))
        .unwrap_or_else(|| panic!("{name} has no name in a GGUF file"));
    let ours =
        if own && theirs == "post_attention_layernorm" { "post_attention_norm" } else { ours };
    format!("blk.{layer}.{ours}{rest}")
}

/// The GGUF file of a tiny model; old ones have a tensor for each expert.
fn twin(name: &str, experts_apart: bool) -> Gguf {
    let folder = testdata().join("tiny").join(name);
    let config = std::fs::read(folder.join("config.json")).unwrap();
    let config: Value = serde_json::from_slice(&config).unwrap();
    let model_type = config["model_type"].as_str().unwrap();
    let (_, architecture, in_pairs) = *FAMILIES.iter().find(|f| f.0 == model_type).unwrap();
    let per_head =
        size(&config, "hidden_size").unwrap() / size(&config, "num_attention_heads").unwrap();
    let head_dim = size(&config, "head_dim").unwrap_or(per_head);
    let mut file = Gguf::new().string("general.architecture", architecture);
    file = keys(file, architecture, &config, head_dim);
    file = scaling(file, architecture, &config, head_dim);
    for (theirs, mut tensor) in experts(arrays(&folder.join("model.safetensors"))) {
        if in_pairs && (theirs.contains("q_proj") || theirs.contains("k_proj")) {
            tensor = paired(&tensor, head_dim);
        }
        if tensor.0.len() == 1 || theirs.ends_with("bias") {
            // Such files keep vectors in f32, and gemma's norms with the 1 that folders leave out.
            let add = if architecture.starts_with("gemma") { 1.0 } else { 0.0 };
            tensor.1 = f32_bytes(floats(&tensor).into_iter().map(|value| value + add));
        }
        let (shape, bytes) = tensor;
        let count = shape.iter().product::<usize>();
        let sizes: Vec<u64> = shape.iter().rev().map(|&size| size as u64).collect();
        let dtype = match bytes.len() {
            len if len == 4 * count => 0,
            len if len == 2 * count => BF16,
            _ => MXFP4,
        };
        let name = gguf_name(&theirs, model_type);
        let Some((layer, kind)) = name.split_once("_exps").filter(|_| experts_apart) else {
            file = file.tensor(&name, &sizes, dtype, &bytes);
            continue;
        };
        for (expert, bytes) in bytes.chunks(bytes.len() / shape[0]).enumerate() {
            file = file.tensor(&format!("{layer}.{expert}{kind}"), &sizes[..2], dtype, bytes);
        }
    }
    file
}

/// Writes a source to a file, or to so many parts, and returns the first file's path.
fn write(source: &dyn Source, folder: &Path, parts: usize) -> PathBuf {
    let tensors = source.tensors();
    let each = tensors.len().div_ceil(parts);
    let path = |part: usize| folder.join(format!("m-{:05}-of-{parts:05}.gguf", part + 1));
    let number = |number: usize| GgufValue::U16(u16::try_from(number).unwrap());
    for (part, own) in tensors.chunks(each).enumerate() {
        let mut keys = if part == 0 { source.keys() } else { Vec::new() };
        keys.push(("split.no".to_owned(), number(part)));
        keys.push(("split.count".to_owned(), number(parts)));
        keys.push(("split.tensors.count".to_owned(), number(tensors.len())));
        let mut file = Vec::new();
        let alignment = write_directory(&mut file, &keys, own).unwrap();
        for (index, new) in own.iter().enumerate() {
            let bytes = source.bytes(part * each + index).unwrap();
            assert_eq!(bytes.len(), new.bytes(), "{}", new.name);
            file.extend_from_slice(&bytes);
            file.resize(file.len().next_multiple_of(alignment), 0);
        }
        std::fs::write(path(part), file).unwrap();
    }
    path(0)
}

/// Every folder with a tiny model.
fn folders() -> Vec<PathBuf> {
    let all = std::fs::read_dir(testdata().join("tiny")).unwrap();
    let mut folders: Vec<_> = all.map(|entry| entry.unwrap().path()).collect();
    folders.retain(|path| path.is_dir());
    assert!(folders.len() >= 22, "{} tiny models", folders.len());
    folders
}

/// Bits of the logits of a tiny model's longest sequence.
fn run(path: &Path, ids: &[u32]) -> Vec<Vec<u32>> {
    let file = Arc::new(ModelFile::open(path).unwrap());
    let model = load(&file, Isa::best(), 2, KvType::F32);
    bits(&all_logits(&model, ids, ids.len()))
}

fn run_file(file: &Gguf, ids: &[u32]) -> Vec<Vec<u32>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    std::fs::write(&path, file.build()).unwrap();
    run(&path, ids)
}

#[test]
fn experts_in_tensors_of_their_own_give_the_same_bits() {
    let ids: Vec<u32> = (0..40).map(|id| id * 11 % 500).collect();
    assert!(run_file(&twin("mixtral", true), &ids) == run_file(&twin("mixtral", false), &ids));
}

#[test]
fn packed_experts_give_the_same_bits_in_both_formats() {
    let path = testdata().join("tiny/gpt_oss_mxfp4");
    let ids = u32s(&arrays(&path.join("reference.safetensors"))["ids.2"].1);
    assert!(run(&path, &ids) == run_file(&twin("gpt_oss_mxfp4", false), &ids));
}

#[test]
fn a_folder_is_written_as_such_files_are_and_gives_the_same_bits() {
    let mut wrong = Vec::new();
    for path in folders() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let ids = u32s(&arrays(&path.join("reference.safetensors"))["ids.2"].1);
        let folder = tempfile::tempdir().unwrap();
        let source = ModelFile::open(&path).unwrap();
        let export = Export::of(&source, Vec::new()).unwrap();
        let gguf = write(&export, folder.path(), 1);
        let plain = folder.path().join("twin.gguf");
        std::fs::write(&plain, twin(name, false).build()).unwrap();
        let (own, twin) = (ModelFile::open(&gguf).unwrap(), ModelFile::open(&plain).unwrap());
        assert_eq!(Config::of(&own).unwrap(), Config::of(&twin).unwrap(), "{name}");
        assert_eq!(own.tensors().len(), twin.tensors().len(), "{name}");
        for entry in twin.tensors() {
            let (own, twin) = (own.tensor(&entry.name), twin.tensor(&entry.name));
            assert!(own == twin, "{name}: {}", entry.name);
        }
        let want = run(&path, &ids);
        // One part, and several; any of them stands for all.
        let parts = 2 + ids.len() % 2;
        write(&export, folder.path(), parts);
        let last = folder.path().join(format!("m-{parts:05}-of-{parts:05}.gguf"));
        if want != run(&gguf, &ids) || want != run(&last, &ids) {
            wrong.push(name.to_owned());
        }
    }
    assert!(wrong.is_empty(), "other bits: {wrong:?}");
}

/// What is said of a folder whose config has this value at this key.
fn check_refused(name: &str, key: &str, value: Value, want: &str) {
    let from = testdata().join("tiny").join(name);
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(from.join("model.safetensors"), folder.path().join("model.safetensors")).unwrap();
    let config = std::fs::read(from.join("config.json")).unwrap();
    let mut config: Value = serde_json::from_slice(&config).unwrap();
    config[key] = value;
    std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    let file = ModelFile::open(folder.path()).unwrap();
    let error = Export::of(&file, Vec::new()).unwrap_err();
    let sentence = files::sentence(&error);
    assert!(sentence.contains(want), "{sentence:?} does not say {want:?}");
}

#[test]
fn what_a_gguf_file_cannot_say_is_refused_by_its_name() {
    check_refused("llama", "hidden_act", "gelu_pytorch_tanh".into(), "`hidden_act` is Gelu, which");
    let half = Value::from(0.5);
    check_refused("llama", "partial_rotary_factor", half, "`partial_rotary_factor` is 8, which");
    let all = Value::from(vec![1; 5]);
    check_refused("smollm3", "no_rope_layers", all, "`no_rope_layers` is 1 for layer 3, which");
    check_refused("llama", "num_hidden_layers", 1.into(), "belongs to no part of architecture");
    check_refused("llama", "num_hidden_layers", 9.into(), "layers.2.input_layernorm.weight` is mi");
    check_refused("llama", "intermediate_size", 8.into(), ", the config says [8, ");
}

#[test]
fn a_twin_without_one_of_its_tensors_is_refused_by_its_name() {
    let mut random = Random(5);
    for (name, part) in [
        ("phi3", "attn_qkv.weight"),
        ("qwen3", "attn_q_norm.weight"),
        ("olmo2", "post_ffw_norm.weight"),
        ("gpt_oss", "attn_sinks.weight"),
        ("mixtral", "ffn_gate_exps.weight"),
    ] {
        let mut file = twin(name, false);
        let layer = random.below(2);
        let wanted = format!("blk.{layer}.{part}");
        let before = file.tensors.len();
        file.tensors.retain(|entry| !entry.windows(wanted.len()).any(|w| w == wanted.as_bytes()));
        assert_eq!(file.tensors.len() + 1, before, "{name} has {wanted}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.gguf");
        std::fs::write(&path, file.build()).unwrap();
        let file = Arc::new(ModelFile::open(&path).unwrap());
        let settings =
            causeway_model::Settings { context_len: None, kv_type: KvType::F32, threads: 1 };
        let kernels = causeway_kernels::Kernels::best();
        let error = causeway_model::Model::load(file, settings, kernels).unwrap_err();
        let sentence = files::sentence(&error);
        assert!(sentence.contains(&wanted), "{sentence:?} does not name {wanted}");
    }
}
