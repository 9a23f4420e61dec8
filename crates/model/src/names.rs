//! What each file format calls each tensor: one table.

use causeway_weights::{Format, ModelFile};

use crate::families::{Family, Norms};

/// A tensor of one layer, without `.weight` or `.bias`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    AttentionNorm,
    Query,
    Key,
    Value,
    /// Query, key and value in one.
    Qkv,
    QueryNorm,
    KeyNorm,
    Sinks,
    AttentionOutput,
    PostAttentionNorm,
    FfnNorm,
    Gate,
    Up,
    /// Gate and up in one.
    GateUp,
    Down,
    PostFfnNorm,
    Router,
}

/// What stands before a folder's names, those of the layers and that of the output: in models
/// that see too, their text has a part of its own.
const PREFIXES: [(&str, &str); 3] =
    [("model.", ""), ("language_model.model.", "language_model."), ("model.language_model.", "")];

/// The names of one file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names {
    pub(crate) is_folder: bool,
    pub(crate) family: Family,
    /// Each expert has tensors of its own.
    pub(crate) experts_apart: bool,
    prefixes: (&'static str, &'static str),
}

impl Names {
    pub(crate) fn of(file: &ModelFile, family: Family) -> Self {
        let is_folder = file.format() == Format::Safetensors;
        let experts_apart = match family.experts {
            Some(names) if is_folder => !names.is_stacked,
            // So older files have them.
            _ => file.tensor("blk.0.ffn_gate.0.weight").is_some(),
        };
        let names = |prefixes| Self { is_folder, family, experts_apart, prefixes };
        let fits = |names: &Self| file.tensor(&names.embedding()).is_some();
        PREFIXES.into_iter().map(names).find(fits).unwrap_or_else(|| names(PREFIXES[0]))
    }

    pub(crate) fn embedding(&self) -> String {
        self.global("token_embd", (self.prefixes.0, "embed_tokens"))
    }

    pub(crate) fn output_norm(&self) -> String {
        self.global("output_norm", (self.prefixes.0, "norm"))
    }

    pub(crate) fn output(&self) -> String {
        self.global("output", (self.prefixes.1, "lm_head"))
    }

    fn global(&self, gguf: &str, (prefix, hugging_face): (&str, &str)) -> String {
        if self.is_folder {
            format!("{prefix}{hugging_face}.weight")
        } else {
            format!("{gguf}.weight")
        }
    }

    /// Whether a tensor is none of the text's: what sees in a model that sees too.
    pub(crate) fn is_not_of_text(&self, name: &str) -> bool {
        let (layers, _) = self.prefixes;
        layers != PREFIXES[0].0 && !name.starts_with(layers) && name != self.output()
    }

    /// The full name; `kind` is `weight` or `bias`.
    pub(crate) fn layer(&self, layer: usize, part: Part, kind: &str) -> String {
        let (gguf, hugging_face) = self.part(part);
        match part {
            _ if !self.is_folder => format!("blk.{layer}.{gguf}.{kind}"),
            Part::Sinks => format!("{}layers.{layer}.{hugging_face}", self.prefixes.0),
            _ => format!("{}layers.{layer}.{hugging_face}.{kind}", self.prefixes.0),
        }
    }

    /// A part of one expert, or of all where they lie in one tensor.
    pub(crate) fn expert(&self, layer: usize, expert: usize, part: Part, kind: &str) -> String {
        let Some(names) = self.family.experts.filter(|_| self.is_folder) else {
            let own = self.part(part).0;
            let apart = format!("blk.{layer}.{own}.{expert}.{kind}");
            return if self.experts_apart {
                apart
            } else {
                format!("blk.{layer}.{own}_exps.{kind}")
            };
        };
        let own = match part {
            Part::Gate => names.gate,
            Part::Up => names.up,
            _ => names.down,
        };
        let all = format!("{}layers.{layer}.{}", self.prefixes.0, names.experts);
        match (names.is_stacked, kind) {
            (true, "bias") => format!("{all}.{own}_bias"),
            (true, _) => format!("{all}.{own}"),
            (false, _) => format!("{all}.{expert}.{own}.{kind}"),
        }
    }

    /// What GGUF files and folders call a part.
    fn part(&self, part: Part) -> (&'static str, &'static str) {
        match part {
            Part::AttentionNorm => ("attn_norm", "input_layernorm"),
            Part::Query => ("attn_q", "self_attn.q_proj"),
            Part::Key => ("attn_k", "self_attn.k_proj"),
            Part::Value => ("attn_v", "self_attn.v_proj"),
            Part::Qkv => ("attn_qkv", "self_attn.qkv_proj"),
            Part::QueryNorm => ("attn_q_norm", "self_attn.q_norm"),
            Part::KeyNorm => ("attn_k_norm", "self_attn.k_norm"),
            Part::Sinks => ("attn_sinks", "self_attn.sinks"),
            Part::AttentionOutput => ("attn_output", "self_attn.o_proj"),
            Part::PostAttentionNorm => ("post_attention_norm", "post_attention_layernorm"),
            // Where norms follow the parts too, the one before has a name of its own.
            Part::FfnNorm if self.family.norms != Norms::Before => {
                ("ffn_norm", "pre_feedforward_layernorm")
            }
            Part::FfnNorm if self.family.has_sinks => {
                ("post_attention_norm", "post_attention_layernorm")
            }
            Part::FfnNorm => ("ffn_norm", "post_attention_layernorm"),
            Part::Gate => ("ffn_gate", "mlp.gate_proj"),
            Part::Up => ("ffn_up", "mlp.up_proj"),
            Part::GateUp => ("ffn_up", "mlp.gate_up_proj"),
            Part::Down => ("ffn_down", "mlp.down_proj"),
            Part::PostFfnNorm => ("post_ffw_norm", "post_feedforward_layernorm"),
            Part::Router => {
                ("ffn_gate_inp", self.family.experts.map_or("mlp.gate", |names| names.router))
            }
        }
    }
}
