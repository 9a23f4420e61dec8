//! `causeway logits`: print the logits at each position of a token sequence.

use std::io::Write as _;

use causeway_kv_cache::Cache;
use causeway_model::{Model, Span, Workspace};
use causeway_request::{RequestId, TokenId};
use serde_json::{Value, json};

use super::run::{clear_progress, show_progress};
use crate::failure::{Failure, Outcome};
use crate::loaded::{ModelFlags, model_failure};

/// Best logits printed of each position.
const TOP: usize = 64;
/// Best logits printed in the readable table.
const TOP_SHOWN: usize = 5;

/// Arguments of `causeway logits`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelFlags,
    /// Token ids, separated by commas.
    #[arg(long, value_delimiter = ',', required = true, value_name = "ID,ID,…")]
    ids: Vec<u32>,
    /// Only the last N positions.
    #[arg(long, value_name = "N")]
    last: Option<usize>,
    /// Also the logits of these ids at each position.
    #[arg(long, value_delimiter = ',', value_name = "ID,ID,…")]
    at: Vec<u32>,
    /// One JSON object a position.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    let loaded = args.model.open()?;
    let vocab_size = loaded.model.config().shape.vocab_size;
    if let Some(id) = args.at.iter().find(|&&id| id as usize >= vocab_size) {
        return Err(Failure::caller(anyhow::anyhow!(
            "--at {id} is outside the vocabulary, whose size is {vocab_size}"
        )));
    }
    let last = args.last.unwrap_or(args.ids.len()).min(args.ids.len());
    let first = args.ids.len() - last;
    let tokens: Vec<TokenId> = args.ids.iter().copied().map(TokenId).collect();
    let mut out = std::io::stdout().lock();
    each_row(&loaded.model, &tokens, args.model.chunk()?, |position, row| {
        if position < first {
            return Ok(());
        }
        if args.json {
            serde_json::to_writer(&mut out, &answer(position, row, &args.at))
                .map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            let best = best(row, TOP_SHOWN);
            let mut shown: Vec<String> =
                best.iter().map(|(id, l)| format!("{id} {l:.4}")).collect();
            if !args.at.is_empty() {
                shown.push("at".to_owned());
                let at = |&id: &u32| format!("{id} {:.4}", row[id as usize]);
                shown.extend(args.at.iter().map(at));
            }
            writeln!(out, "{position:>6}  {}", shown.join("  "))?;
        }
        Ok(())
    })
}

/// Calls `each` with the logits of every position in turn, computed `chunk` at a time.
pub(super) fn each_row(
    model: &Model,
    tokens: &[TokenId],
    chunk: usize,
    mut each: impl FnMut(usize, &[f32]) -> Outcome,
) -> Outcome {
    let context_len = model.context_len();
    if tokens.len() > context_len {
        return Err(Failure::caller(anyhow::anyhow!(
            "the sequence has {} tokens, the context limit is {context_len} tokens",
            tokens.len()
        )));
    }
    let (request, mut work) = (RequestId(0), Workspace::default());
    let mut cache = Cache::new(&model.kv_shape(1, chunk));
    let known = tokens.len();
    for (index, tokens) in tokens.chunks(chunk).enumerate() {
        let first_position = index * chunk;
        let end = first_position + tokens.len();
        if known > chunk {
            show_progress("computing", first_position, known, "tokens");
        }
        cache.reserve(request, end).map_err(Failure::world)?;
        let span = Span { request, first_position, tokens, logits_wanted: tokens.len() };
        let logits = model.forward(&[span], &mut cache, &mut work).map_err(model_failure)?;
        cache.retire(request, end);
        if known > chunk && end == known {
            clear_progress();
        }
        for (position, row) in (first_position..).zip(logits.rows()) {
            if let Some(id) = row.iter().position(|logit| !logit.is_finite()) {
                let logit = row[id];
                return Err(Failure::world(anyhow::anyhow!(
                    "the logit of token {id} at position {position} is {logit}: \
                     the weights give no distribution"
                )));
            }
            each(position, row)?;
        }
    }
    Ok(())
}

fn answer(position: usize, row: &[f32], at: &[u32]) -> Value {
    let mut answer = json!({
        "position": position,
        "top": best(row, TOP),
        "logsumexp": log_sum_exp(row),
        "digest": format!("{:032x}", causeway_engine::digest(row).0),
    });
    if !at.is_empty() {
        let pairs: Vec<(u32, f32)> = at.iter().map(|&id| (id, row[id as usize])).collect();
        answer["at"] = json!(pairs);
    }
    answer
}

/// The best `count` ids and their logits: higher first, then the lower id.
pub(super) fn best(row: &[f32], count: usize) -> Vec<(u32, f32)> {
    let mut pairs: Vec<(u32, f32)> = (0..).zip(row.iter().copied()).collect();
    let order = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    let count = count.min(pairs.len());
    if count < pairs.len() {
        pairs.select_nth_unstable_by(count, order);
        pairs.truncate(count);
    }
    pairs.sort_unstable_by(order);
    pairs
}

/// `ln(sum of e^logit)`, in f64 around the largest.
pub(super) fn log_sum_exp(row: &[f32]) -> f64 {
    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = row.iter().map(|&l| libm::exp(f64::from(l) - f64::from(max))).sum();
    f64::from(max) + libm::log(sum)
}
