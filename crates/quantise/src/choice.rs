//! Which tensor gets which type.

use std::str::FromStr;

use causeway_weights::{DType, Tensor};

/// The type that a whole file is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    F32,
    F16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q4K,
    Q5K,
    Q6K,
}

impl Target {
    /// Every target with its name on the command line, its type, and the number of its mix in
    /// `general.file_type`.
    const ALL: [(Self, &'static str, DType, u32); 10] = [
        (Self::Q8_0, "q8_0", DType::Q8_0, 7),
        (Self::Q5_0, "q5_0", DType::Q5_0, 8),
        (Self::Q5_1, "q5_1", DType::Q5_1, 9),
        (Self::Q4_0, "q4_0", DType::Q4_0, 2),
        (Self::Q4_1, "q4_1", DType::Q4_1, 3),
        (Self::Q4K, "q4_k", DType::Q4_K, 15),
        (Self::Q5K, "q5_k", DType::Q5_K, 17),
        (Self::Q6K, "q6_k", DType::Q6_K, 18),
        (Self::F16, "f16", DType::F16, 1),
        (Self::F32, "f32", DType::F32, 0),
    ];

    fn row(self) -> (Self, &'static str, DType, u32) {
        Self::ALL.into_iter().find(|row| row.0 == self).expect("ALL has every target")
    }

    /// The type of most of its tensors.
    #[must_use]
    pub fn dtype(self) -> DType {
        self.row().2
    }

    pub(super) fn file_type(self) -> u32 {
        self.row().3
    }
}

/// What is wrong with a type's name or a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleFault {
    #[error(
        "`{name}` is no type that is written: q8_0, q5_0, q5_1, q4_0, q4_1, q4_k, q5_k, q6_k, \
         f16, f32"
    )]
    Type { name: String },
    #[error("`{rule}` is no rule: PATTERN=TYPE is, as in blk.*.attn_v.weight=q8_0")]
    Form { rule: String },
}

impl FromStr for Target {
    type Err = RuleFault;

    fn from_str(name: &str) -> Result<Self, RuleFault> {
        let named = Self::ALL.into_iter().find(|row| row.1.eq_ignore_ascii_case(name));
        named.map(|row| row.0).ok_or_else(|| RuleFault::Type { name: name.to_owned() })
    }
}

/// A type for the tensors whose name matches a pattern, in which `*` stands for any characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pattern: String,
    dtype: DType,
}

impl FromStr for Rule {
    type Err = RuleFault;

    fn from_str(rule: &str) -> Result<Self, RuleFault> {
        let (pattern, name) = rule
            .split_once('=')
            .filter(|(pattern, _)| !pattern.is_empty())
            .ok_or_else(|| RuleFault::Form { rule: rule.to_owned() })?;
        Ok(Self { pattern: pattern.to_owned(), dtype: name.parse::<Target>()?.dtype() })
    }
}

/// Whether `*` in the pattern can stand for what makes it the name: first places win, and the
/// last piece must end the name.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(first) else {
        return false;
    };
    let (between, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for piece in between.split('*') {
        let Some(at) = name.find(piece) else {
            return false;
        };
        name = &name[at + piece.len()..];
    }
    name.ends_with(last)
}

/// How types are chosen for a whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub target: Target,
    /// The first that matches a tensor decides; one of blocks matches no vector.
    pub rules: Vec<Rule>,
    /// No tensor gets more bits than the target has, but where its rows ask for another type.
    pub is_pure: bool,
    /// Whether tensors that are quantised already may be quantised again.
    pub allows_requantising: bool,
}

/// How many layers there are: one more than the highest number after `blk.`.
pub(super) fn layers<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    names.filter_map(layer).max().map_or(0, |last| last + 1)
}

fn layer(name: &str) -> Option<usize> {
    name.strip_prefix("blk.")?.split_once('.')?.0.parse().ok().filter(|&layer| layer < 1 << 20)
}

/// The layers whose most sensitive tensors get more bits: the first eighth, the last, and every
/// third between, as in the published mixes.
fn is_sensitive(layer: usize, layers: usize) -> bool {
    let eighth = layers / 8;
    layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2
}

impl Choice {
    /// The type for one tensor of a model with so many layers; `is_tied` says that its embedding
    /// is its output too.
    pub(super) fn dtype(&self, tensor: &Tensor<'_>, is_tied: bool, layers: usize) -> DType {
        let name = tensor.name;
        // Vectors are added or multiplied with as they are: readers take no blocks of them.
        let takes = |dtype: DType| tensor.shape.len() > 1 || dtype.block_len() == 1;
        let fits = |rule: &&Rule| matches(&rule.pattern, name) && takes(rule.dtype);
        if let Some(rule) = self.rules.iter().find(fits) {
            return rule.dtype;
        }
        // Models come with experts of this type, which lose much and gain nothing in another.
        if tensor.dtype == DType::MXFP4 && !self.allows_requantising {
            return tensor.dtype;
        }
        if !is_weight(name) || tensor.shape.len() < 2 {
            // Small, added or multiplied once: kept, and halves made whole.
            let is_half = matches!(tensor.dtype, DType::F16 | DType::BF16);
            return if is_half { DType::F32 } else { tensor.dtype };
        }
        let wanted =
            if self.is_pure { self.target.dtype() } else { self.mixed(name, is_tied, layers) };
        fitting(wanted, tensor.columns())
    }

    fn mixed(&self, name: &str, is_tied: bool, layers: usize) -> DType {
        let target = self.target.dtype();
        if matches!(target, DType::F32 | DType::F16 | DType::Q8_0) {
            return target;
        }
        if name == "output.weight" || (is_tied && name == "token_embd.weight") {
            return DType::Q6_K;
        }
        if !matches!(self.target, Target::Q4K | Target::Q5K) {
            return target;
        }
        if name.ends_with("attn_qkv.weight") {
            return if self.target == Target::Q4K { DType::Q5_K } else { DType::Q6_K };
        }
        let gets_more = ["attn_v.weight", "ffn_down.weight", "ffn_down_exps.weight"];
        let is_one = gets_more.iter().any(|end| name.ends_with(end));
        match layer(name) {
            Some(layer) if is_one && is_sensitive(layer, layers) => DType::Q6_K,
            _ => target,
        }
    }
}

/// A matrix that is multiplied with, rather than a norm or the choice of experts.
fn is_weight(name: &str) -> bool {
    let kept = ["_norm.weight", "ffn_gate_inp.weight"];
    name.ends_with(".weight") && !kept.iter().any(|end| name.ends_with(end))
}

/// The type itself, or where its blocks do not fill the rows one of smaller blocks and no fewer
/// bits, or F16.
fn fitting(wanted: DType, columns: usize) -> DType {
    let smaller = match wanted {
        DType::Q4_K => DType::Q5_0,
        DType::Q5_K => DType::Q5_1,
        DType::Q6_K => DType::Q8_0,
        other => other,
    };
    let fits = |dtype: &DType| columns.is_multiple_of(dtype.block_len());
    [wanted, smaller].into_iter().find(fits).unwrap_or(DType::F16)
}

#[cfg(test)]
mod tests;
