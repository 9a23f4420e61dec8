//! A Hugging Face `config.json` to `Config`: the format's names stop here.

use serde_json::Value;

use crate::config::{Experts, root_scale};
use crate::families::Family;
use crate::rope::{RopeConfig, RopeScaling, long_magnitude, to_f32, yarn_magnitude};
use crate::{Activation, Config, ConfigError, LayerConfig, Shape};

/// The layers that read everything, and those that read a window, as files call them.
const GLOBAL: &str = "full_attention";
const LOCAL: &str = "sliding_attention";

/// A JSON object and the names of what is in it.
#[derive(Clone, Copy)]
struct Keys<'a>(&'a Value);

impl<'a> Keys<'a> {
    /// The value, where it is there and not null.
    fn at(self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    fn wrong(key: &str, value: &Value, wanted: &'static str) -> ConfigError {
        ConfigError::Value { key: key.to_owned(), value: value.to_string(), wanted }
    }

    fn missing(key: &str) -> ConfigError {
        ConfigError::Missing { key: key.to_owned() }
    }

    fn size(self, key: &str) -> Result<Option<usize>, ConfigError> {
        let Some(value) = self.at(key) else { return Ok(None) };
        let size = value.as_u64().and_then(|value| usize::try_from(value).ok());
        size.map(Some).ok_or_else(|| Self::wrong(key, value, "a whole number"))
    }

    fn wanted_size(self, key: &str) -> Result<usize, ConfigError> {
        self.size(key)?.ok_or_else(|| Self::missing(key))
    }

    fn number(self, key: &str) -> Result<Option<f32>, ConfigError> {
        let Some(value) = self.at(key) else { return Ok(None) };
        value.as_f64().map(rounded).map(Some).ok_or_else(|| Self::wrong(key, value, "a number"))
    }

    fn wanted_number(self, key: &str) -> Result<f32, ConfigError> {
        self.number(key)?.ok_or_else(|| Self::missing(key))
    }

    fn text(self, key: &str) -> Result<Option<&'a str>, ConfigError> {
        let Some(value) = self.at(key) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| Self::wrong(key, value, "a string"))
    }

    fn flag(self, key: &str) -> Result<Option<bool>, ConfigError> {
        let Some(value) = self.at(key) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| Self::wrong(key, value, "true or false"))
    }

    /// A list with an entry for each layer.
    fn list(self, key: &str, len: usize) -> Result<Option<Vec<&'a Value>>, ConfigError> {
        let Some(value) = self.at(key) else { return Ok(None) };
        let list = value.as_array().filter(|list| list.len() == len);
        let list = list.ok_or_else(|| Self::wrong(key, value, "a list with an entry a layer"))?;
        Ok(Some(list.iter().collect()))
    }

    fn numbers(self, key: &str) -> Result<Vec<f32>, ConfigError> {
        let value = self.at(key).ok_or_else(|| Self::missing(key))?;
        let wrong = || Self::wrong(key, value, "a list of numbers");
        let list = value.as_array().ok_or_else(wrong)?;
        list.iter().map(|one| one.as_f64().map(rounded).ok_or_else(wrong)).collect()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "config numbers are rounded once")]
fn rounded(number: f64) -> f32 {
    number as f32
}

/// Whether the file says that input and output share their embedding.
pub(crate) fn is_tied(config: &Value) -> Option<bool> {
    config.get("tie_word_embeddings").and_then(Value::as_bool)
}

/// The family by a file's `model_type`.
pub(crate) fn family(json: &Value) -> Result<Family, ConfigError> {
    let model_type = Keys(json).text("model_type")?.ok_or_else(|| Keys::missing("model_type"))?;
    Family::find(model_type, |family| family.hugging_face)
}

/// Reads `config.json`.
pub(crate) fn config(json: &Value) -> Result<Config, ConfigError> {
    let (keys, family) = (Keys(json), family(json)?);
    refuse_unknown_variants(keys, &family)?;
    let shape = shape(keys)?;
    let mut ropes = vec![rope(keys, &shape, GLOBAL, 10_000.0)?];
    if let Some(base) = family.local_base {
        ropes.push(rope(keys, &shape, LOCAL, base)?);
    }
    let embedding_root =
        if family.scales_embedding { to_f32(shape.hidden_dim).sqrt() } else { 1.0 };
    let by_scalar = keys.number("query_pre_attn_scalar")?.map(|scalar| 1.0 / scalar.sqrt());
    let (score_cap, logit_cap) = family.soft_caps;
    // A cap that is written as null is none.
    let cap = |key: &str, default: f32| match json.get(key) {
        None => Ok(default),
        Some(_) => keys.number(key).map(Option::unwrap_or_default),
    };
    Ok(Config {
        architecture: family.hugging_face.to_owned(),
        norm_eps: keys.wanted_number("rms_norm_eps")?,
        activation: activation(keys, &family)?,
        embedding_scale: keys.number("embedding_multiplier")?.unwrap_or(embedding_root),
        attention_scale: keys
            .number("attention_multiplier")?
            .or(by_scalar)
            .unwrap_or_else(|| root_scale(shape.head_dim)),
        residual_scale: keys.number("residual_multiplier")?.unwrap_or(1.0),
        logit_divisor: keys.number("logits_scaling")?.unwrap_or(1.0),
        score_cap: cap("attn_logit_softcapping", score_cap)?,
        logit_cap: cap("final_logit_softcapping", logit_cap)?,
        norms: family.norms,
        head_norms: family.head_norms,
        has_sinks: family.has_sinks,
        layers: layers(keys, &family, shape.n_layers)?,
        experts: experts(keys, &family, &shape)?,
        norm_offset: family.norm_offset,
        pairs_interleaved: false,
        ropes,
        shape,
    })
}

/// Fields that would change the arithmetic in a way that is not computed here.
fn refuse_unknown_variants(keys: Keys<'_>, family: &Family) -> Result<(), ConfigError> {
    if let Some(value) = keys.at("quantization_config") {
        let method = value.get("quant_method").and_then(Value::as_str);
        if !(family.has_sinks && method == Some("mxfp4")) {
            return Err(Keys::wrong("quantization_config", value, "null"));
        }
    }
    for key in ["use_bidirectional_attention", "use_sliding_window"] {
        if keys.flag(key)? == Some(true) {
            return Err(Keys::wrong(key, &Value::Bool(true), "false"));
        }
    }
    for (key, wanted, only) in [("swiglu_limit", 7.0, "7"), ("swiglu_alpha", 1.702, "1.702")] {
        if let Some(value) = keys.at(key).filter(|value| value.as_f64() != Some(wanted)) {
            return Err(Keys::wrong(key, value, only));
        }
    }
    Ok(())
}

fn shape(keys: Keys<'_>) -> Result<Shape, ConfigError> {
    let (hidden_dim, n_heads) =
        (keys.wanted_size("hidden_size")?, keys.wanted_size("num_attention_heads")?);
    if n_heads == 0 {
        return Err(ConfigError::Size { name: "head count", value: 0, most: hidden_dim });
    }
    let n_layers = keys.wanted_size("num_hidden_layers")?;
    if n_layers > 1_024 {
        return Err(ConfigError::Size { name: "layer count", value: n_layers, most: 1_024 });
    }
    Ok(Shape {
        vocab_size: keys.wanted_size("vocab_size")?,
        hidden_dim,
        n_layers,
        n_heads,
        n_kv_heads: keys.size("num_key_value_heads")?.unwrap_or(n_heads),
        head_dim: keys.size("head_dim")?.unwrap_or(hidden_dim / n_heads),
        ffn_dim: keys.wanted_size("intermediate_size")?,
        context_len: keys.wanted_size("max_position_embeddings")?,
    })
}

fn activation(keys: Keys<'_>, family: &Family) -> Result<Activation, ConfigError> {
    let hidden = keys.text("hidden_activation")?;
    let name = if hidden.is_some() { hidden } else { keys.text("hidden_act")? };
    match name {
        None => Ok(family.activation),
        Some("silu") if family.activation == Activation::ClampedSwiglu => Ok(family.activation),
        Some("silu") => Ok(Activation::Silu),
        Some("gelu_pytorch_tanh") => Ok(Activation::Gelu),
        Some(other) => Err(ConfigError::Value {
            key: "hidden_act".to_owned(),
            value: format!("`{other}`"),
            wanted: "silu or gelu_pytorch_tanh",
        }),
    }
}

/// One RoPE, from `rope_parameters` (newer files, by layer type where there are several) or
/// from a base and `rope_scaling` (older ones, where scaling is of the global layers).
fn rope(
    keys: Keys<'_>,
    shape: &Shape,
    layer_type: &str,
    default_base: f32,
) -> Result<RopeConfig, ConfigError> {
    let parameters = keys.at("rope_parameters");
    let own = parameters.map(|all| all.get(layer_type).unwrap_or(all));
    let (base, scaling) = match own {
        Some(own) => (Keys(own).number("rope_theta")?, own),
        None if layer_type == LOCAL => (keys.number("rope_local_base_freq")?, &Value::Null),
        None => (keys.number("rope_theta")?, keys.at("rope_scaling").unwrap_or(&Value::Null)),
    };
    let scaling = Keys(scaling);
    let partial = scaling.number("partial_rotary_factor")?;
    let partial = partial.or(keys.number("partial_rotary_factor")?).unwrap_or(1.0);
    if !(partial > 0.0 && partial <= 1.0) {
        return Err(ConfigError::Number { name: "partial rotary factor", value: partial });
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part of a head size, rounded down"
    )]
    let dims = (to_f32(shape.head_dim) * partial) as usize;
    let plain = RopeConfig::plain(base.unwrap_or(default_base), dims);
    scaled(plain, scaling, keys, shape.context_len)
}

/// The RoPE as its scaling says.
fn scaled(
    plain: RopeConfig,
    scaling: Keys<'_>,
    keys: Keys<'_>,
    context_len: usize,
) -> Result<RopeConfig, ConfigError> {
    const ORIGINAL: &str = "original_max_position_embeddings";
    let kind = scaling.text("rope_type")?;
    let kind = if kind.is_some() { kind } else { scaling.text("type")? }.unwrap_or("default");
    let original = scaling.size(ORIGINAL)?.or(keys.size(ORIGINAL)?).unwrap_or(context_len);
    let attention_factor = scaling.number("attention_factor")?;
    let (scaling, magnitude) = match kind {
        "default" => (RopeScaling::None, 1.0),
        "linear" => (RopeScaling::Linear { factor: scaling.wanted_number("factor")? }, 1.0),
        "llama3" => {
            let factor = scaling.wanted_number("factor")?;
            let low = scaling.wanted_number("low_freq_factor")?;
            let high = scaling.wanted_number("high_freq_factor")?;
            (RopeScaling::Llama3 { factor, low, high, original }, 1.0)
        }
        "yarn" => {
            let factor = scaling.wanted_number("factor")?;
            let fast = scaling.number("beta_fast")?.unwrap_or(32.0);
            let slow = scaling.number("beta_slow")?.unwrap_or(1.0);
            let truncate = scaling.flag("truncate")?.unwrap_or(true);
            let fitted = match (scaling.number("mscale")?, scaling.number("mscale_all_dim")?) {
                (Some(m), Some(all)) if m != 0.0 && all != 0.0 => {
                    yarn_magnitude(factor, m) / yarn_magnitude(factor, all)
                }
                _ => yarn_magnitude(factor, 1.0),
            };
            (RopeScaling::Yarn { factor, original, fast, slow, truncate }, fitted)
        }
        "longrope" | "su" => {
            let short = scaling.numbers("short_factor")?;
            let long = scaling.numbers("long_factor")?;
            let stretch = to_f32(context_len) / to_f32(original.max(1));
            (RopeScaling::LongRope { short, long, original }, long_magnitude(stretch, original))
        }
        "dynamic" => {
            let wanted = "a kind fixed at load: dynamic NTK turns keys by a request's length";
            let value = "`dynamic`".to_owned();
            return Err(ConfigError::Value { key: "rope_type".to_owned(), value, wanted });
        }
        other => {
            return Err(ConfigError::Value {
                key: "rope_type".to_owned(),
                value: format!("`{other}`"),
                wanted: "default, linear, llama3, yarn or longrope",
            });
        }
    };
    Ok(RopeConfig { scaling, magnitude: attention_factor.unwrap_or(magnitude), ..plain })
}

/// Windows by `layer_types`, or by the family's pattern where a file has no list; layers without
/// RoPE; and those whose feed-forward part is experts.
fn layers(
    keys: Keys<'_>,
    family: &Family,
    n_layers: usize,
) -> Result<Vec<LayerConfig>, ConfigError> {
    let window = keys.size("sliding_window")?.filter(|_| family.has_windows);
    let types = keys.list("layer_types", n_layers)?;
    let every = keys.size("sliding_window_pattern")?.unwrap_or(family.global_every);
    let no_rope = keys.list("no_rope_layers", n_layers)?;
    let no_rope_every = keys.size("no_rope_layer_interval")?.unwrap_or(family.no_rope_every);
    let dense = keys.at("mlp_only_layers").and_then(Value::as_array);
    let sparse_step = keys.size("decoder_sparse_step")?.unwrap_or(1).max(1);
    let layer = |index: usize| {
        let is_local = match types.as_ref().map(|types| types[index]) {
            None => family.is_local(index, every),
            Some(kind) if kind == LOCAL => true,
            Some(kind) if kind == GLOBAL => false,
            Some(kind) => {
                let wanted = "sliding_attention or full_attention";
                return Err(Keys::wrong("layer_types", kind, wanted));
            }
        };
        let turns = match &no_rope {
            Some(list) => list[index].as_u64() != Some(0),
            None => no_rope_every == 0 || !(index + 1).is_multiple_of(no_rope_every),
        };
        if is_local && window.is_none() && family.global_every > 0 {
            return Err(Keys::missing("sliding_window"));
        }
        let rope = usize::from(is_local && family.local_base.is_some());
        let is_dense =
            dense.is_some_and(|list| list.iter().any(|v| v.as_u64() == Some(index as u64)));
        let has_experts =
            family.experts.is_some() && !is_dense && (index + 1).is_multiple_of(sparse_step);
        Ok(LayerConfig {
            window: window.filter(|_| is_local),
            rope: turns.then_some(rope),
            has_experts,
        })
    };
    (0..n_layers).map(layer).collect()
}

fn experts(keys: Keys<'_>, family: &Family, shape: &Shape) -> Result<Option<Experts>, ConfigError> {
    let Some(names) = family.experts else { return Ok(None) };
    let count = keys.size("num_local_experts")?.or(keys.size("num_experts")?);
    Ok(Some(Experts {
        count: count.ok_or_else(|| Keys::missing("num_local_experts"))?,
        used: keys.wanted_size("num_experts_per_tok")?,
        ffn_dim: keys.size("moe_intermediate_size")?.unwrap_or(shape.ffn_dim),
        renormalised: keys.flag("norm_topk_prob")?.unwrap_or(names.renormalises),
    }))
}
