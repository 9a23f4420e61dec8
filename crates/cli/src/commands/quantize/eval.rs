//! What quantising did to a model's answers: both models over the same text.

use std::fmt;
use std::path::Path;

use causeway_kernels::KvType;
use causeway_kv_cache::Cache;
use causeway_model::{Config, Logits, ModelError, Settings, Span, Workspace};
use causeway_request::{RequestId, TokenId};
use causeway_session::{Loaded, Opening};
use causeway_text::Text;
use causeway_weights::ModelFile;
use serde::Serialize;

use crate::commands::logits::{best, log_sum_exp};
use crate::commands::run::{clear_progress, show_progress};
use crate::failure::Failure;
use crate::loaded::{model_failure, session_failure};

/// Most tokens that are read together; every window begins anew.
const WINDOW: usize = 512;
/// Positions of one pass: as many rows of both models are held.
const CHUNK: usize = 32;
/// Most bytes of a text: what a file of them takes is a night on a small machine.
const TEXT_BYTES_MAX: u64 = 64 << 20;

/// The tokens of a text in windows, each with what stands before a text.
pub(super) struct Windows {
    windows: Vec<Vec<TokenId>>,
    /// Bytes of all tokens that are predicted.
    bytes: usize,
}

/// How far a model's answers are from another's, over all predicted tokens.
#[derive(Debug, Default, Serialize)]
pub(super) struct Eval {
    /// Tokens that were predicted.
    tokens: usize,
    bytes: usize,
    /// Of the source, and of the result.
    bits_per_byte_before: f64,
    bits_per_byte: f64,
    /// Mean and largest KL divergence of the result from the source, in nats.
    kl_mean: f64,
    kl_max: f64,
    /// Share of positions at which both have the same best token.
    same_best: f64,
}

impl fmt::Display for Eval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tokens, bytes, bits_per_byte_before, bits_per_byte, kl_mean, kl_max, same_best } =
            self;
        write!(
            f,
            "{tokens} tokens of {bytes} bytes: bits per byte {bits_per_byte:.4}, of the source \
             {bits_per_byte_before:.4}; KL mean {kl_mean:.6}, max {kl_max:.4}; same best token \
             {:.2} %",
            100.0 * same_best
        )
    }
}

impl Windows {
    /// Reads a text and turns it into the source's tokens.
    pub(super) fn of(path: &Path, source: &ModelFile) -> Result<Self, Failure> {
        let shown = path.display();
        let unreadable = |error| Failure::caller(error).within(format!("cannot read `{shown}`"));
        let bytes = std::fs::metadata(path).map_err(unreadable)?.len();
        if bytes > TEXT_BYTES_MAX {
            return Err(Failure::caller(anyhow::anyhow!(
                "`{shown}` is {bytes} bytes long, the limit for --eval is {TEXT_BYTES_MAX}"
            )));
        }
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        let side = Text::open(source).map_err(|error| {
            Failure::caller(error).within("--eval needs the model's tokenizer".to_owned())
        })?;
        let tokenizer = &side.tokenizer;
        let tokens = tokenizer.encode(&text, false, false).map_err(Failure::caller)?;
        let config = Config::of(source).map_err(ModelError::from).map_err(model_failure)?;
        let window = config.shape.context_len.min(WINDOW);
        let bos = tokenizer.special().bos.filter(|_| tokenizer.adds_bos()).map(TokenId);
        let windows: Vec<Vec<TokenId>> = tokens
            .chunks(window.saturating_sub(usize::from(bos.is_some())).max(1))
            .map(|tokens| bos.into_iter().chain(tokens.iter().copied()).collect())
            .filter(|window: &Vec<TokenId>| window.len() > 1)
            .collect();
        if windows.is_empty() {
            return Err(Failure::caller(anyhow::anyhow!(
                "`{shown}` has {} tokens, at least 2 are needed",
                tokens.len()
            )));
        }
        let predicted = windows.iter().flat_map(|window| &window[1..]);
        let bytes = predicted.map(|token| tokenizer.piece(*token).map_or(0, <[u8]>::len)).sum();
        Ok(Self { windows, bytes })
    }

    /// Runs both models over the text.
    pub(super) fn compare(
        &self,
        source: &Path,
        made: &Path,
        threads: usize,
    ) -> Result<Eval, Failure> {
        let longest = self.windows.iter().map(Vec::len).max().unwrap_or_default();
        let open = |path: &Path| {
            let settings = Settings { context_len: Some(longest), kv_type: KvType::F32, threads };
            let name = path.display().to_string();
            let opening = Opening { name, path: path.to_owned(), settings };
            Loaded::open(opening).map_err(session_failure)
        };
        let (source, made) = (open(source)?, open(made)?);
        let all: usize = self.windows.iter().map(|window| window.len() - 1).sum();
        let mut sums = Sums::default();
        for window in &self.windows {
            show_progress("comparing", sums.tokens, all, "tokens");
            compare_window(&source, &made, window, &mut sums)?;
        }
        clear_progress();
        Ok(sums.means(self.bytes))
    }
}

/// What is added up over the predicted tokens.
#[derive(Debug, Default)]
struct Sums {
    tokens: usize,
    nats_before: f64,
    nats: f64,
    kl: f64,
    kl_max: f64,
    same_best: usize,
}

impl Sums {
    /// One position: its rows in both models, and the token that follows it.
    fn add(&mut self, before: &[f32], after: &[f32], next: TokenId) {
        let (lse_before, lse_after) = (log_sum_exp(before), log_sum_exp(after));
        let kl = before.iter().zip(after).map(|(&before, &after)| {
            let log_p = f64::from(before) - lse_before;
            let log_q = f64::from(after) - lse_after;
            libm::exp(log_p) * (log_p - log_q)
        });
        // Rounding can leave two equal rows a little below zero.
        let kl = kl.sum::<f64>().max(0.0);
        self.tokens += 1;
        self.nats_before += lse_before - f64::from(before[next.index()]);
        self.nats += lse_after - f64::from(after[next.index()]);
        self.kl += kl;
        self.kl_max = self.kl_max.max(kl);
        self.same_best += usize::from(best(before, 1)[0].0 == best(after, 1)[0].0);
    }

    fn means(&self, bytes: usize) -> Eval {
        let Self { tokens, nats_before, nats, kl, kl_max, same_best } = *self;
        let per_byte = |nats: f64| nats / std::f64::consts::LN_2 / bytes.max(1) as f64;
        Eval {
            tokens,
            bytes,
            bits_per_byte_before: per_byte(nats_before),
            bits_per_byte: per_byte(nats),
            kl_mean: kl / tokens as f64,
            kl_max,
            same_best: same_best as f64 / tokens as f64,
        }
    }
}

fn compare_window(
    source: &Loaded,
    made: &Loaded,
    window: &[TokenId],
    sums: &mut Sums,
) -> Result<(), Failure> {
    let mut runs = [Run::new(source), Run::new(made)];
    // Nothing is known of what follows the last one.
    let read = &window[..window.len() - 1];
    for (index, tokens) in read.chunks(CHUNK).enumerate() {
        let first = index * CHUNK;
        let [source, made] = &mut runs;
        let (before, after) = (source.rows(first, tokens)?, made.rows(first, tokens)?);
        for (position, (before, after)) in (first..).zip(before.rows().zip(after.rows())) {
            for row in [before, after] {
                if let Some(id) = row.iter().position(|logit| !logit.is_finite()) {
                    return Err(Failure::world(anyhow::anyhow!(
                        "the logit of token {id} at position {position} is {}: the weights give \
                         no distribution",
                        row[id]
                    )));
                }
            }
            sums.add(before, after, window[position + 1]);
        }
    }
    Ok(())
}

/// One model over one window.
struct Run<'a> {
    loaded: &'a Loaded,
    cache: Cache,
    work: Workspace,
}

impl<'a> Run<'a> {
    fn new(loaded: &'a Loaded) -> Self {
        let cache = Cache::new(&loaded.model.kv_shape(1, CHUNK));
        Self { loaded, cache, work: Workspace::default() }
    }

    fn rows(&mut self, first_position: usize, tokens: &[TokenId]) -> Result<Logits<'_>, Failure> {
        let (request, end) = (RequestId(0), first_position + tokens.len());
        self.cache.reserve(request, end).map_err(Failure::world)?;
        let span = Span { request, first_position, tokens, logits_wanted: tokens.len() };
        let rows = self.loaded.model.forward(&[span], &mut self.cache, &mut self.work);
        let rows = rows.map_err(model_failure)?;
        self.cache.retire(request, end);
        Ok(rows)
    }
}
