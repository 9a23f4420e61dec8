//! GGUF metadata to `Config`: the format's names stop here.

use causeway_weights::{Metadata, ModelFile};

use crate::config::DIM_MAX;
use crate::{Activation, Config, ConfigError, LayerConfig, RopeConfig, Shape};

/// Architectures read from GGUF.
const KNOWN: &str = "llama, qwen2 and gemma3";
/// Every sixth layer of gemma3 reads everything; the files carry no key for it.
const GEMMA3_PATTERN: usize = 6;
/// RoPE base of gemma3's windowed layers; the files carry no key for it.
const GEMMA3_LOCAL_BASE: f32 = 10_000.0;

/// Keys under the architecture's own prefix.
struct Keys<'a> {
    metadata: &'a Metadata,
    prefix: String,
}

impl Keys<'_> {
    fn name(&self, key: &str) -> String {
        format!("{}.{key}", self.prefix)
    }

    fn size(&self, key: &str) -> Result<Option<usize>, ConfigError> {
        Ok(self.metadata.u32(&self.name(key))?.map(|value| value as usize))
    }

    fn wanted_size(&self, key: &str) -> Result<usize, ConfigError> {
        self.size(key)?.ok_or_else(|| ConfigError::Missing { key: self.name(key) })
    }

    fn number(&self, key: &str) -> Result<Option<f32>, ConfigError> {
        Ok(self.metadata.f32(&self.name(key))?)
    }

    /// Linear RoPE factor; other kinds of scaling are refused by name.
    fn rope_factor(&self) -> Result<f32, ConfigError> {
        let key = "rope.scaling.type";
        let kind = self.metadata.string(&self.name(key))?.unwrap_or("none");
        match kind {
            "none" => Ok(1.0),
            "linear" => Ok(self.number("rope.scaling.factor")?.unwrap_or(1.0)),
            other => Err(ConfigError::Value {
                key: self.name(key),
                value: format!("`{other}`"),
                wanted: "none or linear",
            }),
        }
    }
}

/// Reads the config of a GGUF file.
pub(crate) fn config(file: &ModelFile) -> Result<Config, ConfigError> {
    let metadata = file.metadata();
    let architecture = metadata
        .string("general.architecture")?
        .ok_or_else(|| ConfigError::Missing { key: "general.architecture".to_owned() })?;
    if !matches!(architecture, "llama" | "qwen2" | "gemma3") {
        let name = architecture.to_owned();
        return Err(ConfigError::Architecture { name, known: KNOWN });
    }
    let keys = Keys { metadata, prefix: architecture.to_owned() };
    let shape = shape(&keys, file)?;
    let rotated = keys.size("rope.dimension_count")?.unwrap_or(shape.head_dim);
    if rotated != shape.head_dim {
        return Err(ConfigError::Value {
            key: keys.name("rope.dimension_count"),
            value: rotated.to_string(),
            wanted: "the head size",
        });
    }
    let base = keys.number("rope.freq_base")?.unwrap_or(10_000.0);
    let rope = RopeConfig { base, factor: keys.rope_factor()? };
    let key = "attention.layer_norm_rms_epsilon";
    let norm_eps = keys.number(key)?.ok_or_else(|| ConfigError::Missing { key: keys.name(key) })?;
    #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^24")]
    let (head_dim, hidden_dim) = (shape.head_dim as f32, shape.hidden_dim as f32);
    let plain = Config {
        architecture: architecture.to_owned(),
        shape,
        norm_eps,
        activation: Activation::Silu,
        embedding_scale: 1.0,
        attention_scale: 1.0 / head_dim.sqrt(),
        ropes: vec![rope],
        layers: vec![LayerConfig { window: None, rope: 0 }; shape.n_layers],
        norm_offset: 0.0,
        pairs_interleaved: architecture == "llama",
    };
    if architecture != "gemma3" {
        return Ok(plain);
    }
    let window = keys.wanted_size("attention.sliding_window")?;
    let pattern = keys.size("attention.sliding_window_pattern")?.unwrap_or(GEMMA3_PATTERN);
    if pattern == 0 {
        return Err(ConfigError::Value {
            key: keys.name("attention.sliding_window_pattern"),
            value: pattern.to_string(),
            wanted: "at least 1",
        });
    }
    let layer = |index: usize| {
        let local = !(index + 1).is_multiple_of(pattern);
        LayerConfig { window: local.then_some(window), rope: usize::from(local) }
    };
    Ok(Config {
        activation: Activation::Gelu,
        embedding_scale: hidden_dim.sqrt(),
        ropes: vec![rope, RopeConfig { base: GEMMA3_LOCAL_BASE, factor: 1.0 }],
        layers: (0..shape.n_layers).map(layer).collect(),
        ..plain
    })
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
