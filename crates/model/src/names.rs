//! What each file format calls each tensor: one table a format.

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
    QueryNorm,
    KeyNorm,
    AttentionOutput,
    PostAttentionNorm,
    FfnNorm,
    Gate,
    Up,
    Down,
    PostFfnNorm,
}

/// The names of one format and architecture.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names {
    hugging_face: bool,
    /// Four norms a layer, two of them after attention and feed-forward (gemma).
    sandwich: bool,
}

impl Names {
    pub(crate) fn new(hugging_face: bool, architecture: &str) -> Self {
        Self { hugging_face, sandwich: architecture.starts_with("gemma3") }
    }

    pub(crate) fn global(self, tensor: Global) -> &'static str {
        match (self.hugging_face, tensor) {
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
        if self.hugging_face {
            format!("model.layers.{layer}.{}.{kind}", self.hugging_face_part(part))
        } else {
            format!("blk.{layer}.{}.{kind}", gguf_part(part))
        }
    }

    fn hugging_face_part(self, part: Part) -> &'static str {
        match part {
            Part::AttentionNorm => "input_layernorm",
            Part::Query => "self_attn.q_proj",
            Part::Key => "self_attn.k_proj",
            Part::Value => "self_attn.v_proj",
            Part::QueryNorm => "self_attn.q_norm",
            Part::KeyNorm => "self_attn.k_norm",
            Part::AttentionOutput => "self_attn.o_proj",
            // With four norms a layer the one before the feed-forward part has its own name.
            Part::PostAttentionNorm if self.sandwich => "post_attention_layernorm",
            Part::PostAttentionNorm => "absent",
            Part::FfnNorm if self.sandwich => "pre_feedforward_layernorm",
            Part::FfnNorm => "post_attention_layernorm",
            Part::Gate => "mlp.gate_proj",
            Part::Up => "mlp.up_proj",
            Part::Down => "mlp.down_proj",
            Part::PostFfnNorm => "post_feedforward_layernorm",
        }
    }
}

fn gguf_part(part: Part) -> &'static str {
    match part {
        Part::AttentionNorm => "attn_norm",
        Part::Query => "attn_q",
        Part::Key => "attn_k",
        Part::Value => "attn_v",
        Part::QueryNorm => "attn_q_norm",
        Part::KeyNorm => "attn_k_norm",
        Part::AttentionOutput => "attn_output",
        Part::PostAttentionNorm => "post_attention_norm",
        Part::FfnNorm => "ffn_norm",
        Part::Gate => "ffn_gate",
        Part::Up => "ffn_up",
        Part::Down => "ffn_down",
        Part::PostFfnNorm => "post_ffw_norm",
    }
}
