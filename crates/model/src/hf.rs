//! A Hugging Face `config.json` to `Config`: the format's names stop here.

use serde_json::Value;

use crate::{Activation, Config, ConfigError, LayerConfig, RopeConfig, Shape};

/// Architectures read from a Hugging Face folder, by `model_type`.
const KNOWN: &str = "llama, qwen2 and gemma3_text";
/// Every sixth layer of gemma3 reads everything, unless the file says otherwise.
const GEMMA3_PATTERN: usize = 6;

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
        #[expect(clippy::cast_possible_truncation, reason = "config numbers are rounded once")]
        let number = value.as_f64().map(|number| number as f32);
        number.map(Some).ok_or_else(|| Self::wrong(key, value, "a number"))
    }

    fn text(self, key: &str) -> Result<Option<&'a str>, ConfigError> {
        let Some(value) = self.at(key) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| Self::wrong(key, value, "a string"))
    }

    fn flag(self, key: &str) -> Result<bool, ConfigError> {
        let Some(value) = self.at(key) else { return Ok(false) };
        value.as_bool().ok_or_else(|| Self::wrong(key, value, "true or false"))
    }
}

/// Whether the file says that input and output share their embedding.
pub(crate) fn is_tied(config: &Value) -> bool {
    config.get("tie_word_embeddings").and_then(Value::as_bool).unwrap_or(false)
}

/// Reads `config.json`.
pub(crate) fn config(json: &Value) -> Result<Config, ConfigError> {
    let keys = Keys(json);
    let model_type = keys.text("model_type")?.ok_or_else(|| Keys::missing("model_type"))?;
    let gemma = match model_type {
        "llama" | "qwen2" => false,
        "gemma3_text" => true,
        other => {
            return Err(ConfigError::Architecture { name: other.to_owned(), known: KNOWN });
        }
    };
    refuse_unknown_variants(keys)?;
    let shape = shape(keys)?;
    let global = rope(keys, if gemma { "full_attention" } else { "" }, "rope_theta")?;
    let activation = activation(keys)?;
    let norm_eps = keys.number("rms_norm_eps")?.ok_or_else(|| Keys::missing("rms_norm_eps"))?;
    #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^24")]
    let (head_dim, hidden_dim) = (shape.head_dim as f32, shape.hidden_dim as f32);
    let plain = Config {
        architecture: model_type.to_owned(),
        shape,
        norm_eps,
        activation,
        embedding_scale: 1.0,
        attention_scale: 1.0 / head_dim.sqrt(),
        ropes: vec![global],
        layers: vec![LayerConfig { window: None, rope: 0 }; shape.n_layers],
        norm_offset: 0.0,
        pairs_interleaved: false,
    };
    if !gemma {
        return Ok(plain);
    }
    let scalar = keys.number("query_pre_attn_scalar")?.unwrap_or(head_dim);
    Ok(Config {
        embedding_scale: hidden_dim.sqrt(),
        attention_scale: 1.0 / scalar.sqrt(),
        ropes: vec![global, rope(keys, "sliding_attention", "rope_local_base_freq")?],
        layers: windowed_layers(keys, shape.n_layers)?,
        norm_offset: 1.0,
        ..plain
    })
}

/// Fields that would change the arithmetic in a way that is not computed here.
fn refuse_unknown_variants(keys: Keys<'_>) -> Result<(), ConfigError> {
    for key in ["attn_logit_softcapping", "final_logit_softcapping", "quantization_config"] {
        if let Some(value) = keys.at(key) {
            return Err(Keys::wrong(key, value, "null"));
        }
    }
    for key in ["use_bidirectional_attention", "use_sliding_window"] {
        if keys.flag(key)? {
            return Err(Keys::wrong(key, &Value::Bool(true), "false"));
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

fn activation(keys: Keys<'_>) -> Result<Activation, ConfigError> {
    let hidden = keys.text("hidden_activation")?;
    let name = if hidden.is_some() { hidden } else { keys.text("hidden_act")? };
    match name.unwrap_or("silu") {
        "silu" => Ok(Activation::Silu),
        "gelu_pytorch_tanh" => Ok(Activation::Gelu),
        other => Err(ConfigError::Value {
            key: "hidden_act".to_owned(),
            value: format!("`{other}`"),
            wanted: "silu or gelu_pytorch_tanh",
        }),
    }
}

/// One RoPE, from `rope_parameters` (newer files, by layer type where there are several) or
/// from `base_key` and `rope_scaling` (older ones, where scaling is of the global layers).
fn rope(keys: Keys<'_>, layer_type: &str, base_key: &str) -> Result<RopeConfig, ConfigError> {
    let parameters = keys.at("rope_parameters");
    let own = parameters.map(|all| all.get(layer_type).unwrap_or(all));
    let (base, scaling) = match own {
        Some(own) => (Keys(own).number("rope_theta")?, Some(own)),
        None if layer_type == "sliding_attention" => (keys.number(base_key)?, None),
        None => (keys.number(base_key)?, keys.at("rope_scaling")),
    };
    let base = base.unwrap_or(10_000.0);
    let Some(scaling) = scaling else { return Ok(RopeConfig { base, factor: 1.0 }) };
    let scaling = Keys(scaling);
    let kind = scaling.text("rope_type")?;
    let kind = if kind.is_some() { kind } else { scaling.text("type")? };
    match kind.unwrap_or("default") {
        "default" => Ok(RopeConfig { base, factor: 1.0 }),
        "linear" => {
            let factor = scaling.number("factor")?.ok_or_else(|| Keys::missing("factor"))?;
            Ok(RopeConfig { base, factor })
        }
        other => Err(ConfigError::Value {
            key: "rope_type".to_owned(),
            value: format!("`{other}`"),
            wanted: "default or linear",
        }),
    }
}

/// Windows by `layer_types`, or by the pattern where a file has no list.
fn windowed_layers(keys: Keys<'_>, n_layers: usize) -> Result<Vec<LayerConfig>, ConfigError> {
    let window = keys.wanted_size("sliding_window")?;
    let layer =
        |local: bool| LayerConfig { window: local.then_some(window), rope: usize::from(local) };
    let Some(types) = keys.at("layer_types") else {
        let pattern = keys.size("sliding_window_pattern")?.unwrap_or(GEMMA3_PATTERN).max(1);
        let local = |index: usize| !(index + 1).is_multiple_of(pattern);
        return Ok((0..n_layers).map(|index| layer(local(index))).collect());
    };
    let wrong = || Keys::wrong("layer_types", types, "a type for every layer");
    let types = types.as_array().filter(|list| list.len() == n_layers).ok_or_else(wrong)?;
    let kind = |value: &Value| match value.as_str() {
        Some("sliding_attention") => Ok(layer(true)),
        Some("full_attention") => Ok(layer(false)),
        _ => Err(Keys::wrong("layer_types", value, "sliding_attention or full_attention")),
    };
    types.iter().map(kind).collect()
}
