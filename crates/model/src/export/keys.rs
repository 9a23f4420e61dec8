//! A config as the keys of a GGUF file, or the refusal of what such a file cannot say.

use causeway_weights::{Array, Value};

use super::ExportError;
use crate::config::root_scale;
use crate::families::Family;
use crate::read::is_every;
use crate::rope::{RopeConfig, RopeScaling, to_f32, yarn_magnitude};
use crate::{Config, Shape};

/// Keys in the making, all of one architecture.
struct Keys {
    architecture: &'static str,
    pairs: Vec<(String, Value)>,
}

impl Keys {
    fn push(&mut self, key: &str, value: Value) {
        self.pairs.push((format!("{}.{key}", self.architecture), value));
    }

    fn size(&mut self, key: &str, size: usize) {
        self.push(key, u32::try_from(size).map_or(Value::U64(size as u64), Value::U32));
    }

    fn number(&mut self, key: &str, number: f32) {
        self.push(key, Value::F32(number));
    }

    /// A number that need not be said where it is what readers take anyway.
    fn number_unless(&mut self, key: &str, number: f32, default: f32) {
        if number.to_bits() != default.to_bits() {
            self.number(key, number);
        }
    }

    fn unsayable(&self, key: &'static str, value: impl ToString) -> ExportError {
        let (value, architecture) = (value.to_string(), self.architecture);
        ExportError::Unsayable { key, value, architecture }
    }
}

/// Every key that the forward pass reads, the architecture first.
pub(super) fn keys(config: &Config, family: &Family) -> Result<Vec<(String, Value)>, ExportError> {
    let name = Value::String(family.gguf.to_owned());
    let pairs = vec![("general.architecture".to_owned(), name)];
    let mut keys = Keys { architecture: family.gguf, pairs };
    if config.activation != family.activation {
        return Err(keys.unsayable("hidden_act", format!("{:?}", config.activation)));
    }
    sizes(&mut keys, config);
    numbers(&mut keys, config, family);
    windows(&mut keys, config, family)?;
    rope(&mut keys, config, family)?;
    Ok(keys.pairs)
}

fn sizes(keys: &mut Keys, config: &Config) {
    let Shape {
        vocab_size,
        hidden_dim,
        n_layers,
        n_heads,
        n_kv_heads,
        head_dim,
        ffn_dim,
        context_len,
    } = config.shape;
    for (key, size) in [
        ("vocab_size", vocab_size),
        ("block_count", n_layers),
        ("context_length", context_len),
        ("embedding_length", hidden_dim),
        ("feed_forward_length", ffn_dim),
        ("attention.head_count", n_heads),
        ("attention.head_count_kv", n_kv_heads),
        ("attention.key_length", head_dim),
        ("attention.value_length", head_dim),
        ("rope.dimension_count", config.ropes[0].dims),
    ] {
        keys.size(key, size);
    }
    if let Some(experts) = config.experts {
        keys.size("expert_count", experts.count);
        keys.size("expert_used_count", experts.used);
        keys.size("expert_feed_forward_length", experts.ffn_dim);
        if !experts.renormalised {
            keys.push("expert_weights_norm", Value::Bool(false));
        }
    }
}

fn numbers(keys: &mut Keys, config: &Config, family: &Family) {
    let Shape { hidden_dim, n_layers, n_heads, head_dim, .. } = config.shape;
    let root = if family.scales_embedding { to_f32(hidden_dim).sqrt() } else { 1.0 };
    let is_large = n_layers >= family.large_from;
    let scaled_by = if is_large { hidden_dim / n_heads } else { head_dim };
    keys.number("attention.layer_norm_rms_epsilon", config.norm_eps);
    keys.number_unless("embedding_scale", config.embedding_scale, root);
    keys.number_unless("attention.scale", config.attention_scale, root_scale(scaled_by));
    keys.number_unless("residual_scale", config.residual_scale, 1.0);
    keys.number_unless("logit_scale", config.logit_divisor, 1.0);
    let (score_cap, logit_cap) = (config.score_cap, config.logit_cap);
    for (key, cap, default) in [
        ("attn_logit_softcapping", score_cap, family.soft_caps.0),
        ("final_logit_softcapping", logit_cap, family.soft_caps.1),
    ] {
        // The families that have caps say them, for readers that have no default.
        if cap != 0.0 || default != 0.0 {
            keys.number(key, cap);
        }
    }
}

/// Windows, and which layers turn queries and keys: a family's pattern, or a flag a layer.
fn windows(keys: &mut Keys, config: &Config, family: &Family) -> Result<(), ExportError> {
    let window = config.layers.iter().find_map(|layer| layer.window);
    let is_patterned = family.global_every > 0;
    if window.is_some() || is_patterned {
        keys.size("attention.sliding_window", window.unwrap_or(config.shape.context_len));
        let flags: Vec<bool> = config.layers.iter().map(|layer| layer.window.is_some()).collect();
        let is_own =
            |(layer, is_local): (usize, &bool)| *is_local != is_every(family.global_every, layer);
        if !flags.iter().enumerate().all(is_own) {
            let flags = Value::Array(Array::Bool(flags));
            keys.push("attention.sliding_window_pattern", flags);
        }
    }
    for (index, layer) in config.layers.iter().enumerate() {
        if layer.rope.is_some() == is_every(family.no_rope_every, index) {
            let value = format!("{} for layer {index}", u8::from(layer.rope.is_some()));
            return Err(keys.unsayable("no_rope_layers", value));
        }
    }
    Ok(())
}

/// RoPE of the layers that read everything, and the base of those with a window.
fn rope(keys: &mut Keys, config: &Config, family: &Family) -> Result<(), ExportError> {
    let RopeConfig { base, dims, scaling, magnitude } = &config.ropes[0];
    if family.pairs_interleaved && *dims != config.shape.head_dim {
        return Err(keys.unsayable("partial_rotary_factor", dims));
    }
    keys.number("rope.freq_base", *base);
    if let Some(local) = config.ropes.get(1) {
        if *local != RopeConfig::plain(local.base, *dims) {
            return Err(keys.unsayable("rope_type", "scaled in the layers with a window"));
        }
        keys.number("rope.freq_base_swa", local.base);
    }
    let mut own_magnitude = 1.0;
    let kind = |kind: &str| Value::String(kind.to_owned());
    match scaling {
        // The factors of the second and third are tensors.
        RopeScaling::None | RopeScaling::Llama3 { .. } | RopeScaling::Factors(_) => {}
        RopeScaling::LongRope { original, .. } => {
            keys.size("rope.scaling.original_context_length", *original);
        }
        RopeScaling::Linear { factor } => {
            keys.push("rope.scaling.type", kind("linear"));
            keys.number("rope.scaling.factor", *factor);
        }
        RopeScaling::Yarn { factor, original, fast, slow, truncate } => {
            // The one family that does not round its bounds cannot say so in these keys.
            if *truncate == family.has_sinks {
                return Err(keys.unsayable("truncate", truncate));
            }
            keys.push("rope.scaling.type", kind("yarn"));
            keys.number("rope.scaling.factor", *factor);
            keys.size("rope.scaling.original_context_length", *original);
            keys.number_unless("rope.scaling.yarn_beta_fast", *fast, 32.0);
            keys.number_unless("rope.scaling.yarn_beta_slow", *slow, 1.0);
            own_magnitude = yarn_magnitude(*factor, 1.0);
        }
    }
    keys.number_unless("rope.scaling.attn_factor", magnitude / own_magnitude, 1.0);
    Ok(())
}
