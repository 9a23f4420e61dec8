//! `causeway run`: answer a prompt, stream the text, and print one line of account.

use std::io::{self, IsTerminal as _, Read as _, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use causeway_ledger::{Account, Record};
use causeway_request::StepOutput;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::failure::{Failure, Outcome};
use crate::generate::{Job, Watcher, generate};
use crate::loaded::{Loaded, ModelFlags};
use crate::policy_choice::PolicyChoice;
use crate::prompting::{Given, prompt};
use crate::session;

/// Arguments of `causeway run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) model: ModelFlags,
    #[command(flatten)]
    pub(super) asked: Asked,
    #[command(flatten)]
    pub(super) policy: PolicyChoice,
    /// Write the record of the run to FILE.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Write one JSON object in place of text: text, tokens, stop and account.
    #[arg(long)]
    json: bool,
}

/// What is asked of the model.
#[derive(Debug, clap::Args)]
pub(crate) struct Asked {
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
}

/// Most bytes of a prompt read from stdin.
const PROMPT_BYTES_MAX: u64 = 64 << 20;

impl Asked {
    /// What was given; a prompt is chat where the model has a template.
    pub(super) fn given(&self, has_template: bool) -> Result<Given, Failure> {
        if !self.ids.is_empty() {
            return Ok(Given::Ids(self.ids.clone()));
        }
        let text = match self.prompt.as_deref() {
            Some(text) if text != "-" => text.to_owned(),
            _ => from_stdin()?,
        };
        Ok(if self.chat || (has_template && !self.raw) {
            Given::Chat(text)
        } else {
            Given::Raw(text)
        })
    }

    /// What was given, as a record keeps it.
    pub(super) fn received(&self, given: &Given) -> Value {
        match given {
            Given::Ids(ids) => json!({ "ids": ids }),
            Given::Raw(text) => json!({ "prompt": text, "raw": true }),
            Given::Chat(text) => json!({ "prompt": text, "chat": true }),
        }
    }
}

fn from_stdin() -> Result<String, Failure> {
    if io::stdin().is_terminal() {
        return Err(Failure::caller(anyhow::anyhow!(
            "no prompt was given: add one as an argument, pipe one in, or use --ids"
        )));
    }
    let mut bytes = Vec::new();
    io::stdin().lock().take(PROMPT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > PROMPT_BYTES_MAX {
        return Err(Failure::caller(anyhow::anyhow!(
            "the prompt is longer than the limit of {PROMPT_BYTES_MAX} bytes"
        )));
    }
    String::from_utf8(bytes)
        .map_err(|error| Failure::caller(anyhow::anyhow!("the prompt is not UTF-8: {error}")))
}

/// Streams the text to stdout as it comes.
struct Stream {
    quiet: bool,
}

impl Watcher for Stream {
    fn step(&mut self, _output: &StepOutput, _piece: &[u8]) -> Result<(), Failure> {
        Ok(())
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

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    if let Some(path) = &args.record {
        causeway_ledger::probe(path).map_err(write_failure)?;
    }
    let record = answer(args, &mut Stream { quiet: args.json })?;
    if let Some(path) = &args.record {
        causeway_ledger::write(&record, path).map_err(write_failure)?;
    }
    if args.json {
        let line = json_line(&record)?;
        writeln!(io::stdout(), "{line}")?;
    } else {
        if !record.end.text.ends_with('\n') {
            writeln!(io::stdout())?;
        }
        eprintln!("{}", account_line(&record));
    }
    match &record.end.stop {
        causeway_ledger::Stop::Error { message } => {
            Err(Failure::World(anyhow::anyhow!("the run ended early: {message}")))
        }
        _ => Ok(()),
    }
}

/// Loads the model, runs the request under a watcher, and makes the record.
pub(super) fn answer(args: &Args, watcher: &mut dyn Watcher) -> Result<Record, Failure> {
    let interrupted = interrupts()?;
    let file = args.policy.file()?;
    let mut loaded = Loaded::open(&args.model)?;
    let has_template = loaded.text.as_ref().is_some_and(|text| text.template.is_some());
    let given = args.asked.given(has_template || file.prompt.template.is_some())?;
    let policy = session::compile(&file, &loaded)?;
    let prompt = prompt(&given, &file, &mut loaded)?;
    let (continues, chunk) = (prompt.continues, args.model.chunk()?);
    let received = args.asked.received(&given);
    let start = session::start(&loaded, &policy, prompt, received, chunk)?;
    let Loaded { model, text, .. } = loaded;
    let mut engine = session::engine(model, chunk);
    let job = Job { start, policy, text: text.as_ref(), continues };
    generate(&mut engine, job, &Clock::start(), &interrupted, watcher)
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
    let line = json!({
        "text": record.end.text,
        "tokens": tokens,
        "stop": record.end.stop,
        "account": record.end.account,
        "seed": record.start.request.effective.seed,
        "policy": record.start.policy.sha256,
        "record": record.id(),
    });
    serde_json::to_string(&line).map_err(Failure::world)
}

/// One line: tokens, passes, time to the first token, speed, reason.
pub(super) fn account_line(record: &Record) -> String {
    let Account { tokens, passes, times } = &record.end.account;
    let ms = |ns: u64| format!("{}.{:01} ms", ns / 1_000_000, ns / 100_000 % 10);
    let ttft = times.ttft_ns.map_or_else(|| "-".to_owned(), ms);
    #[expect(clippy::cast_precision_loss, reason = "shown with one digit after the point")]
    let speed = times
        .tpot_ns
        .filter(|&ns| ns > 0)
        .map_or_else(|| "-".to_owned(), |ns| format!("{:.1} tok/s", 1e9 / ns as f64));
    format!(
        "{} prompt + {} tokens, {} prefill + {} decode passes, first token {ttft}, {speed}, {}",
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
