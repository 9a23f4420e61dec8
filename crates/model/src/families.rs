//! What sets families of models apart that their files do not say: one entry for each.

use crate::names::Part;
use crate::{Activation, ConfigError};

/// Where a layer norms the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Norms {
    /// What goes into attention and feed-forward part (llama).
    Before,
    /// What comes out of them, before it is added (olmo2).
    After,
    /// Both (gemma).
    Both,
}

/// Whether queries and keys are normed before they are turned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadNorms {
    None,
    /// Each head by itself (qwen3).
    Each,
    /// All heads together (olmo2).
    Whole,
}

/// Which matrices always have a bias; others have one where their file has it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Biases {
    AsFile,
    QueryKeyValue,
    Everywhere,
}

impl Biases {
    pub(crate) fn always(self, part: Part) -> bool {
        match self {
            Self::AsFile => false,
            Self::QueryKeyValue => matches!(part, Part::QUERY | Part::KEY | Part::VALUE),
            Self::Everywhere => true,
        }
    }
}

/// Parts of a Hugging Face layer with experts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExpertNames {
    pub(crate) router: &'static str,
    pub(crate) experts: &'static str,
    pub(crate) gate: &'static str,
    pub(crate) up: &'static str,
    pub(crate) down: &'static str,
    /// All experts lie in one tensor for each part, gate and up in one by turns.
    pub(crate) is_stacked: bool,
    /// Shares are a softmax over the chosen experts, where a file does not say.
    pub(crate) renormalises: bool,
}

/// One family; a number or flag that a file does say comes before what stands here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Family {
    /// Hugging Face's `model_type`.
    pub(crate) hugging_face: &'static str,
    /// GGUF's `general.architecture`.
    pub(crate) gguf: &'static str,
    pub(crate) norms: Norms,
    pub(crate) head_norms: HeadNorms,
    pub(crate) activation: Activation,
    /// Added to norm weights of Hugging Face files.
    pub(crate) norm_offset: f32,
    /// Query and key rows of GGUF files lie in interleaved pairs.
    pub(crate) pairs_interleaved: bool,
    /// Query, key and value lie in one tensor, gate and up in another.
    pub(crate) is_fused: bool,
    /// Embeddings are multiplied by the root of the hidden size.
    pub(crate) scales_embedding: bool,
    /// The window that its files name is read through.
    pub(crate) has_windows: bool,
    /// Every so many layers one reads everything and the others a window; 0 where all are alike.
    pub(crate) global_every: usize,
    /// RoPE base of the layers with a window, where it is another.
    pub(crate) local_base: Option<f32>,
    /// Every so many layers one goes without RoPE; 0 where none does.
    pub(crate) no_rope_every: usize,
    /// Soft caps of attention scores and of logits; 0 for none.
    pub(crate) soft_caps: (f32, f32),
    /// Layers from which on queries are scaled by hidden size over heads in GGUF files, which do
    /// not say so: the largest gemma models.
    pub(crate) large_from: usize,
    pub(crate) has_sinks: bool,
    pub(crate) experts: Option<ExpertNames>,
    pub(crate) biases: Biases,
    /// What a `config.json` means that leaves these keys out, as JSON.
    pub(crate) defaults: &'static str,
}

/// A family like llama, but for its names.
const PLAIN: Family = Family {
    hugging_face: "",
    gguf: "",
    norms: Norms::Before,
    head_norms: HeadNorms::None,
    activation: Activation::Silu,
    norm_offset: 0.0,
    pairs_interleaved: false,
    is_fused: false,
    scales_embedding: false,
    has_windows: false,
    global_every: 0,
    local_base: None,
    no_rope_every: 0,
    soft_caps: (0.0, 0.0),
    large_from: usize::MAX,
    has_sinks: false,
    experts: None,
    biases: Biases::AsFile,
    defaults: "{}",
};

/// What the families share whose GGUF files are called llama.
const LLAMA: Family = Family { gguf: "llama", pairs_interleaved: true, has_windows: true, ..PLAIN };

/// What both gemma families share.
const GEMMA: Family = Family {
    norms: Norms::Both,
    activation: Activation::Gelu,
    norm_offset: 1.0,
    scales_embedding: true,
    has_windows: true,
    ..PLAIN
};

/// Every family that can be computed.
pub(crate) const FAMILIES: [Family; 13] = [
    Family { hugging_face: "llama", ..LLAMA },
    Family { hugging_face: "mistral", ..LLAMA },
    Family {
        hugging_face: "mixtral",
        experts: Some(ExpertNames {
            router: "block_sparse_moe.gate",
            experts: "block_sparse_moe.experts",
            gate: "w1",
            up: "w3",
            down: "w2",
            is_stacked: false,
            renormalises: true,
        }),
        ..LLAMA
    },
    Family { hugging_face: "qwen2", gguf: "qwen2", biases: Biases::QueryKeyValue, ..PLAIN },
    Family { hugging_face: "qwen3", gguf: "qwen3", head_norms: HeadNorms::Each, ..PLAIN },
    Family {
        hugging_face: "qwen3_moe",
        gguf: "qwen3moe",
        head_norms: HeadNorms::Each,
        experts: Some(ExpertNames {
            router: "mlp.gate",
            experts: "mlp.experts",
            gate: "gate_proj",
            up: "up_proj",
            down: "down_proj",
            is_stacked: false,
            renormalises: false,
        }),
        ..PLAIN
    },
    Family {
        hugging_face: "gemma2",
        gguf: "gemma2",
        global_every: 2,
        soft_caps: (50.0, 30.0),
        large_from: 46,
        ..GEMMA
    },
    Family {
        hugging_face: "gemma3_text",
        gguf: "gemma3",
        head_norms: HeadNorms::Each,
        global_every: 6,
        local_base: Some(10_000.0),
        large_from: 62,
        // Of the sizes that see, the folders name only what sets them apart.
        defaults: r#"{
            "vocab_size": 262208, "num_attention_heads": 8, "num_key_value_heads": 4,
            "head_dim": 256, "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-6,
            "max_position_embeddings": 131072, "rope_theta": 1000000
        }"#,
        ..GEMMA
    },
    Family { hugging_face: "phi3", gguf: "phi3", is_fused: true, has_windows: true, ..PLAIN },
    Family { hugging_face: "granite", gguf: "granite", pairs_interleaved: true, ..PLAIN },
    Family {
        hugging_face: "olmo2",
        gguf: "olmo2",
        norms: Norms::After,
        head_norms: HeadNorms::Whole,
        ..PLAIN
    },
    Family {
        hugging_face: "smollm3",
        gguf: "smollm3",
        pairs_interleaved: true,
        no_rope_every: 4,
        ..PLAIN
    },
    Family {
        hugging_face: "gpt_oss",
        gguf: "gpt-oss",
        activation: Activation::ClampedSwiglu,
        has_windows: true,
        global_every: 2,
        has_sinks: true,
        biases: Biases::Everywhere,
        experts: Some(ExpertNames {
            router: "mlp.router",
            experts: "mlp.experts",
            gate: "gate_up_proj",
            up: "gate_up_proj",
            down: "down_proj",
            is_stacked: true,
            renormalises: true,
        }),
        ..PLAIN
    },
];

impl Family {
    /// The family that one format's files call so.
    ///
    /// # Errors
    /// `ConfigError::Architecture` with all names there are.
    pub(crate) fn find(
        name: &str,
        name_of: fn(&Self) -> &'static str,
    ) -> Result<Self, ConfigError> {
        let found = FAMILIES.iter().find(|family| name_of(family) == name).copied();
        found.ok_or_else(|| {
            let mut known: Vec<&str> = FAMILIES.iter().map(name_of).collect();
            known.dedup();
            ConfigError::Architecture { name: name.to_owned(), known: known.join(", ") }
        })
    }
}
