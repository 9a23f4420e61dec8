//! What a model file says of itself: fields, sizes, types and values.

use std::collections::BTreeMap;

use causeway_model::{Config, Shape};
use causeway_weights::{Format, ModelFile, TensorEntry, Value};
use serde_json::Value as Json;

use super::{Check, told};

/// Bytes between two tensors that alignment explains.
const ALIGNMENT_MAX: usize = 4096;

/// Weights below which fewer than four bits each are known to hurt.
const SMALL_ELEMENTS: usize = 2_000_000_000;

pub(super) fn checks(file: &ModelFile) -> Vec<Check> {
    vec![config(file), rope(file), bytes(file), types(file), values(file), sampling(file)]
}

fn config(file: &ModelFile) -> Check {
    let config = match Config::of(file) {
        Ok(config) => config,
        Err(error) => return Check::wrong("architecture", told(error)),
    };
    let Shape {
        vocab_size,
        hidden_dim,
        n_layers,
        n_heads,
        n_kv_heads,
        head_dim,
        ffn_dim,
        context_len,
        ..
    } = config.shape;
    Check::ok(
        "architecture",
        format!(
            "{}: {n_layers} layers, hidden {hidden_dim}, {n_heads} heads of {head_dim}, \
             {n_kv_heads} KV heads, feed-forward {ffn_dim}, vocabulary {vocab_size}, context \
             {context_len}",
            config.architecture
        ),
    )
}

/// Positions beyond those that were trained are made by scaling, which costs quality.
fn rope(file: &ModelFile) -> Check {
    let kind = number_or_word(file, "rope.scaling.type", &["rope_scaling", "rope_parameters"]);
    let factor = number_or_word(file, "rope.scaling.factor", &["rope_scaling", "rope_parameters"]);
    let trained = number_or_word(
        file,
        "rope.scaling.original_context_length",
        &["rope_scaling", "rope_parameters"],
    );
    match kind.or_else(|| factor.clone()) {
        None => Check::ok("positions", "as trained"),
        Some(kind) if kind == "none" || kind == "default" => Check::ok("positions", "as trained"),
        Some(kind) => {
            let factor = factor.map(|factor| format!(" by {factor}")).unwrap_or_default();
            let trained = trained.map(|n| format!(", {n} positions trained")).unwrap_or_default();
            Check::unusual("positions", format!("RoPE is scaled ({kind}{factor}){trained}"))
        }
    }
}

/// A field by the end of its GGUF key, or by its own name inside an object of `config.json`.
fn number_or_word(file: &ModelFile, key: &str, objects: &[&str]) -> Option<String> {
    if let Some(config) = file.config() {
        let names: &[&str] = match key.rsplit('.').next().unwrap_or(key) {
            "type" => &["rope_type", "type"],
            "original_context_length" => &["original_max_position_embeddings"],
            _ => &["factor"],
        };
        let fields = objects.iter().flat_map(|object| names.iter().map(move |n| (object, n)));
        let found = fields.map(|(object, name)| &config[*object][*name]);
        return found.into_iter().find(|value| !value.is_null()).map(|value| match value {
            Json::String(text) => text.clone(),
            other => other.to_string(),
        });
    }
    let found = file.metadata().iter().find(|(name, _)| {
        name.strip_suffix(key).is_some_and(|architecture| architecture.ends_with('.'))
    });
    found.map(|(_, value)| match value {
        Value::String(text) => text.clone(),
        Value::F32(number) => number.to_string(),
        other => other.as_integer().map_or_else(String::new, |n| n.to_string()),
    })
}

/// Bytes between and behind the tensors that none of them accounts for.
fn bytes(file: &ModelFile) -> Check {
    let mut places: Vec<(usize, usize, usize)> =
        file.tensors().map(|t| (t.shard, t.offset, t.bytes)).collect();
    places.sort_unstable();
    let gaps = places.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    let unclaimed = gaps.map(|pair| pair[1].1.saturating_sub(pair[0].1 + pair[0].2));
    let mut stray: usize = unclaimed.filter(|gap| *gap > ALIGNMENT_MAX).sum();
    let shards = places.last().map_or(0, |last| last.0 + 1);
    if let (1, Some(last)) = (shards, places.last()) {
        let behind = usize::try_from(file.bytes()).unwrap_or(usize::MAX) - (last.1 + last.2);
        stray += if behind > ALIGNMENT_MAX { behind } else { 0 };
    }
    let tensors: usize = places.iter().map(|place| place.2).sum();
    let said = format!("{} bytes, {tensors} of them in {} tensors", file.bytes(), places.len());
    if stray > 0 {
        return Check::unusual("size", format!("{said}; {stray} bytes belong to no tensor"));
    }
    Check::ok("size", said)
}

fn types(file: &ModelFile) -> Check {
    let mut by_type: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let (mut elements, mut all_bytes) = (0_usize, 0_usize);
    for TensorEntry { dtype, shape, bytes, .. } in file.tensors() {
        let total = by_type.entry(dtype.name()).or_default();
        *total = (total.0 + 1, total.1 + bytes);
        elements = elements.saturating_add(shape.iter().product());
        all_bytes += bytes;
    }
    let each =
        by_type.iter().map(|(name, (count, bytes))| format!("{count} {name} ({bytes} bytes)"));
    let bits = all_bytes as f64 * 8.0 / elements.max(1) as f64;
    let said = format!("{}; {bits:.2} bits a weight", each.collect::<Vec<_>>().join(", "));
    if bits < 4.0 && elements < SMALL_ELEMENTS {
        let why = format!("{said}: below 4 bits a model of {elements} weights loses much");
        return Check::unusual("types", why);
    }
    Check::ok("types", said)
}

/// Tensors with values that are no numbers, or with nothing but zeros.
fn values(file: &ModelFile) -> Check {
    let (mut bad, mut zero) = (Vec::new(), Vec::new());
    for entry in file.tensors().filter(|entry| entry.dtype.is_readable()) {
        let Some(tensor) = file.tensor(&entry.name) else { continue };
        match tensor.summary() {
            Err(error) => return Check::wrong("values", told(error)),
            Ok(summary) if summary.non_finite > 0 => bad.push(entry.name.as_str()),
            // Biases are zero where a family has them and one model does not use them.
            Ok(summary) if summary.rms == 0.0 && entry.shape.len() > 1 => {
                zero.push(entry.name.as_str());
            }
            Ok(_) => {}
        }
        file.release(tensor.bytes);
    }
    if let Some(first) = bad.first() {
        let said = format!("{} tensors with values that are no numbers: `{first}`", bad.len());
        return Check::wrong("values", said);
    }
    if let Some(first) = zero.first() {
        let said = format!("{} matrices are nothing but zeros: `{first}`", zero.len());
        return Check::wrong("values", said);
    }
    Check::ok("values", "all finite, no matrix of zeros")
}

/// What the file says about how its answers are drawn.
fn sampling(file: &ModelFile) -> Check {
    let is_there = match file.format() {
        Format::Gguf { .. } => {
            file.metadata().iter().any(|(key, _)| key.starts_with("general.sampling."))
        }
        Format::Safetensors => {
            file.folder().is_some_and(|folder| folder.join("generation_config.json").exists())
        }
    };
    if is_there {
        Check::ok("sampling", "the file says how answers are drawn")
    } else {
        let said = "the file does not say how answers are drawn: its card may";
        Check::unusual("sampling", said)
    }
}
