//! What each file format calls each tensor: one table.

use causeway_weights::{Format, ModelFile};

use crate::families::{Family, Norms};
use crate::relay::{Order, Place};

/// A tensor of one layer: what GGUF files and folders call it, without `.weight` or `.bias`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part(&'static str, &'static str);

impl Part {
    pub(crate) const ATTENTION_NORM: Self = Self("attn_norm", "input_layernorm");
    pub(crate) const QUERY: Self = Self("attn_q", "self_attn.q_proj");
    pub(crate) const KEY: Self = Self("attn_k", "self_attn.k_proj");
    pub(crate) const VALUE: Self = Self("attn_v", "self_attn.v_proj");
    /// Query, key and value in one.
    pub(crate) const QKV: Self = Self("attn_qkv", "self_attn.qkv_proj");
    pub(crate) const QUERY_NORM: Self = Self("attn_q_norm", "self_attn.q_norm");
    pub(crate) const KEY_NORM: Self = Self("attn_k_norm", "self_attn.k_norm");
    pub(crate) const SINKS: Self = Self("attn_sinks", "self_attn.sinks");
    pub(crate) const ATTENTION_OUTPUT: Self = Self("attn_output", "self_attn.o_proj");
    pub(crate) const POST_ATTENTION_NORM: Self =
        Self("post_attention_norm", "post_attention_layernorm");
    pub(crate) const GATE: Self = Self("ffn_gate", "mlp.gate_proj");
    pub(crate) const UP: Self = Self("ffn_up", "mlp.up_proj");
    /// Gate and up in one.
    pub(crate) const GATE_UP: Self = Self("ffn_up", "mlp.gate_up_proj");
    pub(crate) const DOWN: Self = Self("ffn_down", "mlp.down_proj");
    pub(crate) const POST_FFN_NORM: Self = Self("post_ffw_norm", "post_feedforward_layernorm");

    /// The norm before the feed-forward part.
    pub(crate) fn ffn_norm(family: &Family) -> Self {
        match family.norms {
            Norms::Before if family.has_sinks => Self::POST_ATTENTION_NORM,
            // The only one behind attention is named by where it stands.
            Norms::Before => Self("ffn_norm", "post_attention_layernorm"),
            Norms::After | Norms::Both => Self("ffn_norm", "pre_feedforward_layernorm"),
        }
    }

    pub(crate) fn router(family: &Family) -> Self {
        Self("ffn_gate_inp", family.experts.map_or("mlp.gate", |names| names.router))
    }

    /// Every part but those of experts; of two that folders call the same, the family's comes
    /// first.
    pub(crate) fn all(family: &Family) -> Vec<Self> {
        let (ffn_norm, router) = (Self::ffn_norm(family), Self::router(family));
        let attention = [Self::QUERY, Self::KEY, Self::VALUE, Self::QKV, Self::ATTENTION_OUTPUT];
        let feed_forward = [Self::GATE, Self::UP, Self::GATE_UP, Self::DOWN, router];
        let norms = [Self::QUERY_NORM, Self::KEY_NORM, Self::SINKS, Self::ATTENTION_NORM];
        let others = [ffn_norm, Self::POST_ATTENTION_NORM, Self::POST_FFN_NORM];
        [&attention[..], &norms, &others, &feed_forward].concat()
    }
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

    /// Those of a GGUF file of this family, as newer ones are.
    pub(crate) fn of_gguf(family: Family) -> Self {
        Self { is_folder: false, family, experts_apart: false, prefixes: PREFIXES[0] }
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
        let Part(gguf, hugging_face) = part;
        match part {
            _ if !self.is_folder => format!("blk.{layer}.{gguf}.{kind}"),
            Part::SINKS => format!("{}layers.{layer}.{hugging_face}", self.prefixes.0),
            _ => format!("{}layers.{layer}.{hugging_face}.{kind}", self.prefixes.0),
        }
    }

    /// Which rows of a tensor with all experts are theirs of this part: where folders have such,
    /// gate and up come by turns in one.
    pub(crate) fn of_experts(&self, part: Part) -> Place {
        let is_stacked = self.is_folder && !self.experts_apart;
        let step = if is_stacked && part != Part::DOWN { 2 } else { 1 };
        let order = if is_stacked { Order::Across } else { Order::OneByOne };
        Place { first: usize::from(step == 2 && part == Part::UP), step, order }
    }

    /// A part of one expert, or of all where they lie in one tensor.
    pub(crate) fn expert(&self, layer: usize, expert: usize, part: Part, kind: &str) -> String {
        let Some(names) = self.family.experts.filter(|_| self.is_folder) else {
            let own = part.0;
            let apart = format!("blk.{layer}.{own}.{expert}.{kind}");
            return if self.experts_apart {
                apart
            } else {
                format!("blk.{layer}.{own}_exps.{kind}")
            };
        };
        let own = match part {
            Part::GATE => names.gate,
            Part::UP => names.up,
            _ => names.down,
        };
        let all = format!("{}layers.{layer}.{}", self.prefixes.0, names.experts);
        match (names.is_stacked, kind) {
            (true, "bias") => format!("{all}.{own}_bias"),
            (true, _) => format!("{all}.{own}"),
            (false, _) => format!("{all}.{expert}.{own}.{kind}"),
        }
    }
}
