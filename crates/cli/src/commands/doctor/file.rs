//! What a model file says of itself: fields, sizes, types and values.

use std::collections::BTreeMap;

use causeway_model::{Config, RopeScaling, Shape};
use causeway_session::Defaults;
use causeway_weights::{ModelFile, TensorEntry};

use super::{Check, told};

/// Bytes between two tensors that alignment explains.
const ALIGNMENT_MAX: usize = 4096;

/// Weights below which fewer than four bits each are known to hurt.
const SMALL_ELEMENTS: usize = 2_000_000_000;

pub(super) fn checks(file: &ModelFile) -> Vec<Check> {
    let mut checks = match Config::of(file) {
        Ok(config) => vec![architecture(&config), fields(&config), positions(&config)],
        Err(error) => vec![Check::wrong("architecture", told(error))],
    };
    checks.extend([bytes(file), types(file), values(file), sampling(file)]);
    checks
}

fn architecture(config: &Config) -> Check {
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

/// What else sets the model apart, where it is not as most models have it.
fn fields(config: &Config) -> Check {
    let bases: Vec<String> = config.ropes.iter().map(|rope| rope.base.to_string()).collect();
    let mut said = vec![format!("norm epsilon {}", config.norm_eps)];
    said.extend((!bases.is_empty()).then(|| format!("RoPE base {}", bases.join(" and "))));
    let layers = &config.layers;
    let windows: Vec<usize> = layers.iter().filter_map(|layer| layer.window).collect();
    if let Some(window) = windows.first() {
        said.push(format!("a window of {window} in {} of {} layers", windows.len(), layers.len()));
    }
    let without = layers.iter().filter(|layer| layer.rope.is_none()).count();
    said.extend((without > 0).then(|| format!("{without} layers without RoPE")));
    if let Some(experts) = &config.experts {
        said.push(format!("{} of {} experts a token", experts.used, experts.count));
    }
    Check::ok("fields", said.join(", "))
}

/// Positions beyond those that were trained are made by scaling, which costs quality.
fn positions(config: &Config) -> Check {
    let context = config.shape.context_len;
    let reaches = config.ropes.iter().filter_map(|rope| reach(&rope.scaling));
    let reached = reaches.fold(f64::INFINITY, f64::min);
    if reached < context as f64 {
        let said = format!("the context is {context}, and RoPE's scaling reaches {reached:.0}");
        return Check::unusual("positions", said);
    }
    let scaled = config.ropes.iter().find_map(|rope| match &rope.scaling {
        RopeScaling::None => None,
        RopeScaling::Linear { factor } => Some((format!("linear by {factor}"), None)),
        RopeScaling::Llama3 { factor, original, .. } => {
            Some((format!("llama3 by {factor}"), Some(*original)))
        }
        RopeScaling::Yarn { factor, original, .. } => {
            Some((format!("yarn by {factor}"), Some(*original)))
        }
        RopeScaling::LongRope { original, .. } => Some(("longrope".to_owned(), Some(*original))),
        RopeScaling::Factors(_) => Some(("each pair by its own factor".to_owned(), None)),
    });
    let Some((how, trained)) = scaled else { return Check::ok("positions", "as trained") };
    let trained = trained.map(|count| format!(", {count} positions trained")).unwrap_or_default();
    Check::unusual("positions", format!("RoPE is scaled ({how}){trained}"))
}

/// The positions that scaling was meant for, where it says so.
fn reach(scaling: &RopeScaling) -> Option<f64> {
    match scaling {
        RopeScaling::Llama3 { factor, original, .. }
        | RopeScaling::Yarn { factor, original, .. } => Some(f64::from(*factor) * *original as f64),
        _ => None,
    }
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
    match Defaults::of_file(file) {
        Ok(defaults) if defaults.method().is_some() => {
            Check::ok("sampling", "the file says how tokens are taken")
        }
        Ok(_) => {
            let said = "the file does not say how tokens are taken: its card may";
            Check::unusual("sampling", said)
        }
        Err(error) => Check::wrong("sampling", told(error)),
    }
}
