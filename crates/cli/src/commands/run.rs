//! `causeway run`: answer a prompt, stream the text, and print one line of account.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use causeway_ledger::{Account, Record, Stop};
use causeway_request::{RequestId, StepOutput};
use causeway_session as session_room;
use causeway_session::{Forms, Given, Loaded, Place, with_template};
use causeway_text::Chat;
use serde_json::{Value, json};

use crate::ahead::AheadFlags;
use crate::clock::Clock;
use crate::commands::ledger::{StorePlace, store_failure};
use crate::failure::{Failure, Outcome};
use crate::generate::{Job, Watcher, generate};
use crate::loaded::{ModelFlags, about, session_failure};
use crate::policy_choice::{Chosen, PolicyChoice};
use crate::prompting::prompt;
use crate::session;

/// Arguments of `causeway run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    ask: Ask,
    /// Say behind the account what each field of a JSON answer took: tokens chosen and forced,
    /// decode passes, time.
    #[arg(long)]
    fields: bool,
    /// Write one JSON object in place of text: text, tokens, stop and account.
    #[arg(long)]
    json: bool,
}

/// A request with its model and its policy, and where its record goes.
#[derive(Debug, clap::Args)]
pub(crate) struct Ask {
    #[command(flatten)]
    pub(super) model: ModelFlags,
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    policy: PolicyChoice,
    #[command(flatten)]
    ahead: AheadFlags,
    /// Write the record of the run to FILE.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Put the record of the run into the ledger's store; `--store FILE` asks for it too.
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    place: StorePlace,
}

impl Ask {
    /// Whether the record goes into the store.
    fn keeps(&self) -> bool {
        self.keep || self.place.is_named()
    }

    /// What the line of account says of a record in the store: how to find it again.
    pub(super) fn kept(&self, record: &Record) -> String {
        if !self.keeps() {
            return String::new();
        }
        format!(", record {}", &record.id().to_string()[..12])
    }
}

/// What is asked of the model.
#[derive(Debug, clap::Args)]
struct Asked {
    /// The prompt; read from stdin where it is absent or `-`.
    prompt: Option<String>,
    /// Put the prompt through the model's chat template [default where it has one].
    #[arg(long, conflicts_with_all = ["raw", "ids"])]
    chat: bool,
    /// Continue the prompt as it stands.
    #[arg(long, conflicts_with = "ids")]
    raw: bool,
    /// Token ids in place of a prompt, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "ID,ID,…", conflicts_with = "prompt")]
    ids: Vec<u32>,
    /// A JSON file of messages in place of a prompt: a list, or an object with `messages` and
    /// `tools`; `-` reads stdin.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prompt", "raw", "ids"])]
    messages: Option<PathBuf>,
}

/// Most bytes of a prompt read from stdin.
const PROMPT_BYTES_MAX: u64 = 64 << 20;

impl Asked {
    /// What was given, and as a record keeps it; a prompt is chat where the model has a template.
    fn given(&self, has_template: bool, seed: Option<u64>) -> Result<(Given, Value), Failure> {
        let (given, mut received) = if !self.ids.is_empty() {
            (Given::Ids(self.ids.clone()), json!({ "ids": self.ids }))
        } else if let Some(path) = &self.messages {
            let text = messages(path)?;
            let received = match serde_json::from_str(&text).unwrap_or_default() {
                Value::Array(messages) => json!({ "messages": messages }),
                object => object,
            };
            (Given::Messages(Chat::from_json(&text).map_err(Failure::caller)?), received)
        } else {
            let text = match self.prompt.as_deref() {
                Some(text) if text != "-" => text.to_owned(),
                _ => from_stdin("prompt")?,
            };
            if self.chat || (has_template && !self.raw) {
                let received = json!({ "prompt": text, "chat": true });
                (Given::Chat(text), received)
            } else {
                let received = json!({ "prompt": text, "raw": true });
                (Given::Raw(text), received)
            }
        };
        if let (Some(seed), Some(fields)) = (seed, received.as_object_mut()) {
            fields.insert("seed".to_owned(), json!(seed));
        }
        Ok((given, received))
    }
}

/// The text of a file of messages.
fn messages(path: &Path) -> Result<String, Failure> {
    if path.as_os_str() == "-" {
        return from_stdin("chat");
    }
    let name = path.display();
    let file = File::open(path)
        .with_context(|| format!("the messages `{name}` cannot be read"))
        .map_err(Failure::caller)?;
    read_text(file, &format!("the file `{name}`"))
}

fn from_stdin(what: &str) -> Result<String, Failure> {
    if io::stdin().is_terminal() {
        return Err(Failure::caller(anyhow::anyhow!(
            "no {what} was given: add one as an argument, pipe one in, or use --ids"
        )));
    }
    read_text(io::stdin().lock(), &format!("the {what}"))
}

fn read_text(from: impl io::Read, what: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    from.take(PROMPT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("{what} cannot be read"))
        .map_err(Failure::world)?;
    if bytes.len() as u64 > PROMPT_BYTES_MAX {
        return Err(Failure::caller(anyhow::anyhow!(
            "{what} is longer than the limit of {PROMPT_BYTES_MAX} bytes"
        )));
    }
    String::from_utf8(bytes)
        .map_err(|error| Failure::caller(anyhow::anyhow!("{what} is not UTF-8: {error}")))
}

/// Streams the text to stdout as it comes.
struct Stream {
    quiet: bool,
}

impl Watcher for Stream {
    fn step(&mut self, _output: &StepOutput, _piece: &[u8]) -> Result<(), Failure> {
        Ok(())
    }

    fn prefilled(&mut self, computed: usize, known: usize) {
        show_progress("reading the prompt", computed, known, "tokens");
    }

    fn prefill_ended(&mut self) {
        clear_progress();
    }

    fn text(&mut self, text: &str) -> Result<(), Failure> {
        if self.quiet {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        Ok(())
    }
}

/// Says on a terminal how far long work has come.
pub(super) fn show_progress(what: &str, done: usize, of: usize, units: &str) {
    if io::stderr().is_terminal() {
        eprint!("\r{what}: {done} of {of} {units}");
    }
}

/// Clears the line of `show_progress`, so that what follows takes it over.
pub(super) fn clear_progress() {
    if io::stderr().is_terminal() {
        eprint!("\r{:60}\r", "");
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    let record = answer(&args.ask, &mut Stream { quiet: args.json })?;
    let printed = if args.json {
        let line = json_line(&record)?;
        writeln!(io::stdout(), "{line}")
    } else if record.end.text.ends_with('\n') {
        Ok(())
    } else {
        writeln!(io::stdout())
    };
    let printed = printed.map_err(Failure::from);
    if !args.json && matches!(printed, Ok(()) | Err(Failure::ReaderGone)) {
        eprintln!("{}{}", account_line(&record), args.ask.kept(&record));
        if args.fields {
            let table = causeway_ledger::fields_table(&record.end);
            eprint!("{}", table.as_deref().unwrap_or("no fields: the policy asks for no JSON\n"));
        }
    }
    printed?;
    ended_well(&record)
}

/// Whether a run came to an end of its own; a policy that left no token is the caller's mistake.
pub(super) fn ended_well(record: &Record) -> Outcome {
    match &record.end.stop {
        Stop::Error { message, is_callers_mistake } => {
            let error = anyhow::anyhow!("the run ended early: {message}");
            Err(Failure::of(error, *is_callers_mistake))
        }
        _ => Ok(()),
    }
}

/// Loads the model, runs the request under a watcher, and makes the record; writes it where one
/// is asked for.
pub(super) fn answer(ask: &Ask, watcher: &mut dyn Watcher) -> Result<Record, Failure> {
    if let Some(path) = &ask.record {
        causeway_ledger::probe(path).map_err(write_failure)?;
    }
    let store = ask.keeps().then(|| ask.place.open()).transpose()?;
    let interrupted = interrupts()?;
    let early = ask.policy.early()?;
    let loaded = ask.model.open()?;
    let Chosen { file, seed } = ask.policy.for_model(early, &loaded)?;
    let has_template = loaded.text.as_ref().is_some_and(|text| text.template.is_some());
    let has_template = has_template || file.prompt.template.is_some();
    let (given, received) = ask.asked.given(has_template, seed)?;
    let about = about(&loaded)?;
    let policy = session::compile(&file, &about)?;
    let Loaded { model, text, .. } = loaded;
    let text = match text {
        Some(text) => Some(with_template(text, &file).map_err(session_failure)?),
        None => None,
    };
    let prompt = prompt(given, &file, &about, text.as_ref())?;
    let chunk = ask.model.chunk()?;
    let asked = session_room::Asked { id: RequestId(1), received, seed, choice: 0 };
    let start = session_room::start(&about, &policy, prompt, asked, &Place::alone(chunk));
    let mut engine = session::engine(model, chunk, ask.ahead);
    let forms = text.map(|text| Forms::new(Arc::new(text), &about));
    let job = Job { start, policy, forms: forms.as_ref() };
    let record = generate(&mut engine, job, &Clock::start(), &interrupted, watcher)?;
    if let Some(path) = &ask.record {
        causeway_ledger::write(&record, path).map_err(write_failure)?;
    }
    if let Some(mut store) = store {
        store.insert(record.clone()).map_err(store_failure)?;
    }
    Ok(record)
}

/// A flag that the first Ctrl-C sets; the second ends the process at once.
pub(super) fn interrupts() -> Result<Arc<AtomicBool>, Failure> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&flag))
            .map_err(Failure::world)?;
        signal_hook::flag::register(signal, Arc::clone(&flag)).map_err(Failure::world)?;
    }
    Ok(flag)
}

fn json_line(record: &Record) -> Result<String, Failure> {
    let tokens: Vec<u32> = record.steps.iter().map(|step| step.token).collect();
    let mut line = json!({
        "text": record.end.text,
        "tokens": tokens,
        "stop": record.end.stop,
        "account": record.end.account,
        "seed": record.start.request.effective.seed,
        "policy": record.start.policy.sha256,
        "record": record.id(),
    });
    if let Some(name) = policy_name(record) {
        line["policy_name"] = json!(name);
    }
    if let Some(fields) = &record.end.fields {
        line["fields"] = json!(fields);
        line["open_field"] = json!(record.end.open_field);
    }
    serde_json::to_string(&line).map_err(Failure::world)
}

/// What the policy is called; that of a model's own file says where it stands.
fn policy_name(record: &Record) -> Option<String> {
    let tree: Value = serde_json::from_str(&record.start.policy.canonical).ok()?;
    tree["name"].as_str().map(str::to_owned)
}

/// One line: tokens, passes, time to the first token, speed, reason.
pub(super) fn account_line(record: &Record) -> String {
    let Account { tokens, passes, times, .. } = &record.end.account;
    let ms = |ns: u64| format!("{}.{:01} ms", ns / 1_000_000, ns / 100_000 % 10);
    let ttft = times.ttft_ns.map_or_else(|| "-".to_owned(), ms);
    #[expect(clippy::cast_precision_loss, reason = "shown with one digit after the point")]
    let speed = times
        .tpot_ns
        .filter(|&ns| ns > 0)
        .map_or_else(|| "-".to_owned(), |ns| format!("{:.1} tok/s", 1e9 / ns as f64));
    // What was drawn can be drawn again.
    let seed = if record.start.policy.greedy {
        String::new()
    } else {
        format!(", seed {}", record.start.request.effective.seed)
    };
    let reasoning = match tokens.reasoning {
        0 => String::new(),
        count => format!(" ({count} of reasoning)"),
    };
    format!(
        "{} prompt + {} tokens{reasoning}, {} prefill + {} decode passes, first token {ttft}, {speed}, {}{seed}",
        tokens.prompt,
        tokens.prefix,
        passes.prefill,
        passes.decode,
        record.end.stop.describe(),
    )
}

fn write_failure(error: causeway_ledger::WriteError) -> Failure {
    let is_callers_mistake = error.is_callers_mistake();
    Failure::of(error, is_callers_mistake)
}
