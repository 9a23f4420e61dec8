//! What each file format calls each tensor: one table a format.

use crate::families::{Family, Norms};

/// A tensor that belongs to no layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Global {
    Embedding,
    OutputNorm,
    Output,
}

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

/// The names of one format and family.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names {
    pub(crate) is_hugging_face: bool,
    pub(crate) family: Family,
}

impl Names {
    pub(crate) fn global(self, tensor: Global) -> &'static str {
        match (self.is_hugging_face, tensor) {
            (false, Global::Embedding) => "token_embd.weight",
            (false, Global::OutputNorm) => "output_norm.weight",
            (false, Global::Output) => "output.weight",
            (true, Global::Embedding) => "model.embed_tokens.weight",
            (true, Global::OutputNorm) => "model.norm.weight",
            (true, Global::Output) => "lm_head.weight",
        }
    }

    /// The full name; `kind` is `weight` or `bias`.
    pub(crate) fn layer(self, layer: usize, part: Part, kind: &str) -> String {
        match (self.is_hugging_face, part) {
            (true, Part::Sinks) => format!("model.layers.{layer}.self_attn.sinks"),
            (true, _) => format!("model.layers.{layer}.{}.{kind}", self.hugging_face_part(part)),
            (false, _) => format!("blk.{layer}.{}.{kind}", self.gguf_part(part)),
        }
    }

    /// A part of one expert, or of all where they lie in one tensor.
    pub(crate) fn expert(self, layer: usize, expert: usize, part: Part, kind: &str) -> String {
        let Some(names) = self.family.experts.filter(|_| self.is_hugging_face) else {
            return format!("blk.{layer}.{}_exps.{kind}", self.gguf_part(part));
        };
        let own = match part {
            Part::Gate => names.gate,
            Part::Up => names.up,
            _ => names.down,
        };
        let all = format!("model.layers.{layer}.{}", names.experts);
        match (names.is_stacked, kind) {
            (true, "bias") => format!("{all}.{own}_bias"),
            (true, _) => format!("{all}.{own}"),
            (false, _) => format!("{all}.{expert}.{own}.{kind}"),
        }
    }

    fn hugging_face_part(self, part: Part) -> &'static str {
        // Where norms follow the parts, the one before the feed-forward part has a name of its own.
        let norms_after = self.family.norms != Norms::Before;
        match part {
            Part::AttentionNorm => "input_layernorm",
            Part::Query => "self_attn.q_proj",
            Part::Key => "self_attn.k_proj",
            Part::Value => "self_attn.v_proj",
            Part::Qkv => "self_attn.qkv_proj",
            Part::QueryNorm => "self_attn.q_norm",
            Part::KeyNorm => "self_attn.k_norm",
            Part::Sinks => "self_attn.sinks",
            Part::AttentionOutput => "self_attn.o_proj",
            Part::PostAttentionNorm => "post_attention_layernorm",
            Part::FfnNorm if norms_after => "pre_feedforward_layernorm",
            Part::FfnNorm => "post_attention_layernorm",
            Part::Gate => "mlp.gate_proj",
            Part::Up => "mlp.up_proj",
            Part::GateUp => "mlp.gate_up_proj",
            Part::Down => "mlp.down_proj",
            Part::PostFfnNorm => "post_feedforward_layernorm",
            Part::Router => self.family.experts.map_or("mlp.gate", |names| names.router),
        }
    }

    fn gguf_part(self, part: Part) -> &'static str {
        match part {
            Part::AttentionNorm => "attn_norm",
            Part::Query => "attn_q",
            Part::Key => "attn_k",
            Part::Value => "attn_v",
            Part::Qkv => "attn_qkv",
            Part::QueryNorm => "attn_q_norm",
            Part::KeyNorm => "attn_k_norm",
            Part::Sinks => "attn_sinks",
            Part::AttentionOutput => "attn_output",
            // gpt-oss files call the norm before the experts so.
            Part::FfnNorm if self.family.has_sinks => "post_attention_norm",
            Part::PostAttentionNorm => "post_attention_norm",
            Part::FfnNorm => "ffn_norm",
            Part::Gate => "ffn_gate",
            Part::Up | Part::GateUp => "ffn_up",
            Part::Down => "ffn_down",
            Part::PostFfnNorm => "post_ffw_norm",
            Part::Router => "ffn_gate_inp",
        }
    }
}
