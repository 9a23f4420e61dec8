//! `causeway quantize`: write a model file again with its weights in smaller types.

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::ControlFlow::{Break, Continue};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use causeway_model::{Config, Export, ModelError};
use causeway_quantise::{self as quantise, Choice, QuantiseError, Rule, Target};
use causeway_weights::gguf::Source;
use causeway_weights::{Format, ModelFile};
use serde_json::json;

use super::run::{clear_progress, interrupts, show_progress};
use crate::clock::Clock;
use crate::failure::{Failure, Outcome};
use crate::loaded::{model_failure, session_failure};
use crate::model_path;

mod eval;

/// Arguments of `causeway quantize`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A `.gguf` file or a Hugging Face folder in F32, F16 or BF16, or a model's name.
    #[arg(value_name = "IN")]
    model: String,
    /// The file to write; it bears this name only when it is whole.
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// The type of most tensors: q8_0, q5_0, q5_1, q4_0, q4_1, q4_k, q5_k, q6_k, f16 or f32.
    #[arg(long = "type", value_name = "TYPE")]
    target: Target,
    /// Types for tensors by name, such as `*.attn_v.weight=q8_0`; the first that matches decides.
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    per_tensor: Vec<Rule>,
    /// One type for all: no more bits for the tensors that errors hurt most.
    #[arg(long)]
    pure: bool,
    /// Take tensors that are quantised already, whose errors add up.
    #[arg(long)]
    allow_requantize: bool,
    /// Threads; all of the machine's where none is given.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Compare the result with IN on the text of this file: KL and bits per byte.
    #[arg(long, value_name = "TEXT")]
    eval: Option<PathBuf>,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    let path = model_path::resolve(&args.model)?;
    let file = ModelFile::open(&path).map_err(QuantiseError::from).map_err(failure)?;
    // What is wrong with the text is said before the long work.
    let text = args.eval.as_deref().map(|text| eval::Windows::of(text, &file)).transpose()?;
    let clock = Clock::start();
    let outcomes = match file.format() {
        Format::Gguf { .. } => write(args, &file)?,
        Format::Safetensors => write(args, &export(&file, &path)?)?,
    };
    let seconds = clock.now_ns() as f64 / 1e9;
    let bytes = (file.bytes(), std::fs::metadata(&args.out)?.len());
    let eval = text.map(|text| text.compare(&path, &args.out, args.threads()));
    write_report(args, &outcomes, &Report { bytes, seconds, eval: eval.transpose()? })
}

impl Args {
    fn threads(&self) -> usize {
        let all = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.threads.map_or(all, usize::from)
    }
}

/// A folder as the GGUF file that it would be, with its tokenizer where it has one and with what it
/// says about decoding.
fn export<'a>(file: &'a ModelFile, path: &Path) -> Result<Export<'a>, Failure> {
    let config = Config::of(file).map_err(ModelError::from).map_err(model_failure)?;
    let keys = causeway_text::gguf_keys(path, config.shape.vocab_size).map_err(Failure::world)?;
    if keys.is_none() {
        let path = path.display();
        eprintln!("causeway: `{path}` has no tokenizer, and so the file will have none");
    }
    let mut keys = keys.unwrap_or_default();
    keys.extend(causeway_session::sampling_keys(file).map_err(session_failure)?);
    Export::of(file, keys).map_err(Failure::world)
}

/// Writes the file; the first Ctrl-C stops it between two tensors.
fn write(args: &Args, source: &dyn Source) -> Result<Vec<quantise::Outcome>, Failure> {
    let choice = Choice {
        target: args.target,
        rules: args.per_tensor.clone(),
        is_pure: args.pure,
        allows_requantising: args.allow_requantize,
    };
    let interrupts = interrupts()?;
    let (count, mut done) = (source.tensors().len(), 0);
    let written = quantise::quantise(source, &args.out, &choice, args.threads(), |_| {
        done += 1;
        show_progress("quantising", done, count, "tensors");
        if interrupts.load(Ordering::Relaxed) { Break(()) } else { Continue(()) }
    });
    clear_progress();
    written.map_err(failure)
}

fn failure(error: QuantiseError) -> Failure {
    let is_callers_mistake = error.is_callers_mistake();
    Failure::of(error, is_callers_mistake)
}

/// What is said beside the tensors.
struct Report {
    /// Of the source's weights, and of the file.
    bytes: (u64, u64),
    seconds: f64,
    eval: Option<eval::Eval>,
}

fn write_report(args: &Args, outcomes: &[quantise::Outcome], report: &Report) -> Outcome {
    let Report { bytes: (before, after), seconds, eval } = report;
    let mut out = std::io::stdout().lock();
    if args.json {
        let tensors: Vec<_> = outcomes
            .iter()
            .map(|quantise::Outcome { name, from, to, elements, bytes, rmse, max }| {
                json!({
                    "name": name, "from": from.name(), "to": to.name(), "elements": elements,
                    "bytes": bytes, "rmse": rmse, "max": max,
                })
            })
            .collect();
        let line = json!({
            "path": args.out.display().to_string(), "bytes_before": before, "bytes": after,
            "seconds": seconds, "tensors": tensors, "eval": eval,
        });
        writeln!(out, "{line}")?;
        return Ok(());
    }
    let width = outcomes.iter().map(|outcome| outcome.name.chars().count()).max().unwrap_or(0);
    let width = width.min(48);
    let mut types = BTreeMap::new();
    for quantise::Outcome { name, from, to, bytes, rmse, max, elements: _ } in outcomes {
        let name = causeway_ledger::escaped(name);
        let (from, to) = (from.name(), to.name());
        writeln!(out, "{name:<width$}  {from:<5} {to:<5} rmse {rmse:.6e}  max {max:.6e}")?;
        let (count, sum) = types.entry(to).or_insert((0_usize, 0_usize));
        (*count, *sum) = (*count + 1, *sum + bytes);
    }
    writeln!(out)?;
    for (name, (count, bytes)) in types {
        writeln!(out, "{name:<5} {count:>5} tensors {bytes:>15} bytes")?;
    }
    let path = args.out.display();
    writeln!(out, "{path}: {after} bytes of {before}, {seconds:.1} s")?;
    if let Some(eval) = eval {
        writeln!(out, "{eval}")?;
    }
    Ok(())
}
