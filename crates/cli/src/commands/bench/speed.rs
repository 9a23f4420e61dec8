//! `causeway bench speed`: prefill and decode rates of a model, without sampling.

use std::io::Write;
use std::time::Duration;

use causeway_kv_cache::Cache;
use causeway_model::{Model, Span, Workspace};
use causeway_request::{RequestId, TokenId};
use causeway_session::Loaded;
use serde::Serialize;
use serde_json::{Value, json};

use super::Spread;
use super::machine::{Limits, Machine, Resident};
use crate::clock::Clock;
use crate::failure::{Failure, Outcome};
use crate::loaded::{ModelFlags, about, model_failure};

/// Arguments of `causeway bench speed`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelFlags,
    /// Prompt tokens of the prefill.
    #[arg(short, long, value_name = "TOKENS", default_value_t = 512)]
    prompt: usize,
    /// Tokens decoded, one at a time.
    #[arg(short, long, value_name = "TOKENS", default_value_t = 128)]
    new: usize,
    /// Tokens of context before the decode of one stream begins.
    #[arg(short, long, value_name = "TOKENS", default_value_t = 0)]
    depth: usize,
    /// Streams decoded together, each after a prompt of its own; none where empty.
    #[arg(short, long, value_delimiter = ',', value_name = "N,N,…")]
    batches: Vec<usize>,
    /// Prompt tokens of each stream decoded together.
    #[arg(long, value_name = "TOKENS", default_value_t = 128)]
    batch_prompt: usize,
    /// Runs counted of each figure, after one that is not.
    #[arg(short, long, value_name = "N", default_value_t = 5)]
    repeats: usize,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// Most streams decoded together.
const STREAMS_MAX: usize = 1_024;

/// Streams decoded together.
#[derive(Debug, Serialize)]
struct Batch {
    rows: usize,
    tokens_per_s: f64,
    spread: Spread,
}

/// Memory once the first answer is given, its keys and values still held.
#[derive(Debug, Serialize)]
struct Taken {
    file_bytes: u64,
    /// Re-laid matrices.
    weights_bytes: usize,
    /// Keys and values of the answer's positions.
    kv_bytes: usize,
    #[serde(flatten)]
    resident: Resident,
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
struct Figures {
    prefill_tokens_per_s: f64,
    decode_tokens_per_s: f64,
    batches: Vec<Batch>,
    prefill: Spread,
    decode: Spread,
    /// From the command's start to a model ready to compute, its text side too.
    load_ms: f64,
    memory: Taken,
    limits: Limits,
    /// Bytes of weights, keys and values that decoding reads, over the bandwidth.
    decode_read_share: f64,
    /// Operations of the products in the layers of a whole prefill, over the int8 peak.
    prefill_int8_share: f64,
    conditions: Value,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    let clock = Clock::start();
    let counts = [args.repeats, args.prompt, args.new];
    if counts.contains(&0) || args.batches.contains(&0) {
        return Err(Failure::caller(anyhow::anyhow!("a count is 0, the least is 1")));
    }
    if let Some(streams) = args.batches.iter().find(|&&streams| streams > STREAMS_MAX) {
        return Err(Failure::caller(anyhow::anyhow!(
            "{streams} streams are asked for, the limit is {STREAMS_MAX}"
        )));
    }
    let loaded = args.model.open()?;
    let load_ns = clock.now_ns();
    causeway_kernels::wait_for_merging();
    let (model, chunk) = (&loaded.model, args.model.chunk()?);
    let after = |tokens: usize| tokens.saturating_add(args.new);
    let longest = args.prompt.max(after(args.depth)).max(after(args.batch_prompt));
    if longest > model.context_len() {
        return Err(Failure::caller(anyhow::anyhow!(
            "{longest} tokens are asked for, the context limit is {} tokens",
            model.context_len()
        )));
    }
    let mut bench = Bench { model, chunk, work: Workspace::default(), clock };
    let memory = bench.first_answer(args, loaded.file.bytes())?;
    let prefill = bench.repeat(args.repeats, |bench| bench.prefill(args.prompt))?;
    let decode = bench.repeat(args.repeats, |bench| bench.decode(1, args.depth, args.new))?;
    let mut batches = Vec::new();
    for &rows in &args.batches {
        let rates = |bench: &mut Bench<'_>| bench.decode(rows, args.batch_prompt, args.new);
        let spread = bench.repeat(args.repeats, rates)?;
        batches.push(Batch { rows, tokens_per_s: spread.median, spread });
    }
    let (kernels, pool) = (model.kernels(), model.pool());
    let limits = Machine { kernels, pool, clock, repeats: LIMIT_REPEATS }.limits()?;
    let read_bytes = memory.weights_bytes + kv_bytes(model, args.depth + args.new / 2);
    let figures = Figures {
        prefill_tokens_per_s: prefill.median,
        decode_tokens_per_s: decode.median,
        decode_read_share: share(read_bytes, &decode, limits.read_gb_per_s),
        prefill_int8_share: share(layer_operations(model), &prefill, limits.int8_gop_per_s),
        batches,
        prefill,
        decode,
        load_ms: Duration::from_nanos(load_ns).as_secs_f64() * 1e3,
        memory,
        limits,
        conditions: conditions(args, &loaded)?,
    };
    let mut out = std::io::stdout().lock();
    if args.json {
        let line = serde_json::to_string(&figures).map_err(Failure::world)?;
        writeln!(out, "{line}")?;
        return Ok(());
    }
    write_text(&mut out, args, &figures)
}

/// Runs counted of each limit.
const LIMIT_REPEATS: usize = 5;

/// What each token takes, as a share of a limit in thousand millions a second.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn share(per_token: usize, tokens_per_s: &Spread, giga_per_s: f64) -> f64 {
    per_token as f64 * tokens_per_s.median / 1e9 / giga_per_s
}

/// Multiplications and additions of one token in the layers' products.
fn layer_operations(model: &Model) -> usize {
    let layers = model.matrices().filter(|(part, _)| *part != "output");
    layers.map(|(_, matrix)| 2 * matrix.rows() * matrix.columns()).sum()
}

/// Bytes of keys and values that a query reads after `positions`, windows heeded.
fn kv_bytes(model: &Model, positions: usize) -> usize {
    let shape = model.kv_shape(1, 1);
    let position_bytes = Cache::new(&shape).position_bytes();
    let layers = shape.layers.len();
    let read = shape.layers.iter().map(|layer| layer.window.unwrap_or(positions).min(positions));
    position_bytes / layers.max(1) * read.sum::<usize>()
}

fn conditions(args: &Args, loaded: &Loaded) -> Result<Value, Failure> {
    let model = &loaded.model;
    Ok(json!({
        "model": args.model.model,
        "sha256": about(loaded)?.model.sha256,
        "quantisation": loaded.quantisation(),
        "engine": env!("CARGO_PKG_VERSION"),
        "cpu": causeway_session::cpu_name(),
        "isa": model.kernels().isa().name(),
        "threads": model.threads(),
        "threads_by": args.model.threads_by(),
        "kv_type": model.settings().kv_type.name(),
        "prompt": args.prompt,
        "new": args.new,
        "depth": args.depth,
        "chunk": args.model.chunk()?,
        "batch_prompt": args.batch_prompt,
        "streams": args.batches.iter().copied().max().unwrap_or(1),
        "repeats": args.repeats,
    }))
}

fn write_text(out: &mut dyn Write, args: &Args, figures: &Figures) -> Outcome {
    let line = |name: &str, s: &Spread| {
        format!("{name:<28}{:>10.1} tok/s   ({:.1} to {:.1})", s.median, s.min, s.max)
    };
    let Figures { prefill, decode, limits, memory, .. } = figures;
    writeln!(out, "{}", figures.conditions)?;
    writeln!(out, "{}", line(&format!("prefill {}", args.prompt), prefill))?;
    writeln!(out, "{}", line(&format!("decode {} after {}", args.new, args.depth), decode))?;
    for batch in &figures.batches {
        writeln!(out, "{}", line(&format!("{} streams together", batch.rows), &batch.spread))?;
    }
    writeln!(
        out,
        "decode reads at {:.0}% of {:.1} GB/s, prefill computes at {:.0}% of {:.0} Gop/s, an empty \
         step takes {:.0} ns",
        figures.decode_read_share * 100.0,
        limits.read_gb_per_s,
        figures.prefill_int8_share * 100.0,
        limits.int8_gop_per_s,
        limits.step_ns,
    )?;
    let mib = |bytes: u64| bytes >> 20;
    let told = |bytes: Option<u64>| bytes.map_or_else(|| "-".to_owned(), |b| mib(b).to_string());
    writeln!(
        out,
        "loaded in {:.0} ms; {} MiB resident after the first answer, {} MiB at most (file {} MiB, \
         keys and values {} MiB)",
        figures.load_ms,
        told(memory.resident.resident_bytes),
        told(memory.resident.peak_bytes),
        mib(memory.file_bytes),
        mib(memory.kv_bytes as u64),
    )?;
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

    /// Reads a prompt, decodes after it, and says what memory that took.
    fn first_answer(&mut self, args: &Args, file_bytes: u64) -> Result<Taken, Failure> {
        let (model, new) = (self.model, args.new);
        let prompt = args.prompt.min(model.context_len() - new);
        let mut cache = Cache::new(&model.kv_shape(1, self.chunk));
        self.decode_in(&mut cache, 1, prompt, new)?;
        let weights_bytes = model.matrices().map(|(_, matrix)| matrix.bytes()).sum();
        let kv_bytes = kv_bytes(model, prompt + new);
        let resident = Resident::of_this_program();
        Ok(Taken { file_bytes, weights_bytes, kv_bytes, resident })
    }

    /// Tokens a second of `streams` streams that decode `new` tokens each after `depth`.
    fn decode(&mut self, streams: usize, depth: usize, new: usize) -> Result<f64, Failure> {
        let mut cache = Cache::new(&self.model.kv_shape(streams, self.chunk));
        self.decode_in(&mut cache, streams, depth, new)
    }

    /// As `decode`, in a cache that holds none of the streams.
    fn decode_in(
        &mut self,
        cache: &mut Cache,
        streams: usize,
        depth: usize,
        new: usize,
    ) -> Result<f64, Failure> {
        for stream in 0..streams {
            self.extend(cache, stream, 0, depth)?;
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
            self.model.forward(&spans, cache, &mut self.work).map_err(model_failure)?;
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
