//! Which settings of two runs differ: those that may reach the answer, and those that may not.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::explain::counted;
use crate::{Conditions, Effective, Model, Numerics, PolicyUsed, Request, Start, Template};

/// One setting that differs, with both values in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    pub name: String,
    pub a: String,
    pub b: String,
}

/// Collects settings that differ.
#[derive(Default)]
struct Differing(Vec<Setting>);

impl Differing {
    fn add<T: PartialEq>(&mut self, name: &str, a: &T, b: &T, words: impl Fn(&T) -> String) {
        if a != b {
            self.0.push(Setting { name: name.to_owned(), a: words(a), b: words(b) });
        }
    }
}

/// The settings that may reach the answer and differ, in the order of the record's fields.
///
/// Every field is read by name, so that a new one must be decided about here.
pub(crate) fn settings(a: &Start, b: &Start) -> Vec<Setting> {
    let Start { request, model, numerics, template, policy, conditions: _ } = a;
    let Request { id: _, received: _, effective } = request;
    let mut differing = Differing::default();
    add_model(&mut differing, model, &b.model);
    let Numerics { version, kv_type } = numerics;
    differing.add("numerics version", version, &b.numerics.version, u32::to_string);
    differing.add("KV type", kv_type, &b.numerics.kv_type, String::clone);
    let hash = |template: &Option<Template>| template.as_ref().map(|template| template.sha256);
    differing.add("template", &hash(template), &hash(&b.template), words_or("none"));
    // Where neither run draws, nothing reads the key of a draw.
    let draws = !(policy.greedy && b.policy.greedy);
    add_effective(&mut differing, effective, &b.request.effective, draws);
    add_policy(&mut differing, policy, &b.policy);
    differing.0
}

fn add_model(differing: &mut Differing, a: &Model, b: &Model) {
    let Model { name, sha256, tokenizer_sha256, quantisation, settings } = a;
    differing.add("model", name, &b.name, String::clone);
    differing.add("weights", sha256, &b.sha256, ToString::to_string);
    differing.add("quantisation", quantisation, &b.quantisation, String::clone);
    differing.add("tokenizer", tokenizer_sha256, &b.tokenizer_sha256, words_or("none"));
    add_leaves(differing, "model", settings, &b.settings);
}

fn add_effective(differing: &mut Differing, a: &Effective, b: &Effective, draws: bool) {
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
    } = a;
    add_tokens(differing, "prompt", prompt_tokens, &b.prompt_tokens);
    add_tokens(differing, "response prefill", prefilled_tokens, &b.prefilled_tokens);
    differing.add("tokens_max", tokens_max, &b.tokens_max, u64::to_string);
    differing.add("stop tokens", stop_tokens, &b.stop_tokens, |ids| format!("{ids:?}"));
    differing.add("eos tokens", eos_tokens, &b.eos_tokens, |ids| format!("{ids:?}"));
    differing.add("stop strings", stop_strings, &b.stop_strings, |all| format!("{all:?}"));
    differing.add("context_len", context_len, &b.context_len, u64::to_string);
    if draws {
        differing.add("seed", seed, &b.seed, u64::to_string);
        differing.add("choice", choice, &b.choice, u32::to_string);
    }
}

/// Names the first place where two token lists part, not the lists: prompts are long.
fn add_tokens(differing: &mut Differing, name: &str, a: &[u32], b: &[u32]) {
    let at = first_difference(a, b);
    differing.add(name, &a, &b, |tokens| match tokens.get(at) {
        Some(token) => {
            format!("{}, token {token} at position {at}", counted(tokens.len(), "token"))
        }
        None => format!("{}, none at position {at}", counted(tokens.len(), "token")),
    });
}

/// The first place where two lists part: at the latest where the shorter one ends.
pub(crate) fn first_difference(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn add_policy(differing: &mut Differing, a: &PolicyUsed, b: &PolicyUsed) {
    let PolicyUsed { canonical, sha256, greedy } = a;
    differing.add("policy", sha256, &b.sha256, ToString::to_string);
    differing.add("greedy", greedy, &b.greedy, bool::to_string);
    let tree = |text: &str| serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
    add_leaves(differing, "policy", &leaves(&tree(canonical)), &leaves(&tree(&b.canonical)));
}

/// Adds each leaf that only one of two trees has, or that has another value.
fn add_leaves(
    differing: &mut Differing,
    root: &str,
    a: &BTreeMap<String, String>,
    b: &BTreeMap<String, String>,
) {
    let paths: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    for path in paths {
        differing.add(&format!("{root}.{path}"), &a.get(path), &b.get(path), words_or("absent"));
    }
}

/// Every leaf of a JSON tree by its path: `choose.temperature`, `stop.strings.0`.
fn leaves(tree: &Value) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    collect_leaves(tree, "", &mut found);
    found
}

fn collect_leaves(tree: &Value, path: &str, found: &mut BTreeMap<String, String>) {
    let below = |key: &str| match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    };
    match tree {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().for_each(|(key, value)| collect_leaves(value, &below(key), found));
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                collect_leaves(item, &below(&index.to_string()), found);
            }
        }
        // A tree that is a leaf itself is a policy without a setting, or no JSON.
        _ if path.is_empty() => {}
        leaf => {
            found.insert(path.to_owned(), leaf.to_string());
        }
    }
}

/// The conditions that differ; none of them may reach the answer.
pub(crate) fn conditions(a: &Conditions, b: &Conditions) -> Vec<Setting> {
    let Conditions {
        engine, // each in the order of the record's fields
        cpu,
        isa,
        threads,
        batch_occupancy,
        queue,
        concurrency,
        cache,
        chunk,
    } = a;
    let mut differing = Differing::default();
    differing.add("engine", engine, &b.engine, String::clone);
    differing.add("cpu", cpu, &b.cpu, String::clone);
    differing.add("isa", isa, &b.isa, String::clone);
    differing.add("threads", threads, &b.threads, u32::to_string);
    differing.add("batch occupancy", batch_occupancy, &b.batch_occupancy, u32::to_string);
    differing.add("queue", queue, &b.queue, u32::to_string);
    differing.add("concurrency", concurrency, &b.concurrency, u32::to_string);
    differing.add("cache", cache, &b.cache, |cache| cache.name().to_owned());
    differing.add("chunk", chunk, &b.chunk, u32::to_string);
    differing.0
}

/// A value in words, or `none` where there is none.
fn words_or<T: ToString>(none: &'static str) -> impl Fn(&Option<T>) -> String {
    move |value| value.as_ref().map_or_else(|| none.to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests;
