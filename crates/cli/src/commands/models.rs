//! `causeway models`: list the models there are, what they are, and where they are kept.

mod facts;

use std::io::Write;
use std::path::{Path, PathBuf};

use causeway_models::hub::{self, Hub, Kept};
use causeway_models::{Alias, Carrier, Catalogue, Entry, Home, Model, Origin, Source, State};
use serde::Serialize;

use self::facts::Facts;
use crate::failure::{Failure, Outcome};
use crate::model_path;

/// Arguments of `causeway models`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// One JSON object a line for each model that is there and whole; absent ones give no line.
    #[arg(long)]
    json: bool,
}

/// One model of the list, and on the wire where it is there.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    path: Option<PathBuf>,
    /// Of all its files; of one that is not there, what the catalogue says.
    bytes: Option<u64>,
    sha256: Option<String>,
    #[serde(flatten)]
    facts: Facts,
    /// `packages`, `url`, `path` or `hub`.
    source: &'static str,
    /// The catalogue that names it: `built-in`, `user`, or none.
    catalogue: Option<&'static str>,
    #[serde(skip)]
    state: &'static str,
    #[serde(skip)]
    summary: String,
}

/// The states of a row whose model can be used.
const READY: &str = "fetched";
const DAMAGED: &str = "damaged";

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    let home = model_path::home()?;
    let catalogue = model_path::catalogue().map_err(model_path::failure)?;
    // Without a cache of the hub there is nothing of it to list.
    let hub = model_path::the_hub().ok();
    let named: Result<Vec<Row>, Failure> =
        catalogue.models().iter().map(|model| row(model, &home, hub.as_ref())).collect();
    let named = named?;
    let kept = hub.as_ref().map(kept).unwrap_or_default();
    let mut out = std::io::stdout().lock();
    if args.json {
        return named.iter().chain(&kept).try_for_each(|row| write_json(&mut out, row));
    }
    write_list(&mut out, &named, &catalogue, &home)?;
    if let Some(hub) = hub.filter(|_| !kept.is_empty()) {
        writeln!(out, "\nmodels of the hub live in {}", hub.cache.display())?;
        kept.iter().try_for_each(|row| write_row(&mut out, row))?;
        writeln!(out, "{} in all", megabytes(hub_bytes(&hub)))?;
    }
    Ok(())
}

/// A model of the catalogue as it stands on this machine.
fn row(model: &Model, home: &Home, hub: Option<&Hub>) -> Result<Row, Failure> {
    let Model { name, summary, source, origin } = model;
    let catalogue = Some(match origin {
        Origin::BuiltIn => "built-in",
        Origin::User => "user",
    });
    let (state, path, bytes, sha256, word) = match source {
        Source::File(entry) => of_entry(entry, home)?,
        Source::Hub(name) => {
            let path = hub.and_then(|hub| hub::cached(hub, name));
            (if path.is_some() { READY } else { "not fetched" }, path, None, None, "hub")
        }
        Source::Path(path) if path.exists() => (READY, Some(path.clone()), None, None, "path"),
        Source::Path(_) => ("missing", None, None, None, "path"),
    };
    let facts = path.as_deref().map(Facts::of).unwrap_or_default();
    let bytes = bytes.or(facts.bytes);
    let (name, summary) = (name.clone(), summary.clone());
    Ok(Row { name, path, bytes, sha256, facts, source: word, catalogue, state, summary })
}

type Standing = (&'static str, Option<PathBuf>, Option<u64>, Option<String>, &'static str);

fn of_entry(entry: &Entry, home: &Home) -> Result<Standing, Failure> {
    let source = match entry.carrier {
        Carrier::Packages(_) => "packages",
        Carrier::Url(_) => "url",
    };
    let path = home.file_of(entry);
    Ok(match home.state(entry).map_err(model_path::failure)? {
        State::Absent => ("not fetched", None, entry.bytes, None, source),
        State::Damaged => (DAMAGED, None, entry.bytes, None, source),
        State::Ready => {
            let bytes = path.metadata().map(|found| found.len()).ok();
            (READY, Some(path), bytes, Some(entry.sha256.to_string()), source)
        }
    })
}

/// The models in the hub's cache, and repositories where only a part of one is.
fn kept(hub: &Hub) -> Vec<Row> {
    let mut rows = Vec::new();
    for Kept { repository, bytes_partial, .. } in hub::kept(hub) {
        let Some((owner, repo)) = repository.split_once('/') else { continue };
        let models = hub::models_of(hub, owner, repo);
        if models.is_empty() && bytes_partial > 0 {
            let name = format!("hf:{repository}");
            rows.push(of_hub(name, None, Some(bytes_partial), "partial"));
        }
        for (name, path) in models {
            rows.push(of_hub(name.to_string(), Some(path), None, READY));
        }
    }
    rows
}

fn of_hub(name: String, path: Option<PathBuf>, bytes: Option<u64>, state: &'static str) -> Row {
    let facts = path.as_deref().map(Facts::of).unwrap_or_default();
    let summary = path.as_deref().and_then(Path::file_name).unwrap_or_default();
    Row {
        name,
        bytes: bytes.or(facts.bytes),
        sha256: path.as_deref().and_then(blob_hash),
        facts,
        source: "hub",
        catalogue: None,
        state,
        summary: summary.to_string_lossy().into_owned(),
        path,
    }
}

/// The cache names a large file's bytes by their SHA-256.
fn blob_hash(path: &Path) -> Option<String> {
    let blob = std::fs::canonicalize(path).ok()?;
    let name = blob.file_name()?.to_str()?;
    causeway_models::Sha256::from_hex(name).map(|hash| hash.to_string())
}

fn write_list(out: &mut impl Write, rows: &[Row], catalogue: &Catalogue, home: &Home) -> Outcome {
    writeln!(out, "models live in {}", home.models().display())?;
    writeln!(
        out,
        "{:<20} {:>8}  {:<11}  {:<10} {:<8} {:>7}  {:<9} what",
        "name", "size", "state", "kind", "type", "context", "source"
    )?;
    rows.iter().try_for_each(|row| write_row(out, row))?;
    for Alias { name, of } in catalogue.aliases() {
        writeln!(out, "{name:<20} is {of}")?;
    }
    let bytes = facts::bytes_below(&home.models());
    writeln!(out, "{} in all", megabytes(bytes))?;
    Ok(())
}

fn write_row(out: &mut impl Write, row: &Row) -> Outcome {
    let Row { name, bytes, facts, source, catalogue, state, summary, .. } = row;
    let size = bytes.map(megabytes).unwrap_or_else(|| "-".to_owned());
    let kind = facts.architecture.as_deref().unwrap_or("-");
    let quantisation = facts.quantisation.as_deref().unwrap_or("-");
    let context = facts.context.map(|context| context.to_string());
    let context = context.as_deref().unwrap_or("-");
    let source = if *catalogue == Some("built-in") { "built-in" } else { source };
    let line = format!(
        "{name:<20} {size:>8}  {state:<11}  {kind:<10} {quantisation:<8} {context:>7}  \
         {source:<9} {summary}"
    );
    // Names inside files are other people's, and may not drive the reader's terminal.
    writeln!(out, "{}", causeway_ledger::escaped(line.trim_end()))?;
    Ok(())
}

fn write_json(out: &mut impl Write, row: &Row) -> Outcome {
    match row.state {
        READY => writeln!(out, "{}", serde_json::to_string(row).map_err(Failure::world)?)?,
        DAMAGED => eprintln!("causeway: `{}` is damaged: run `causeway pull {0}`", row.name),
        _ => {}
    }
    Ok(())
}

fn hub_bytes(hub: &Hub) -> u64 {
    hub::kept(hub).iter().map(|kept| kept.bytes + kept.bytes_partial).sum()
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1_000_000))
}
