//! `causeway schema --mask-bench`: what compiling a schema and its masks cost.

use std::path::{Path, PathBuf};

use causeway_constraint::{Environment, MatchError, Plan, Whitespace};
use causeway_policy::TokenMask;
use causeway_request::TokenId;
use serde_json::{Value, json};

use super::plan;
use crate::clock::Clock;
use crate::failure::{Failure, Outcome};

/// Most schemas of a folder.
const SCHEMAS_MAX: usize = 10_000;
/// Most tokens of one answer.
const TOKENS_MAX: usize = 300;
/// Answers walked through per schema.
const ANSWERS: u64 = 3;
/// After so many tokens of one string the walk closes it where it may.
const STRING_TOKENS: usize = 12;

/// Times in nanoseconds, and what was walked through.
#[derive(Default)]
struct Times {
    compile: Vec<u64>,
    mask: Vec<u64>,
    chosen: u64,
    forced: u64,
    answers: u64,
    /// Walks that an error of the engine ended.
    failed: u64,
}

/// A model's vocabulary, read for constraints.
pub(super) struct Vocabulary<'a> {
    pub(super) model: &'a str,
    pub(super) environment: Environment,
    /// What reading it took, in nanoseconds, without opening the model's file.
    pub(super) built_ns: u64,
}

/// Runs the measurement and prints one JSON object a schema that is refused and a walk that an
/// error ended, then one for all.
pub(super) fn run(folder: &Path, vocabulary: &Vocabulary<'_>, whitespace: Whitespace) -> Outcome {
    let Vocabulary { model, environment, built_ns } = vocabulary;
    let mut times = Times::default();
    let (mut compiled, mut refused) = (0_u64, 0_u64);
    let clock = Clock::start();
    for path in files(folder)? {
        let text = std::fs::read_to_string(&path)?;
        let start = clock.now_ns();
        let plan = plan(&text, environment, whitespace);
        times.compile.push(clock.now_ns() - start);
        match plan {
            Ok(plan) => {
                compiled += 1;
                for answer in 0..ANSWERS {
                    let walked = walk(&plan, environment, answer, &clock, &mut times);
                    times.answers += 1;
                    if let Err(error) = walked {
                        times.failed += 1;
                        println_json(&json!({
                            "schema": path.display().to_string(),
                            "answer": answer,
                            "error": error.to_string(),
                        }));
                    }
                }
            }
            Err((error, _)) => {
                refused += 1;
                println_json(&json!({ "schema": path.display().to_string(), "error": error }));
            }
        }
    }
    let Times { compile, mask, chosen, forced, answers, failed } = &mut times;
    println_json(&json!({
        "model": model,
        "tokens": environment.rows(),
        "schemas": compiled,
        "refused": refused,
        "environment_ms": spread(&mut [*built_ns], 1e6)["max"],
        "compile_ms": spread(compile, 1e6),
        "mask_us": spread(mask, 1e3),
        "answers": answers,
        "answers_failed": failed,
        "chosen_tokens": chosen,
        "forced_tokens": forced,
    }));
    Ok(())
}

/// The JSON files of a folder, in the order of their names.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() || files.len() > SCHEMAS_MAX {
        let (count, folder) = (files.len(), folder.display());
        return Err(Failure::caller(anyhow::anyhow!(
            "`{folder}` holds {count} schemas, between 1 and {SCHEMAS_MAX} are measured"
        )));
    }
    Ok(files)
}

/// Walks through one answer: forced tokens where there are some, elsewhere drawn ones.
fn walk(
    plan: &Plan,
    environment: &Environment,
    seed: u64,
    clock: &Clock,
    times: &mut Times,
) -> Result<(), MatchError> {
    let mut matcher = plan.matcher();
    let mut draw = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut free = 0;
    for _ in 0..TOKENS_MAX {
        let start = clock.now_ns();
        let forced = matcher.forced()?;
        if !forced.is_empty() {
            times.forced += forced.len() as u64;
            free = 0;
            for token in forced {
                matcher.advance(token)?;
            }
            continue;
        }
        if matcher.is_complete() {
            return Ok(());
        }
        let mask = matcher.mask()?;
        times.mask.push(clock.now_ns() - start);
        free += 1;
        draw = draw.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let token = choose(mask, environment, draw >> 33, free > STRING_TOKENS);
        if environment.bytes(token).is_empty() {
            // An end token was drawn.
            return Ok(());
        }
        matcher.advance(token)?;
        free = if environment.bytes(token).contains(&b'"') { 0 } else { free };
        times.chosen += 1;
    }
    Ok(())
}

/// A token of the mask: the shortest with a quote where the string is to end, else the drawn one.
fn choose(mask: &TokenMask, environment: &Environment, draw: u64, ends: bool) -> TokenId {
    let rows = u32::try_from(environment.rows()).unwrap_or(u32::MAX);
    let allowed = || (0..rows).map(TokenId).filter(|token| mask.allows(*token));
    let closing = |token: &TokenId| matches!(environment.bytes(*token), [b'"', ..] | [b'}' | b']']);
    if ends && let Some(token) = allowed().find(closing) {
        return token;
    }
    let count = mask.count().max(1) as u64;
    let index = usize::try_from(draw % count).unwrap_or(0);
    allowed().nth(index).unwrap_or(TokenId(0))
}

/// The middle, the 99th percentile and the largest.
fn spread(times: &mut [u64], unit: f64) -> Value {
    times.sort_unstable();
    #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a run are far below 2^53")]
    let at = |share: usize| {
        let index = times.len().saturating_mul(share) / 1000;
        let found = times.get(index.min(times.len().saturating_sub(1)));
        found.map(|time| (*time as f64 / unit * 1000.0).round() / 1000.0)
    };
    json!({ "count": times.len(), "p50": at(500), "p99": at(990), "max": at(1000) })
}

#[expect(clippy::print_stdout, reason = "the command's result")]
fn println_json(value: &Value) {
    println!("{value}");
}
