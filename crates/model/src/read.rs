//! A file's fields to `Config`, in either format.

use causeway_weights::ModelFile;
use serde_json::Value as Json;

use crate::config::{Experts, root_scale};
use crate::families::Family;
use crate::fields::{Field, Fields};
use crate::names::{Names, Part};
use crate::rope::{RopeConfig, RopeScaling, long_magnitude, to_f32, yarn_magnitude};
use crate::{Activation, Config, ConfigError, LayerConfig, Shape};

/// The layers that read everything, and those that read a window, as folders call them.
const GLOBAL: &str = "full_attention";
const LOCAL: &str = "sliding_attention";

/// Reads and checks the config of a file of this family.
pub(crate) fn config(
    file: &ModelFile,
    fields: &Fields<'_>,
    family: &Family,
) -> Result<Config, ConfigError> {
    refuse_unknown_variants(fields, family)?;
    let names = Names::of(file, *family);
    let shape = shape(fields, file, &names.embedding())?;
    shape.check()?;
    let mut ropes = vec![rope((fields, file), family, &shape, 10_000.0, GLOBAL)?];
    if let Some(base) = family.local_base {
        ropes.push(rope((fields, file), family, &shape, base, LOCAL)?);
    }
    let number = |field, default| fields.number_or(field, default);
    let by_scalar = fields.number(("", "query_pre_attn_scalar"))?.map(|scalar| 1.0 / scalar.sqrt());
    let is_large = shape.n_layers >= family.large_from;
    let scaled_by = if is_large { shape.hidden_dim / shape.n_heads } else { shape.head_dim };
    let attention_scale = by_scalar.unwrap_or_else(|| root_scale(scaled_by));
    let hidden_root = to_f32(shape.hidden_dim).sqrt();
    let embedding_scale = if family.scales_embedding { hidden_root } else { 1.0 };
    let router = |layer| file.tensor(&names.layer(layer, Part::router(family), "weight")).is_some();
    let routers: Vec<bool> = (0..shape.n_layers).map(router).collect();
    let is_folder = fields.is_folder();
    let architecture = if is_folder { family.hugging_face } else { family.gguf };
    let around = file.config().filter(|root| root.get("text_config").is_some());
    let config = Config {
        architecture: match around.map(|root| &root["model_type"]) {
            Some(whole) => format!("{architecture}, the text part of {whole}"),
            None => architecture.to_owned(),
        },
        norm_eps: fields.wanted_number(("attention.layer_norm_rms_epsilon", "rms_norm_eps"))?,
        activation: activation(fields, family)?,
        embedding_scale: number(("embedding_scale", "embedding_multiplier"), embedding_scale)?,
        attention_scale: number(("attention.scale", "attention_multiplier"), attention_scale)?,
        residual_scale: number(("residual_scale", "residual_multiplier"), 1.0)?,
        logit_divisor: number(("logit_scale", "logits_scaling"), 1.0)?,
        score_cap: fields
            .cap(("attn_logit_softcapping", "attn_logit_softcapping"), family.soft_caps.0)?,
        logit_cap: fields
            .cap(("final_logit_softcapping", "final_logit_softcapping"), family.soft_caps.1)?,
        norms: family.norms,
        head_norms: family.head_norms,
        has_sinks: family.has_sinks,
        layers: layers(fields, family, &routers)?,
        experts: experts(fields, family, &shape)?,
        // GGUF files store norm weights as they are multiplied, and folders rows in halves.
        norm_offset: if is_folder { family.norm_offset } else { 0.0 },
        pairs_interleaved: family.pairs_interleaved && !is_folder,
        ropes,
        shape,
    };
    config.check()?;
    Ok(config)
}

/// Fields with which only these values are computed, and a word on them.
const ONLY: [(Field, &[&str], &str); 10] = [
    (("expert_weights_scale", ""), &["1", "0"], ", which means none"),
    // 1 is a softmax over all experts, 3 one over the chosen; 2 would be a sigmoid.
    (("expert_gating_func", ""), &["1", "3", "0"], ", a softmax"),
    (("rope.scale_linear", ""), &["1"], ": a factor stands in rope.scaling.factor"),
    (("rope.scaling.yarn_attn_factor", ""), &["1"], ""),
    (("rope.scaling.yarn_ext_factor", ""), &["1"], ""),
    (("attention.causal", ""), &["true"], ""),
    (("", "use_bidirectional_attention"), &["false"], ""),
    (("", "use_sliding_window"), &["false"], ""),
    (("", "swiglu_limit"), &["7"], ""),
    (("", "swiglu_alpha"), &["1.702"], ""),
];

/// Fields that would change the arithmetic in a way that is not computed here.
fn refuse_unknown_variants(fields: &Fields<'_>, family: &Family) -> Result<(), ConfigError> {
    for (field, only, remark) in ONLY {
        let Some(value) = fields.at(field) else { continue };
        let value = value.as_f64().map_or_else(|| value.to_string(), |number| number.to_string());
        if !only.contains(&value.as_str()) {
            return Err(fields.wrong(field, value, only.join(" or ") + remark));
        }
    }
    let field = ("", "quantization_config");
    match fields.at(field) {
        Some(value) if !(family.has_sinks && value["quant_method"] == "mxfp4") => {
            Err(fields.wrong(field, value, "null: weights in floats"))
        }
        _ => Ok(()),
    }
}

fn shape(fields: &Fields<'_>, file: &ModelFile, embedding: &str) -> Result<Shape, ConfigError> {
    let missing = || ConfigError::Missing { key: embedding.to_owned() };
    let rows = file.tensor(embedding).ok_or_else(missing)?.rows();
    let hidden_dim = fields.wanted_size(("embedding_length", "hidden_size"))?;
    let n_heads = fields.wanted_size(("attention.head_count", "num_attention_heads"))?;
    let n_layers = fields.wanted_size(("block_count", "num_hidden_layers"))?;
    let most = file.tensors().len();
    if n_layers > most {
        return Err(ConfigError::Size { name: "layer count", value: n_layers, most });
    }
    let per_head = hidden_dim.checked_div(n_heads).unwrap_or_default();
    let head_dim = fields.size(("attention.key_length", "head_dim"))?.unwrap_or(per_head);
    let values = ("attention.value_length", "");
    if let Some(other) = fields.size(values)?.filter(|len| *len != head_dim) {
        return Err(fields.wrong(values, other, "the length of the keys"));
    }
    let n_kv_heads = fields.size(("attention.head_count_kv", "num_key_value_heads"))?;
    let vocabulary = ("", "vocab_size");
    let vocab_size = fields.size(vocabulary)?.unwrap_or(rows);
    if vocab_size != rows {
        let wanted = format!("{rows}, the rows of `{embedding}`");
        return Err(fields.wrong(vocabulary, vocab_size, wanted));
    }
    Ok(Shape {
        vocab_size,
        hidden_dim,
        n_layers,
        n_heads,
        n_kv_heads: n_kv_heads.unwrap_or(n_heads),
        head_dim,
        ffn_dim: fields.wanted_size(("feed_forward_length", "intermediate_size"))?,
        context_len: fields.wanted_size(("context_length", "max_position_embeddings"))?,
    })
}

fn activation(fields: &Fields<'_>, family: &Family) -> Result<Activation, ConfigError> {
    let field = ("", "hidden_act");
    let name = fields.text(("", "hidden_activation"))?.or(fields.text(field)?);
    match name {
        None => Ok(family.activation),
        Some("silu") if family.activation == Activation::ClampedSwiglu => Ok(family.activation),
        Some("silu") => Ok(Activation::Silu),
        Some("gelu_pytorch_tanh") => Ok(Activation::Gelu),
        Some(other) => Err(fields.wrong(field, told(other), "silu or gelu_pytorch_tanh")),
    }
}

/// A word of a file, in a sentence.
fn told(word: &str) -> String {
    format!("`{word}`")
}

/// One RoPE: newer folders have all of it in `rope_parameters`, by layer type where there are
/// several; older ones and GGUF files a base for each, and scaling for the global layers.
fn rope(
    (fields, file): (&Fields<'_>, &ModelFile),
    family: &Family,
    shape: &Shape,
    default_base: f32,
    layer_type: &'static str,
) -> Result<RopeConfig, ConfigError> {
    let is_local = layer_type == LOCAL;
    let scaling = match fields.object("rope_parameters")? {
        Some(all) => all.object(layer_type)?.unwrap_or(all),
        None if is_local => Fields::none(),
        None if fields.is_folder() => fields.object("rope_scaling")?.unwrap_or(Fields::none()),
        None => fields.clone(),
    };
    let older = if is_local {
        ("rope.freq_base_swa", "rope_local_base_freq")
    } else {
        ("rope.freq_base", "rope_theta")
    };
    let base = scaling.number(("", "rope_theta"))?.or(fields.number(older)?);
    let field = ("", "partial_rotary_factor");
    let part = scaling.number(field)?.or(fields.number(field)?).unwrap_or(1.0);
    if part > 1.0 {
        return Err(fields.wrong(field, part, "at most 1"));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part of a head size, rounded down"
    )]
    let turned = (to_f32(shape.head_dim) * part) as usize;
    let field = ("rope.dimension_count", "");
    let dims = fields.size(field)?.unwrap_or(turned);
    if family.pairs_interleaved && dims != turned {
        return Err(fields.wrong(field, dims, "the head size"));
    }
    let plain = RopeConfig::plain(base.unwrap_or(default_base), dims);
    let original = ("rope.scaling.original_context_length", "original_max_position_embeddings");
    let original = scaling.size(original)?.or(fields.size(original)?);
    scaled(plain, (&scaling, file), family, shape.context_len, original)
}

/// The RoPE as its scaling says.
fn scaled(
    plain: RopeConfig,
    (scaling, file): (&Fields<'_>, &ModelFile),
    family: &Family,
    context_len: usize,
    original: Option<usize>,
) -> Result<RopeConfig, ConfigError> {
    let is_folder = scaling.is_folder();
    let original = original.unwrap_or(context_len);
    let field = ("rope.scaling.type", "rope_type");
    let factor = ("rope.scaling.factor", "factor");
    // GGUF files with a factor mean that it is linear where they do not say.
    let unnamed = if !is_folder && scaling.at(factor).is_some() { "linear" } else { "none" };
    let kind = scaling.text(field)?.or(scaling.text(("", "type"))?).unwrap_or(unnamed);
    let factor = || scaling.wanted_number(factor);
    let number = |field, default| scaling.number_or(field, default);
    let pairs = |key, tensor| match file.tensor(tensor).filter(|_| !is_folder) {
        None => scaling.numbers(("", key)),
        Some(tensor) => Ok(Some(tensor.to_f32()?)),
    };
    let own = pairs("", "rope_freqs.weight")?;
    let names = [
        ("short_factor", "rope_factors_short.weight"),
        ("long_factor", "rope_factors_long.weight"),
    ];
    let [short, long] = names.map(|(key, tensor)| pairs(key, tensor));
    let (short, long) = (short?, long?);
    if short.is_some() != long.is_some() || (short.is_none() && ["longrope", "su"].contains(&kind))
    {
        let (key, tensor) = names[usize::from(short.is_some())];
        let key = if is_folder { key } else { tensor };
        return Err(ConfigError::Missing { key: key.to_owned() });
    }
    let (rope, fitted) = match (kind, own, short.zip(long)) {
        ("none" | "longrope" | "su", _, Some((short, long))) => {
            let stretch = to_f32(context_len) / to_f32(original.max(1));
            // GGUF files say it, or mean 1.
            let fitted = if is_folder { long_magnitude(stretch, original) } else { 1.0 };
            (RopeScaling::LongRope { short, long, original }, fitted)
        }
        ("none", Some(factors), None) => (RopeScaling::Factors(factors), 1.0),
        ("none" | "default", None, None) => (RopeScaling::None, 1.0),
        ("linear", None, None) => (RopeScaling::Linear { factor: factor()? }, 1.0),
        ("llama3", None, None) => {
            let low = scaling.wanted_number(("", "low_freq_factor"))?;
            let high = scaling.wanted_number(("", "high_freq_factor"))?;
            (RopeScaling::Llama3 { factor: factor()?, low, high, original }, 1.0)
        }
        ("yarn", None, None) => {
            let factor = factor()?;
            let fast = number(("rope.scaling.yarn_beta_fast", "beta_fast"), 32.0)?;
            let slow = number(("rope.scaling.yarn_beta_slow", "beta_slow"), 1.0)?;
            // The one family that does not round its bounds cannot say so in GGUF's keys.
            let truncate = scaling.flag(("", "truncate"))?;
            let truncate = truncate.unwrap_or(is_folder || !family.has_sinks);
            let scales =
                scaling.number(("", "mscale"))?.zip(scaling.number(("", "mscale_all_dim"))?);
            let fitted = match scales {
                Some((m, all)) => yarn_magnitude(factor, m) / yarn_magnitude(factor, all),
                None => yarn_magnitude(factor, 1.0),
            };
            (RopeScaling::Yarn { factor, original, fast, slow, truncate }, fitted)
        }
        ("dynamic", ..) => {
            let wanted = "a kind fixed at load, such as yarn: dynamic NTK turns keys by a \
                          request's length";
            return Err(scaling.wrong(field, told(kind), wanted));
        }
        (kind, own, _) => {
            let beside = if own.is_some() { " beside rope_freqs.weight" } else { "" };
            let wanted = "none, linear, llama3, yarn or longrope";
            return Err(scaling.wrong(field, told(kind) + beside, wanted));
        }
    };
    // A folder's factor is the whole one, a GGUF file's comes on top.
    let given = number(
        ("rope.scaling.attn_factor", "attention_factor"),
        if is_folder { fitted } else { 1.0 },
    )?;
    let magnitude = if is_folder { given } else { fitted * given };
    Ok(RopeConfig { scaling: rope, magnitude, ..plain })
}

/// What each layer reads, which of them turn, and which have experts.
fn layers(
    fields: &Fields<'_>,
    family: &Family,
    routers: &[bool],
) -> Result<Vec<LayerConfig>, ConfigError> {
    let field = ("attention.sliding_window", "sliding_window");
    let window = fields.size(field)?.filter(|_| family.has_windows);
    let are_local = are_local(fields, family, routers.len())?;
    if window.is_none() && family.global_every > 0 && are_local.contains(&true) {
        return Err(fields.missing(field));
    }
    let no_rope = fields.list(("", "no_rope_layers"), routers.len())?;
    let no_rope_every =
        fields.size(("", "no_rope_layer_interval"))?.unwrap_or(family.no_rope_every);
    let dense = fields.at(("", "mlp_only_layers")).and_then(Json::as_array);
    let sparse_step = fields.size(("", "decoder_sparse_step"))?.unwrap_or(1).max(1);
    let layer = |(index, (is_local, has_router)): (usize, (bool, &bool))| {
        let turns = match no_rope {
            Some(list) => list[index] != 0,
            None => !is_every(no_rope_every, index),
        };
        // A GGUF file has experts where it has their router.
        let has_experts = if fields.is_folder() {
            let is_dense = dense.is_some_and(|list| list.iter().any(|dense| *dense == index));
            family.experts.is_some() && !is_dense && is_every(sparse_step, index)
        } else {
            *has_router
        };
        let rope = turns.then_some(usize::from(is_local && family.local_base.is_some()));
        LayerConfig { window: window.filter(|_| is_local), rope, has_experts }
    };
    Ok(are_local.into_iter().zip(routers).enumerate().map(layer).collect())
}

/// Whether a layer is the last of `every` many; none is where that is 0.
pub(crate) fn is_every(every: usize, index: usize) -> bool {
    every > 0 && (index + 1).is_multiple_of(every)
}

/// Which layers read a window: by a list, or all but one of so many.
fn are_local(
    fields: &Fields<'_>,
    family: &Family,
    n_layers: usize,
) -> Result<Vec<bool>, ConfigError> {
    let pattern = ("attention.sliding_window_pattern", "sliding_window_pattern");
    let types = ("attention.sliding_window_pattern", "layer_types");
    if fields.at(types).is_some_and(|types| fields.is_folder() || types.is_array()) {
        let is_local = |kind: &Json| match (kind.as_bool(), kind.as_str()) {
            (Some(is_local), _) => Ok(is_local),
            (_, Some(LOCAL)) => Ok(true),
            (_, Some(GLOBAL)) => Ok(false),
            _ => Err(fields.wrong(types, kind, "sliding_attention or full_attention")),
        };
        let list = fields.list(types, n_layers)?.unwrap_or_default();
        return list.iter().map(is_local).collect();
    }
    let every = fields.size(pattern)?.unwrap_or(family.global_every);
    if every == 0 && family.global_every > 0 {
        return Err(fields.wrong(pattern, every, "at least 1"));
    }
    Ok((0..n_layers).map(|index| !is_every(every, index)).collect())
}

fn experts(
    fields: &Fields<'_>,
    family: &Family,
    shape: &Shape,
) -> Result<Option<Experts>, ConfigError> {
    let field = ("expert_count", "num_local_experts");
    let count = fields.size(field)?.or(fields.size(("", "num_experts"))?);
    let is_folder = fields.is_folder();
    let renormalises = match family.experts {
        Some(names) if is_folder => names.renormalises,
        None if is_folder => return Ok(None),
        _ if count.unwrap_or(0) == 0 => return Ok(None),
        _ => true,
    };
    let (used, ffn_dim, norm) = (
        ("expert_used_count", "num_experts_per_tok"),
        ("expert_feed_forward_length", "moe_intermediate_size"),
        ("expert_weights_norm", "norm_topk_prob"),
    );
    Ok(Some(Experts {
        count: count.ok_or_else(|| fields.missing(field))?,
        used: fields.wanted_size(used)?,
        ffn_dim: fields.size(ffn_dim)?.unwrap_or(shape.ffn_dim),
        renormalised: fields.flag(norm)?.unwrap_or(renormalises),
    }))
}
