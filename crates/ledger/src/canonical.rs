//! The canonical form of a record, and the two hashes over it.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::{Effective, Model, Numerics, Record, SCHEMA, Sha256, Step, Stop};

/// What exactness promises, and all that it depends on; see docs/record.md.
#[derive(Serialize)]
struct Answer<'a> {
    schema: u64,
    model_sha256: Sha256,
    model_settings: &'a BTreeMap<String, String>,
    numerics_version: u32,
    kv_type: &'a str,
    policy_sha256: Sha256,
    tokens: Vec<u32>,
    prefilled: usize,
    tokens_max: u64,
    stop_tokens: &'a [u32],
    eos_tokens: &'a [u32],
    stop_strings: &'a [String],
    context_len: u64,
    seed: u64,
    choice: u32,
    steps: Vec<Value>,
    stop: &'a Stop,
    text: &'a str,
}

/// SHA-256 of the canonical JSON of the whole record.
pub(crate) fn record_id(record: &Record) -> Sha256 {
    let Record { start, steps, end } = record;
    let whole = serde_json::json!({
        "schema": SCHEMA,
        "start": start,
        "steps": steps,
        "end": end,
    });
    Sha256::of(sort_keys(&whole).as_bytes())
}

/// SHA-256 of the canonical JSON of the answer.
pub(crate) fn answer_hash(record: &Record) -> Sha256 {
    let Record { start, steps, end } = record;
    let Model { name: _, sha256, tokenizer_sha256: _, quantisation: _, settings } = &start.model;
    let Numerics { version, kv_type } = &start.numerics;
    let Effective {
        prompt: _, // its tokens say it
        prompt_tokens,
        prefilled_tokens,
        tokens_max,
        stop_tokens,
        eos_tokens,
        stop_strings,
        context_len,
        seed,
        choice,
    } = &start.request.effective;
    let answer = Answer {
        schema: SCHEMA,
        model_sha256: *sha256,
        model_settings: settings,
        numerics_version: *version,
        kv_type,
        policy_sha256: start.policy.sha256,
        tokens: [prompt_tokens.as_slice(), prefilled_tokens].concat(),
        prefilled: prefilled_tokens.len(),
        tokens_max: *tokens_max,
        stop_tokens,
        eos_tokens,
        stop_strings,
        context_len: *context_len,
        seed: *seed,
        choice: *choice,
        steps: steps.iter().map(exact_part).collect(),
        stop: &end.stop,
        text: &end.text,
    };
    Sha256::of(canonical_json(&answer).as_bytes())
}

/// What exactness promises of a step: not the pass, its rows, nor the time.
fn exact_part(step: &Step) -> Value {
    let Step {
        step,
        token,
        piece: _, // the token says it
        cause,
        shown: _, // the answer's text says it
        reasons,
        pass: _,
        rows: _,
        since_arrival_ns: _,
        digest,
    } = step;
    serde_json::json!({
        "step": step,
        "token": token,
        "cause": cause,
        "reasons": reasons,
        "digest": digest,
    })
}

/// The canonical JSON of anything that has a JSON form.
///
/// Keys in ascending order of their UTF-8 bytes, no white space, only the escapes that JSON
/// demands, whole numbers in decimal, any other number as the string `f64:` and the 16
/// hexadecimal digits of its bits: how a library prints a fraction is no promise to build on.
pub(crate) fn canonical_json(form: &impl Serialize) -> String {
    // Our own types have text keys only, so that a JSON tree can always be made of them.
    let tree = serde_json::to_value(form).expect("a record's parts have a JSON form");
    sort_keys(&tree)
}

/// Writes a JSON tree in canonical form. Sorting is done here: whether `serde_json` keeps keys
/// sorted depends on a feature that any crate of the build may set.
fn sort_keys(tree: &Value) -> String {
    let mut text = String::new();
    write_sorted(tree, &mut text);
    text
}

fn write_sorted(tree: &Value, text: &mut String) {
    match tree {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            text.push('{');
            for (index, (key, value)) in sorted.into_iter().enumerate() {
                text.push_str(if index == 0 { "" } else { "," });
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                write_sorted(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { "," });
                write_sorted(item, text);
            }
            text.push(']');
        }
        Value::Number(number) => match number.as_f64() {
            Some(value) if number.is_f64() => {
                text.push_str(&format!("\"f64:{:016x}\"", value.to_bits()));
            }
            _ => text.push_str(&number.to_string()),
        },
        Value::Null | Value::Bool(_) | Value::String(_) => text.push_str(&tree.to_string()),
    }
}

#[cfg(test)]
mod tests;
