//! `causeway bench speed`: prefill and decode rates of a model, without sampling.

use std::io::Write as _;

use causeway_kv_cache::Cache;
use causeway_model::{Model, Span, Workspace};
use causeway_request::{RequestId, TokenId};
use serde::Serialize;
use serde_json::json;

use super::Spread;
use crate::clock::Clock;
use crate::failure::{Failure, Outcome};
use crate::loaded::{ModelFlags, about, model_failure};

/// Arguments of `causeway bench speed`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelFlags,
    /// Prompt tokens of the prefill.
    #[arg(short, long, default_value_t = 512)]
    prompt: usize,
    /// Tokens decoded, one at a time.
    #[arg(short, long, default_value_t = 128)]
    new: usize,
    /// Tokens of context before the decode of one stream begins.
    #[arg(short, long, default_value_t = 0)]
    depth: usize,
    /// Streams decoded together, each after a prompt of its own; none where empty.
    #[arg(short, long, value_delimiter = ',', value_name = "N,N,…")]
    batches: Vec<usize>,
    /// Prompt tokens of each stream decoded together.
    #[arg(long, default_value_t = 128)]
    batch_prompt: usize,
    /// Runs counted of each figure, after one that is not.
    #[arg(short, long, default_value_t = 5)]
    repeats: usize,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// Streams decoded together.
#[derive(Debug, Serialize)]
struct Batch {
    rows: usize,
    tokens_per_s: f64,
    spread: Spread,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    let streams = args.batches.iter().copied().max().unwrap_or(1).max(1);
    let longest = (args.prompt.max(args.depth + args.new)).max(args.batch_prompt + args.new);
    if args.repeats == 0 || args.prompt == 0 || args.new == 0 || args.batches.contains(&0) {
        return Err(Failure::caller(anyhow::anyhow!("a count is 0, the least is 1")));
    }
    let loaded = args.model.open()?;
    let (model, chunk) = (&loaded.model, args.model.chunk()?);
    if longest > model.context_len() {
        return Err(Failure::caller(anyhow::anyhow!(
            "{longest} tokens are asked for, the context limit is {} tokens",
            model.context_len()
        )));
    }
    let mut bench = Bench { model, chunk, work: Workspace::default(), clock: Clock::start() };
    let prefill = bench.repeat(args.repeats, |bench| bench.prefill(args.prompt))?;
    let decode = bench.repeat(args.repeats, |bench| bench.decode(1, args.depth, args.new))?;
    let mut batches = Vec::new();
    for &rows in &args.batches {
        let rates = |bench: &mut Bench<'_>| bench.decode(rows, args.batch_prompt, args.new);
        let spread = bench.repeat(args.repeats, rates)?;
        batches.push(Batch { rows, tokens_per_s: spread.median, spread });
    }
    let conditions = json!({
        "model": args.model.model,
        "sha256": about(&loaded)?.model.sha256,
        "quantisation": loaded.quantisation(),
        "engine": env!("CARGO_PKG_VERSION"),
        "cpu": causeway_session::cpu_name(),
        "isa": model.kernels().isa().name(),
        "threads": model.threads(),
        "kv_type": model.settings().kv_type.name(),
        "prompt": args.prompt,
        "new": args.new,
        "depth": args.depth,
        "chunk": chunk,
        "batch_prompt": args.batch_prompt,
        "streams": streams,
        "repeats": args.repeats,
    });
    let mut out = std::io::stdout().lock();
    if args.json {
        let line = json!({
            "prefill_tokens_per_s": prefill.median,
            "decode_tokens_per_s": decode.median,
            "batches": batches,
            "prefill": prefill,
            "decode": decode,
            "conditions": conditions,
        });
        writeln!(out, "{line}")?;
        return Ok(());
    }
    let line = |name: &str, s: &Spread| {
        format!("{name:<28}{:>10.1} tok/s   ({:.1} to {:.1})", s.median, s.min, s.max)
    };
    writeln!(out, "{conditions}")?;
    writeln!(out, "{}", line(&format!("prefill {}", args.prompt), &prefill))?;
    writeln!(out, "{}", line(&format!("decode {} after {}", args.new, args.depth), &decode))?;
    for batch in &batches {
        writeln!(out, "{}", line(&format!("{} streams together", batch.rows), &batch.spread))?;
    }
    Ok(())
}

/// A model and the buffers of its passes.
struct Bench<'a> {
    model: &'a Model,
    chunk: usize,
    work: Workspace,
    clock: Clock,
}

impl Bench<'_> {
    /// One run that is not counted, then `repeats` that are.
    fn repeat(
        &mut self,
        repeats: usize,
        mut rate: impl FnMut(&mut Self) -> Result<f64, Failure>,
    ) -> Result<Spread, Failure> {
        rate(self)?;
        let figures = (0..repeats).map(|_| rate(self)).collect::<Result<Vec<_>, _>>()?;
        Ok(Spread::of(figures))
    }

    /// Tokens a second over one prompt, logits of its last position included.
    fn prefill(&mut self, tokens: usize) -> Result<f64, Failure> {
        let mut cache = Cache::new(&self.model.kv_shape(1, self.chunk));
        let start = self.clock.now_ns();
        self.extend(&mut cache, 0, 0, tokens)?;
        Ok(self.rate(tokens, start))
    }

    /// Tokens a second of `streams` streams that decode `new` tokens each after `depth`.
    fn decode(&mut self, streams: usize, depth: usize, new: usize) -> Result<f64, Failure> {
        let mut cache = Cache::new(&self.model.kv_shape(streams, self.chunk));
        for stream in 0..streams {
            self.extend(&mut cache, stream, 0, depth)?;
        }
        let start = self.clock.now_ns();
        for step in 0..new {
            let position = depth + step;
            let tokens: Vec<[TokenId; 1]> =
                (0..streams).map(|stream| [self.token(stream * 7 + position)]).collect();
            let mut spans = Vec::new();
            for (stream, tokens) in tokens.iter().enumerate() {
                let request = RequestId(stream as u64);
                cache.reserve(request, position + 1).map_err(Failure::world)?;
                spans.push(Span { request, first_position: position, tokens, logits_wanted: 1 });
            }
            self.model.forward(&spans, &mut cache, &mut self.work).map_err(model_failure)?;
            for span in &spans {
                cache.retire(span.request, position + 1);
            }
        }
        Ok(self.rate(streams * new, start))
    }

    /// Computes positions `from..to` of one stream, a chunk at a time.
    fn extend(
        &mut self,
        cache: &mut Cache,
        stream: usize,
        from: usize,
        to: usize,
    ) -> Result<(), Failure> {
        let request = RequestId(stream as u64);
        for first_position in (from..to).step_by(self.chunk) {
            let end = to.min(first_position + self.chunk);
            let tokens: Vec<TokenId> =
                (first_position..end).map(|position| self.token(stream * 7 + position)).collect();
            cache.reserve(request, end).map_err(Failure::world)?;
            let logits_wanted = usize::from(end == to);
            let span = Span { request, first_position, tokens: &tokens, logits_wanted };
            self.model.forward(&[span], cache, &mut self.work).map_err(model_failure)?;
            cache.retire(request, end);
        }
        Ok(())
    }

    /// A token that depends on its place only.
    fn token(&self, place: usize) -> TokenId {
        let vocab_size = self.model.config().shape.vocab_size;
        TokenId(u32::try_from(place * 7_919 % vocab_size).unwrap_or(0))
    }

    #[expect(clippy::cast_precision_loss, reason = "counts and times are far below 2^53")]
    fn rate(&self, tokens: usize, start_ns: u64) -> f64 {
        tokens as f64 * 1e9 / (self.clock.now_ns() - start_ns).max(1) as f64
    }
}
