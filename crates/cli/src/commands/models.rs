//! `causeway models`: list the models there are and where they are kept.

use std::io::Write;

use causeway_models::hub::{self, Kept};
use causeway_models::{CATALOGUE, Entry, Home, State};
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::model_path;

/// Arguments of `causeway models`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// One JSON object a line for each model that is fetched and whole; absent ones give no line.
    #[arg(long)]
    json: bool,
}

/// One fetched model on the wire.
#[derive(Debug, Serialize)]
struct Line<'a> {
    name: &'a str,
    path: String,
    bytes: u64,
    sha256: String,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    let home = model_path::home()?;
    let mut out = std::io::stdout().lock();
    if args.json {
        return CATALOGUE.iter().try_for_each(|entry| write_json(&mut out, entry, &home));
    }
    writeln!(out, "models live in {}", home.models().display())?;
    for entry in CATALOGUE {
        let state = match home.state(entry).map_err(model_path::failure)? {
            State::Ready => "fetched",
            State::Absent => "not fetched",
            State::Damaged => "damaged",
        };
        let Entry { name, summary, bytes, .. } = entry;
        let megabytes = bytes.div_ceil(1_000_000);
        writeln!(out, "{name:<20} {megabytes:>4} MB  {state:<12} {summary}")?;
    }
    // Without a cache of the hub there is nothing of it to list.
    model_path::the_hub().map_or(Ok(()), |hub| write_kept(&mut out, &hub))
}

/// Repositories in the hub's cache that hold a model.
fn write_kept(out: &mut impl Write, hub: &hub::Hub) -> Outcome {
    let kept: Vec<Kept> = hub::kept(hub).into_iter().filter(is_model).collect();
    if kept.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nmodels of the hub live in {}", hub.cache.display())?;
    for Kept { repository, bytes, bytes_partial, files, .. } in kept {
        let megabytes = (bytes + bytes_partial).div_ceil(1_000_000);
        let state = if bytes_partial > 0 { "partial" } else { "fetched" };
        let weights = files.iter().filter(|file| is_weights(file));
        let weights: Vec<&str> = weights.map(String::as_str).collect();
        let name = format!("hf:{repository}");
        writeln!(out, "{name:<20} {megabytes:>4} MB  {state:<12} {}", weights.join(", "))?;
    }
    Ok(())
}

fn is_model(kept: &Kept) -> bool {
    kept.bytes_partial > 0 || kept.files.iter().any(|file| is_weights(file))
}

fn is_weights(file: &str) -> bool {
    file.ends_with(".gguf") || file.ends_with(".safetensors")
}

fn write_json(out: &mut impl Write, entry: &'static Entry, home: &Home) -> Outcome {
    match home.state(entry).map_err(model_path::failure)? {
        State::Absent => return Ok(()),
        State::Damaged => {
            eprintln!("causeway: `{}` is damaged: run `causeway pull {0}`", entry.name);
            return Ok(());
        }
        State::Ready => {}
    }
    let line = Line {
        name: entry.name,
        path: home.file_of(entry).display().to_string(),
        bytes: entry.bytes,
        sha256: entry.sha256.to_string(),
    };
    writeln!(out, "{}", serde_json::to_string(&line).map_err(Failure::world)?)?;
    Ok(())
}
