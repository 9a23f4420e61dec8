//! GGUF metadata to `Config`: the format's names stop here.

use causeway_weights::{Array, Metadata, ModelFile, Tensor, Value};

use crate::config::{DIM_MAX, Experts, root_scale};
use crate::families::Family;
use crate::rope::{RopeConfig, RopeScaling, to_f32, yarn_magnitude};
use crate::{Config, ConfigError, LayerConfig, Shape};

/// Keys under the architecture's own prefix.
struct Keys<'a> {
    metadata: &'a Metadata,
    prefix: String,
}

impl Keys<'_> {
    fn name(&self, key: &str) -> String {
        format!("{}.{key}", self.prefix)
    }

    fn missing(&self, key: &str) -> ConfigError {
        ConfigError::Missing { key: self.name(key) }
    }

    fn size(&self, key: &str) -> Result<Option<usize>, ConfigError> {
        Ok(self.metadata.u32(&self.name(key))?.map(|value| value as usize))
    }

    fn wanted_size(&self, key: &str) -> Result<usize, ConfigError> {
        self.size(key)?.ok_or_else(|| self.missing(key))
    }

    fn number(&self, key: &str) -> Result<Option<f32>, ConfigError> {
        Ok(self.metadata.f32(&self.name(key))?)
    }

    fn wanted_number(&self, key: &str) -> Result<f32, ConfigError> {
        self.number(key)?.ok_or_else(|| self.missing(key))
    }

    fn wrong(&self, key: &str, value: impl ToString, wanted: &'static str) -> ConfigError {
        ConfigError::Value { key: self.name(key), value: value.to_string(), wanted }
    }
}

/// The family by a file's architecture.
pub(crate) fn family(file: &ModelFile) -> Result<Family, ConfigError> {
    let key = "general.architecture";
    let name = file.metadata().string(key)?;
    let name = name.ok_or_else(|| ConfigError::Missing { key: key.to_owned() })?;
    Family::find(name, |family| family.gguf)
}

/// Reads the config of a GGUF file.
pub(crate) fn config(file: &ModelFile) -> Result<Config, ConfigError> {
    let family = family(file)?;
    let keys = Keys { metadata: file.metadata(), prefix: family.gguf.to_owned() };
    refuse_unknown_variants(&keys)?;
    let shape = shape(&keys, file)?;
    let mut ropes = vec![rope(&keys, &family, file, &shape)?];
    if let Some(base) = family.local_base {
        let base = keys.number("rope.freq_base_swa")?.unwrap_or(base);
        ropes.push(RopeConfig::plain(base, ropes[0].dims));
    }
    let embedding_root =
        if family.scales_embedding { to_f32(shape.hidden_dim).sqrt() } else { 1.0 };
    let is_large = shape.n_layers >= family.large_from;
    let scaled_by = if is_large { shape.hidden_dim / shape.n_heads } else { shape.head_dim };
    let (score_cap, logit_cap) = family.soft_caps;
    let layers = layers(&keys, &family, file, shape.n_layers)?;
    Ok(Config {
        architecture: family.gguf.to_owned(),
        norm_eps: keys.wanted_number("attention.layer_norm_rms_epsilon")?,
        activation: family.activation,
        embedding_scale: keys.number("embedding_scale")?.unwrap_or(embedding_root),
        attention_scale: keys.number("attention.scale")?.unwrap_or_else(|| root_scale(scaled_by)),
        residual_scale: keys.number("residual_scale")?.unwrap_or(1.0),
        logit_divisor: keys.number("logit_scale")?.unwrap_or(1.0),
        score_cap: keys.number("attn_logit_softcapping")?.unwrap_or(score_cap),
        logit_cap: keys.number("final_logit_softcapping")?.unwrap_or(logit_cap),
        norms: family.norms,
        head_norms: family.head_norms,
        has_sinks: family.has_sinks,
        experts: experts(&keys, &shape)?.filter(|_| layers.iter().any(|layer| layer.has_experts)),
        // The weights are stored as they are multiplied.
        norm_offset: 0.0,
        pairs_interleaved: family.pairs_interleaved,
        layers,
        ropes,
        shape,
    })
}

/// Keys that would change the arithmetic in a way that is not computed here.
fn refuse_unknown_variants(keys: &Keys<'_>) -> Result<(), ConfigError> {
    for (key, wanted) in [
        ("expert_weights_scale", "1"),
        ("rope.scale_linear", "1: a factor stands in rope.scaling.factor"),
        ("rope.scaling.yarn_attn_factor", "1"),
        ("rope.scaling.yarn_ext_factor", "1"),
    ] {
        if let Some(value) = keys.number(key)?.filter(|value| value.to_bits() != 1f32.to_bits()) {
            return Err(keys.wrong(key, value, wanted));
        }
    }
    let key = "attention.causal";
    if keys.metadata.bool(&keys.name(key))? == Some(false) {
        return Err(keys.wrong(key, false, "true"));
    }
    // 1 is a softmax over all experts, 3 one over the chosen; 2 would be a sigmoid.
    let key = "expert_gating_func";
    match keys.size(key)? {
        None | Some(0 | 1 | 3) => Ok(()),
        Some(other) => Err(keys.wrong(key, other, "1 or 3, a softmax")),
    }
}

/// The RoPE of the layers that read everything.
fn rope(
    keys: &Keys<'_>,
    family: &Family,
    file: &ModelFile,
    shape: &Shape,
) -> Result<RopeConfig, ConfigError> {
    let key = "rope.dimension_count";
    let dims = keys.size(key)?.unwrap_or(shape.head_dim);
    if family.pairs_interleaved && dims != shape.head_dim {
        return Err(keys.wrong(key, dims, "the head size"));
    }
    if dims > shape.head_dim {
        return Err(keys.wrong(key, dims, "at most the head size"));
    }
    let base = keys.number("rope.freq_base")?.unwrap_or(10_000.0);
    let original = keys.size("rope.scaling.original_context_length")?;
    let original = original.unwrap_or(shape.context_len);
    let factors = |name| file.tensor(name).map(|tensor| factors(&tensor)).transpose();
    let own = factors("rope_freqs.weight")?;
    let long = factors("rope_factors_long.weight")?.zip(factors("rope_factors_short.weight")?);
    let key = "rope.scaling.type";
    let kind = keys.metadata.string(&keys.name(key))?.unwrap_or("none");
    let factor = || keys.number("rope.scaling.factor");
    let (scaling, magnitude) = match (kind, own, long) {
        ("none" | "longrope", _, Some((long, short))) => {
            (RopeScaling::LongRope { short, long, original }, 1.0)
        }
        ("none", Some(factors), None) => (RopeScaling::Factors(factors), 1.0),
        ("none", None, None) => (RopeScaling::None, 1.0),
        ("linear", None, None) => (RopeScaling::Linear { factor: factor()?.unwrap_or(1.0) }, 1.0),
        ("yarn", None, None) => {
            let factor = factor()?.ok_or_else(|| keys.missing("rope.scaling.factor"))?;
            let fast = keys.number("rope.scaling.yarn_beta_fast")?.unwrap_or(32.0);
            let slow = keys.number("rope.scaling.yarn_beta_slow")?.unwrap_or(1.0);
            // The one family that does not round its bounds cannot say so in these keys.
            let truncate = !family.has_sinks;
            let scaling = RopeScaling::Yarn { factor, original, fast, slow, truncate };
            (scaling, yarn_magnitude(factor, 1.0))
        }
        ("longrope", _, None) => {
            let key = "rope_factors_long.weight".to_owned();
            return Err(ConfigError::Missing { key });
        }
        (kind, own, _) => {
            let beside = if own.is_some() { " beside rope_freqs.weight" } else { "" };
            let value = format!("`{kind}`{beside}");
            return Err(keys.wrong(key, value, "none, linear, yarn or longrope"));
        }
    };
    let given = keys.number("rope.scaling.attn_factor")?.unwrap_or(1.0);
    Ok(RopeConfig { base, dims, scaling, magnitude: magnitude * given })
}

/// Numbers that frequencies are divided by.
fn factors(tensor: &Tensor<'_>) -> Result<Vec<f32>, ConfigError> {
    tensor.to_f32().map_err(|_| ConfigError::Value {
        key: tensor.name.to_owned(),
        value: tensor.dtype.name().to_owned(),
        wanted: "a type that can be read",
    })
}

/// What each layer reads, and which of them have experts.
fn layers(
    keys: &Keys<'_>,
    family: &Family,
    file: &ModelFile,
    n_layers: usize,
) -> Result<Vec<LayerConfig>, ConfigError> {
    let window = keys.size("attention.sliding_window")?.filter(|_| family.has_windows);
    if window.is_none() && family.global_every > 0 {
        return Err(keys.missing("attention.sliding_window"));
    }
    let key = "attention.sliding_window_pattern";
    // Either a number, or a flag a layer that says whether it reads a window.
    let (every, flags) = match keys.metadata.value(&keys.name(key)) {
        Some(Value::Array(Array::Bool(flags))) => (family.global_every, Some(flags)),
        _ => (keys.size(key)?.unwrap_or(family.global_every), None),
    };
    if every == 0 && family.global_every > 0 {
        return Err(keys.wrong(key, every, "at least 1"));
    }
    let layer = |index: usize| {
        let is_local = match flags {
            None => family.is_local(index, every),
            Some(flags) => *flags.get(index).ok_or_else(|| {
                keys.wrong(key, format!("a list of {}", flags.len()), "a flag for each layer")
            })?,
        };
        let turns = family.no_rope_every == 0 || !(index + 1).is_multiple_of(family.no_rope_every);
        let rope = usize::from(is_local && family.local_base.is_some());
        Ok(LayerConfig {
            window: window.filter(|_| is_local),
            rope: turns.then_some(rope),
            has_experts: file.tensor(&format!("blk.{index}.ffn_gate_inp.weight")).is_some(),
        })
    };
    (0..n_layers).map(layer).collect()
}

fn experts(keys: &Keys<'_>, shape: &Shape) -> Result<Option<Experts>, ConfigError> {
    let Some(count) = keys.size("expert_count")?.filter(|count| *count > 0) else {
        return Ok(None);
    };
    let renormalised = keys.metadata.bool(&keys.name("expert_weights_norm"))?.unwrap_or(true);
    Ok(Some(Experts {
        count,
        used: keys.wanted_size("expert_used_count")?,
        ffn_dim: keys.size("expert_feed_forward_length")?.unwrap_or(shape.ffn_dim),
        renormalised,
    }))
}

fn shape(keys: &Keys<'_>, file: &ModelFile) -> Result<Shape, ConfigError> {
    let hidden_dim = keys.wanted_size("embedding_length")?;
    let n_heads = keys.wanted_size("attention.head_count")?;
    for (name, value) in [("hidden size", hidden_dim), ("head count", n_heads)] {
        if value == 0 {
            return Err(ConfigError::Size { name, value, most: DIM_MAX });
        }
    }
    let n_layers = keys.wanted_size("block_count")?;
    if n_layers > file.tensors().len() {
        let (name, most) = ("layer count", file.tensors().len());
        return Err(ConfigError::Size { name, value: n_layers, most });
    }
    let head_dim = keys.size("attention.key_length")?.unwrap_or(hidden_dim / n_heads);
    let value_dim = keys.size("attention.value_length")?.unwrap_or(head_dim);
    if value_dim != head_dim {
        return Err(ConfigError::Value {
            key: keys.name("attention.value_length"),
            value: value_dim.to_string(),
            wanted: "the length of the keys",
        });
    }
    let embedding = file.tensor("token_embd.weight");
    Ok(Shape {
        vocab_size: embedding.map_or(0, |tensor| tensor.rows()),
        hidden_dim,
        n_layers,
        n_heads,
        n_kv_heads: keys.size("attention.head_count_kv")?.unwrap_or(n_heads),
        head_dim,
        ffn_dim: keys.wanted_size("feed_forward_length")?,
        context_len: keys.wanted_size("context_length")?,
    })
}
