//! The canonical form of a record, and the two hashes over it.

mod step;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use self::step::{Part, push_steps};
use crate::{Effective, Model, Numerics, Record, SCHEMA, Sha256, Stop};

/// The fields of an answer whose names come before `steps`; see docs/record.md.
#[derive(Serialize)]
struct BeforeSteps<'a> {
    choice: u32,
    context_len: u64,
    eos_tokens: &'a [u32],
    kv_type: &'a str,
    model_settings: &'a BTreeMap<String, String>,
    model_sha256: Sha256,
    numerics_version: u32,
    policy_sha256: Sha256,
    prefilled: usize,
    schema: u64,
    seed: u64,
}

/// Those whose names come after it.
#[derive(Serialize)]
struct AfterSteps<'a> {
    stop: &'a Stop,
    stop_strings: &'a [String],
    stop_tokens: &'a [u32],
    text: &'a str,
    tokens: Vec<u32>,
    tokens_max: u64,
}

/// Bytes of canonical JSON to expect of a step, so that the text is not moved as it grows.
const STEP_BYTES: usize = 448;

/// SHA-256 of the canonical JSON of the whole record.
pub(crate) fn record_id(record: &Record) -> Sha256 {
    Sha256::of(record_json(record).as_bytes())
}

/// The canonical JSON of the whole record.
fn record_json(record: &Record) -> String {
    let Record { start, steps, end } = record;
    let mut json = String::with_capacity(STEP_BYTES * steps.len() + (8 << 10));
    json.push_str("{\"end\":");
    json.push_str(&canonical_json(end));
    json.push_str(",\"schema\":");
    json.push_str(&SCHEMA.to_string());
    json.push_str(",\"start\":");
    json.push_str(&canonical_json(start));
    json.push_str(",\"steps\":");
    push_steps(&mut json, steps, Part::Whole);
    json.push('}');
    json
}

/// SHA-256 of the canonical JSON of the answer.
pub(crate) fn answer_hash(record: &Record) -> Sha256 {
    Sha256::of(answer_json(record).as_bytes())
}

/// The canonical JSON of the answer.
fn answer_json(record: &Record) -> String {
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
    let before = canonical_json(&BeforeSteps {
        choice: *choice,
        context_len: *context_len,
        eos_tokens,
        kv_type,
        model_settings: settings,
        model_sha256: *sha256,
        numerics_version: *version,
        policy_sha256: start.policy.sha256,
        prefilled: prefilled_tokens.len(),
        schema: SCHEMA,
        seed: *seed,
    });
    let after = canonical_json(&AfterSteps {
        stop: &end.stop,
        stop_strings,
        stop_tokens,
        text: &end.text,
        tokens: [prompt_tokens.as_slice(), prefilled_tokens].concat(),
        tokens_max: *tokens_max,
    });
    let mut json = String::with_capacity(before.len() + STEP_BYTES * steps.len() + after.len());
    // One object of three parts: the inner braces go.
    json.push_str(&before[..before.len() - 1]);
    json.push_str(",\"steps\":");
    push_steps(&mut json, steps, Part::Exact);
    json.push(',');
    json.push_str(&after[1..]);
    json
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
