//! `causeway ledger`: list, show and export the records in the store.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use causeway_ledger::{
    ExportError, Filter, STORE_FILE_NAME, Stop, Store, StoreError, Stored, account_page,
    export_file, export_folder, export_lines, parse_since, table, to_json,
};

use crate::clock::Clock;
use crate::failure::{Failure, Outcome};
use crate::model_path::home;

/// Arguments of `causeway ledger`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List records, newest first.
    Ls(Ls),
    /// Show the account of one record.
    Show(Show),
    /// Write records into files, oldest first.
    Export(Export),
}

#[derive(Debug, clap::Args)]
struct Ls {
    #[command(flatten)]
    place: StorePlace,
    #[command(flatten)]
    taken: Taken,
    /// List at most so many.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Print one line of JSON for each record.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Show {
    #[command(flatten)]
    place: StorePlace,
    /// The record's id, the beginning of it, or the id of its request.
    id: String,
    /// Add every step, one line each.
    #[arg(long, conflicts_with = "json")]
    steps: bool,
    /// Print the record's file, byte for byte.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Export {
    #[command(flatten)]
    place: StorePlace,
    #[command(flatten)]
    taken: Taken,
    /// Export the newest so many.
    #[arg(short = 'n', long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// A folder for one file each, a .jsonl file for one line each, or `-` for lines on stdout.
    #[arg(value_name = "DIR|FILE.jsonl")]
    to: PathBuf,
}

/// Which records are taken: those that meet all of these.
#[derive(Debug, Clone, clap::Args)]
struct Taken {
    /// The model's name, or the beginning of its weights' hash.
    #[arg(short, long)]
    model: Option<String>,
    /// The policy's name, or the beginning of its hash.
    #[arg(long)]
    policy: Option<String>,
    /// The stop reason.
    #[arg(long, value_name = "REASON", value_parser = Stop::NAMES)]
    stop: Option<String>,
    /// The id of the request.
    #[arg(long, value_name = "ID")]
    request: Option<String>,
    /// The name of the API key that asked.
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// The session, as the client names it.
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Scheduled at this time or later: a span such as 2h or 7d, or a UTC date and time.
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
}

/// Where the ledger's store is.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct StorePlace {
    /// The ledger's store [default: ledger.sqlite in $CAUSEWAY_HOME].
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
}

impl StorePlace {
    /// Whether a place was named.
    pub(crate) fn is_named(&self) -> bool {
        self.store.is_some()
    }

    /// The file: the one that was named, or the one in the home.
    pub(crate) fn path(&self) -> Result<PathBuf, Failure> {
        match &self.store {
            Some(path) => Ok(path.clone()),
            None => Ok(home()?.root().join(STORE_FILE_NAME)),
        }
    }

    /// Opens the store to read.
    pub(crate) fn open_to_read(&self) -> Result<Store, Failure> {
        Store::open_to_read(&self.path()?).map_err(store_failure)
    }

    /// Opens the store to write, and makes it where there is none; the home too.
    pub(crate) fn open(&self) -> Result<Store, Failure> {
        let path = self.path()?;
        if let (None, Some(home)) = (&self.store, path.parent()) {
            std::fs::create_dir_all(home)?;
        }
        Store::open(&path).map_err(store_failure)
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    match &args.command {
        Command::Ls(args) => list(args),
        Command::Show(args) => show(args),
        Command::Export(args) => export(args),
    }
}

impl Taken {
    fn filter(&self, limit: Option<u32>) -> Result<Filter, Failure> {
        let Self { model, policy, stop, request, owner, session, since } = self.clone();
        let now = Clock::start().start_unix_ms;
        let since = since.map(|text| parse_since(&text, now)).transpose();
        Ok(Filter {
            model,
            policy,
            stop,
            request_id: request,
            owner,
            session,
            since_unix_ms: since.map_err(Failure::caller)?,
            limit: limit.map(|limit| limit as usize),
        })
    }
}

fn list(args: &Ls) -> Outcome {
    let store = args.place.open_to_read()?;
    let listed = store.list(&args.taken.filter(Some(args.limit))?).map_err(store_failure)?;
    let mut out = io::stdout().lock();
    if !args.json {
        out.write_all(table(&listed).as_bytes())?;
    } else {
        for listed in &listed {
            let line = serde_json::to_string(listed).map_err(Failure::world)?;
            writeln!(out, "{line}")?;
        }
    }
    Ok(out.flush()?)
}

fn show(args: &Show) -> Outcome {
    let stored = args.place.open_to_read()?.find(&args.id).map_err(store_failure)?;
    let page = if args.json {
        to_json(&stored.record).map_err(Failure::world)?
    } else {
        account_page(&stored, args.steps)
    };
    let mut out = io::stdout().lock();
    out.write_all(page.as_bytes())?;
    Ok(out.flush()?)
}

fn export(args: &Export) -> Outcome {
    let store = args.place.open_to_read()?;
    let filter = args.taken.filter(args.limit)?;
    let to = &args.to;
    let count = match to.extension() {
        _ if to.as_os_str() == "-" => export_lines(&store, &filter, &mut io::stdout().lock()),
        _ if to.is_dir() => export_folder(&store, &filter, to),
        Some(ending) if ending == "jsonl" => export_file(&store, &filter, to),
        None => export_folder(&store, &filter, to),
        Some(_) => {
            return Err(Failure::caller(anyhow::anyhow!(
                "`{}` is neither a folder nor a .jsonl file",
                to.display()
            )));
        }
    };
    let count = count.map_err(export_failure)?;
    eprintln!("{count} {} exported", if count == 1 { "record" } else { "records" });
    Ok(())
}

/// The record that `name` names: a file that is there, or else an id in the store.
pub(crate) fn named_record(name: &str, place: &StorePlace) -> Result<Stored, Failure> {
    let path = Path::new(name);
    let looks_like_path = name.contains(std::path::is_separator) || path.extension().is_some();
    if looks_like_path || path.exists() {
        let read = causeway_ledger::read(path);
        return read.map_err(|error| {
            let is_callers_mistake = error.is_callers_mistake();
            Failure::of(error, is_callers_mistake)
        });
    }
    let store = place.path()?;
    match Store::open_to_read(&store) {
        Err(StoreError::NotFound { .. }) if !place.is_named() => {
            Err(Failure::caller(anyhow::anyhow!(
                "there is no record `{name}`: no such file, and no ledger `{}`",
                store.display()
            )))
        }
        opened => opened.and_then(|store| store.find(name)).map_err(store_failure),
    }
}

/// Whose mistake an error of the store is.
pub(crate) fn store_failure(error: StoreError) -> Failure {
    let is_callers_mistake = error.is_callers_mistake();
    Failure::of(error, is_callers_mistake)
}

fn export_failure(error: ExportError) -> Failure {
    match error {
        ExportError::Output { source } => Failure::from(source),
        error => {
            let is_callers_mistake = error.is_callers_mistake();
            Failure::of(error, is_callers_mistake)
        }
    }
}
