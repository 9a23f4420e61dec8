//! One question of `choose --json`: an object in, an object out.

use anyhow::{Context, Result, anyhow, bail};
use causeway_policy::numpy::{FloatType, NumpyProgram, Seed, numpy_choice};
use causeway_policy::{
    Literal, Method, Policy, PolicyFile, Scratch, Shape, StepContext, Survivor, TokenMask,
};
use causeway_request::{Cause, Choice, TokenId};
use serde_json::{Map, Value, json};

/// Largest id in a row given as `{"id": logit}`: a row of that length is built.
const ID_MAX: u64 = 1 << 24;

/// Everything a line may hold; any other name is refused.
const FIELDS: [&str; 13] = [
    "logits",
    "probs",
    "policy",
    "context",
    "prompt_tokens",
    "seed",
    "choice",
    "step",
    "eos",
    "mask",
    "rng",
    "dtype",
    "keep",
];

/// Answers one line; `file` stands in for its `policy` where the flags gave one.
pub(super) fn answer(line: &Map<String, Value>, file: Option<PolicyFile>) -> Result<Value> {
    if let Some(name) = line.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        bail!("unknown field `{name}`");
    }
    let file = match (file, line.get("policy")) {
        (Some(file), _) => file,
        (None, Some(tree)) => PolicyFile::from_json(tree)?,
        (None, None) => PolicyFile::default(),
    };
    let context = tokens(line, "context")?.unwrap_or_default();
    let (row, is_probabilities) = row(line, &context)?;
    match text(line, "rng")?.as_deref() {
        None | Some("philox") => {}
        Some("numpy") if is_probabilities => bail!("`rng` numpy takes `logits`, not `probs`"),
        Some("numpy") => return numpy(line, &file, &row),
        Some(other) => bail!("`rng` is `{other}`, but must be philox or numpy"),
    }
    for name in ["dtype", "keep"] {
        if line.contains_key(name) {
            bail!("`{name}` needs `rng` numpy");
        }
    }
    let eos = tokens(line, "eos")?.unwrap_or_default();
    let policy = Policy::from_file(&file, row.len(), &eos)?;
    let mask = mask(line, row.len())?;
    let seed = whole(line, "seed", u64::MAX)?.or(policy.seed()).unwrap_or(0);
    let (prompt_tokens, step) = place(line, context.len())?;
    let choice = whole(line, "choice", u64::from(u32::MAX))?.unwrap_or(0);
    let step = StepContext {
        tokens: &context,
        prompt_tokens,
        seed,
        choice: u32::try_from(choice)?,
        step: u32::try_from(step)?,
    };
    let literal =
        if is_probabilities { Literal::Probabilities(&row) } else { Literal::Logits(&row) };
    let (choice, survivors) =
        policy.choose_literal(literal, mask.as_ref(), &step, &mut Scratch::default())?;
    Ok(to_answer(&choice, &survivors, seed))
}

fn to_answer(choice: &Choice, survivors: &[Survivor], seed: u64) -> Value {
    json!({
        "token": choice.token.0,
        "survivors": survivors.iter().map(|s| s.token.0).collect::<Vec<_>>(),
        "probs": survivors.iter().map(|s| s.probability).collect::<Vec<_>>(),
        "seed": seed,
        "account": {
            "logprob": choice.logprob,
            "rank": choice.rank,
            "probability": choice.probability,
            "survivors": choice.survivors,
            "entropy": choice.entropy,
            "raw_best": choice.raw_best.0,
            "removed_by": choice.removed_by,
            "runner_up": choice.runner_up.map(|(token, p)| json!([token.0, p])),
            "cause": match choice.cause {
                Cause::Chosen => "chosen",
                Cause::Forced => "forced",
                Cause::Prefilled => "prefilled",
            },
        },
    })
}

/// NumPy's program: temperature and top_k only.
fn numpy(line: &Map<String, Value>, file: &PolicyFile, logits: &[f64]) -> Result<Value> {
    let (temperature, top_k) = (file.shape.temperature, file.shape.top_k);
    let mut rest = file.clone();
    rest.shape = Shape { temperature: 1.0, top_k: 0, ..rest.shape };
    rest.choose.seed = None;
    if rest != PolicyFile::default() || file.choose.method != Method::Sample {
        bail!("`rng` numpy runs `temperature` and `top_k` only, but the policy sets more");
    }
    for name in ["mask", "eos"] {
        if line.contains_key(name) {
            bail!("`rng` numpy has no `{name}`");
        }
    }
    let seed: Seed = match line.get("seed") {
        None | Some(Value::Null) => Seed::from(file.choose.seed.unwrap_or(0)),
        Some(Value::String(digits)) => digits.parse()?,
        Some(value) => match value.as_u64() {
            Some(seed) => Seed::from(seed),
            None => bail!(
                "`seed` is {value}, but must be a whole number from 0 (above \
                 18446744073709551615 as a text of digits)"
            ),
        },
    };
    let float_type = match text(line, "dtype")?.as_deref() {
        None | Some("float64") => FloatType::F64,
        Some("float32") => FloatType::F32,
        Some(other) => bail!("`dtype` is `{other}`, but must be float32 or float64"),
    };
    let keep = tokens(line, "keep")?;
    let program = NumpyProgram {
        temperature,
        top_k: usize::try_from(top_k)?,
        keep: keep.as_deref(),
        float_type,
        seed: &seed,
    };
    let drawn = numpy_choice(logits, &program)?;
    Ok(json!({
        "token": drawn.token.0,
        "survivors": drawn.keep.iter().map(|token| token.0).collect::<Vec<_>>(),
        "probs": drawn.probabilities,
        "uniform": drawn.uniform,
        "seed": line.get("seed").cloned().unwrap_or_else(|| json!(file.choose.seed.unwrap_or(0))),
    }))
}

/// The row and whether it holds probabilities.
fn row(line: &Map<String, Value>, context: &[TokenId]) -> Result<(Vec<f64>, bool)> {
    let (name, value, absent) = match (line.get("logits"), line.get("probs")) {
        (Some(value), None) => ("logits", value, f64::NEG_INFINITY),
        (None, Some(value)) => ("probs", value, 0.0),
        (Some(_), Some(_)) => bail!("`logits` and `probs` are both given: leave one out"),
        (None, None) => bail!("`logits` or `probs` is missing"),
    };
    let row = match value {
        Value::Array(list) => list.iter().map(|v| float(name, v)).collect::<Result<Vec<_>>>()?,
        Value::Object(entries) => {
            let mut pairs = Vec::with_capacity(entries.len());
            for (key, value) in entries {
                let id: u64 = key.parse().map_err(|_| anyhow!("`{name}`: `{key}` is no id"))?;
                if id > ID_MAX {
                    bail!("`{name}` names token {id}, but ids here go up to {ID_MAX}");
                }
                pairs.push((usize::try_from(id)?, float(name, value)?));
            }
            let used = context.iter().map(|token| token.index());
            let used = used.filter(|&id| id as u64 <= ID_MAX);
            let length = pairs.iter().map(|pair| pair.0).chain(used).max().map_or(0, |id| id + 1);
            let mut row = vec![absent; length];
            for (id, value) in pairs {
                row[id] = value;
            }
            row
        }
        _ => bail!("`{name}` must be a list of numbers or a table of ids and numbers"),
    };
    if row.is_empty() {
        bail!("`{name}` is empty, but must hold at least one number");
    }
    Ok((row, name == "probs"))
}

/// A number of a row: `null` is NaN, and the infinities are texts.
fn float(name: &str, value: &Value) -> Result<f64> {
    match value {
        Value::Null => Ok(f64::NAN),
        Value::Number(number) => number.as_f64().context("a JSON number is a float"),
        Value::String(text) => match text.to_ascii_lowercase().as_str() {
            "-inf" | "-infinity" => Ok(f64::NEG_INFINITY),
            "inf" | "+inf" | "infinity" | "+infinity" => Ok(f64::INFINITY),
            "nan" => Ok(f64::NAN),
            _ => bail!("`{name}` holds `{text}`, which is no number"),
        },
        _ => bail!("`{name}` holds {value}, which is no number"),
    }
}

/// The inverse of [`float`].
pub(super) fn number(value: f64) -> Value {
    if value.is_finite() { json!(value) } else { json!(value.to_string()) }
}

/// Prompt length and step: each follows from the other where only one is given.
fn place(line: &Map<String, Value>, tokens: usize) -> Result<(usize, u64)> {
    let step = whole(line, "step", u64::from(u32::MAX))?;
    let generated = usize::try_from(step.unwrap_or(0))?;
    let prompt_tokens = match whole(line, "prompt_tokens", u64::MAX)? {
        Some(count) => usize::try_from(count)?,
        None => tokens.saturating_sub(generated),
    };
    let step = step.unwrap_or(u64::try_from(tokens.saturating_sub(prompt_tokens))?);
    Ok((prompt_tokens, step))
}

fn mask(line: &Map<String, Value>, vocab_size: usize) -> Result<Option<TokenMask>> {
    let Some(allowed) = tokens(line, "mask")? else { return Ok(None) };
    let mut mask = TokenMask::none(vocab_size);
    for token in allowed {
        if !mask.allow(token) {
            bail!("`mask` names token {token}, but there are {vocab_size} tokens");
        }
    }
    Ok(Some(mask))
}

fn text(line: &Map<String, Value>, name: &str) -> Result<Option<String>> {
    match line.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(value) => bail!("`{name}` is {value}, but must be a text"),
    }
}

fn whole(line: &Map<String, Value>, name: &str, max: u64) -> Result<Option<u64>> {
    match line.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64().filter(|&count| count <= max) {
            Some(count) => Ok(Some(count)),
            None => bail!("`{name}` is {value}, but must be a whole number from 0 to {max}"),
        },
    }
}

fn tokens(line: &Map<String, Value>, name: &str) -> Result<Option<Vec<TokenId>>> {
    let list = match line.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(list)) => list,
        Some(value) => bail!("`{name}` is {value}, but must be a list of token ids"),
    };
    let token = |value: &Value| {
        let id = value.as_u64().and_then(|id| u32::try_from(id).ok());
        id.map(TokenId).ok_or_else(|| anyhow!("`{name}` holds {value}, which is no token id"))
    };
    list.iter().map(token).collect::<Result<_>>().map(Some)
}
