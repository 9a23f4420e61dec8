//! `causeway quantize`: write a model file again with its weights in smaller types.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write};
use std::path::PathBuf;

use causeway_quantise::{self as quantise, Choice, QuantiseError, Rule, Target};
use causeway_weights::ModelFile;
use serde_json::json;

use crate::clock::Clock;
use crate::failure::{Failure, Outcome};
use crate::model_path;

/// Arguments of `causeway quantize`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A `.gguf` file in F32, F16 or BF16, or a model's name.
    #[arg(value_name = "IN")]
    model: String,
    /// The file to write; it bears this name only when it is whole.
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// The type of most tensors: q8_0, q5_0, q5_1, q4_0, q4_1, q4_k, q5_k, q6_k or f16.
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
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    let path = model_path::resolve(&args.model)?;
    let source = ModelFile::open(&path).map_err(QuantiseError::from).map_err(failure)?;
    let choice = Choice {
        target: args.target,
        rules: args.per_tensor.clone(),
        is_pure: args.pure,
        allows_requantising: args.allow_requantize,
    };
    let all = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = args.threads.map_or(all, usize::from);
    let clock = Clock::start();
    let (count, mut done) = (source.tensors().len(), 0);
    let is_terminal = std::io::stderr().is_terminal();
    let show = |line: &str| {
        if is_terminal {
            eprint!("\r\x1b[K{line}");
            std::io::stderr().flush().ok();
        }
    };
    let written = quantise::quantise(&source, &args.out, &choice, threads, |_| {
        done += 1;
        show(&format!("{done} of {count} tensors"));
    });
    show("");
    let outcomes = written.map_err(failure)?;
    let seconds = clock.now_ns() as f64 / 1e9;
    let bytes = std::fs::metadata(&args.out)?.len();
    write_report(args, &outcomes, (source.bytes(), bytes), seconds)
}

fn failure(error: QuantiseError) -> Failure {
    let is_callers_mistake = error.is_callers_mistake();
    Failure::of(error, is_callers_mistake)
}

fn write_report(
    args: &Args,
    outcomes: &[quantise::Outcome],
    (before, after): (u64, u64),
    seconds: f64,
) -> Outcome {
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
            "seconds": seconds, "tensors": tensors,
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
    Ok(())
}
