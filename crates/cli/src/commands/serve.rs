//! `causeway serve`: answer over HTTP, many at once.

mod kv_disk;
mod logging;
mod operation;

#[cfg(feature = "scripted")]
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use causeway_engine::Limits;
use causeway_ledger::{Writer, WriterLimits};
use causeway_server::{
    Operation, Options, ServeError, Sizing, SocketAddr, Source, Stop, WireLimits,
};
use serde_json::json;

use self::kv_disk::KvDiskFlags;
use self::logging::LogFlags;
use self::operation::OperationFlags;
use crate::ahead::AheadFlags;
use crate::commands::ledger::StorePlace;
use crate::failure::{Failure, Outcome};
use crate::loaded::{KV_TYPES, ModelFlags};
use crate::model_path;
use crate::policy_choice::{self, Base};

/// Arguments of `causeway serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Model name, .gguf file or Hugging Face folder; give it again for further models, which are
    /// loaded when they are first asked for.
    #[arg(short, long = "model", value_name = "MODEL", default_value = causeway_models::DEFAULT_MODEL)]
    models: Vec<String>,
    /// Most megabytes of weights, keys and values, and buffers of passes in memory at once; models
    /// that nobody uses make room.
    #[arg(long, value_name = "MB")]
    models_memory: Option<u64>,
    /// Address to listen on; port 0 takes any that is free.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:8080")]
    addr: SocketAddr,
    /// Print one line of JSON with the address when requests can come.
    #[arg(long)]
    json: bool,
    /// Policy file that every request runs under: what it says, a request may not change. Or
    /// `model`, what each model's file says of decoding, which a request's fields go over; or
    /// `none`, neither.
    #[arg(long, value_name = "FILE", default_value = "model", value_parser = Base::parser())]
    policy: Base,
    /// The models' chat template of this name, for every chat [default: `tool_use` for chats with
    /// tools where there is one, else `default`].
    #[arg(long, value_name = "NAME")]
    chat_template: Option<String>,
    #[command(flatten)]
    engine: EngineFlags,
    #[command(flatten)]
    operation: OperationFlags,
    #[command(flatten)]
    logs: LogFlags,
    #[command(flatten)]
    store: StorePlace,
    /// Keep no records.
    #[arg(long, conflicts_with = "store")]
    no_ledger: bool,
    /// Megabytes of records whose answers are given again to the same question; with 0, answers
    /// are given again only where a policy or a request says so, out of 1000 megabytes.
    #[arg(long, value_name = "MB", default_value_t = 0, conflicts_with = "no_ledger")]
    result_cache_mb: u64,
    /// Milliseconds that a shutdown waits for answers under way.
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    drain_ms: u64,
    /// Milliseconds that the step loop may be silent before /ready says so.
    #[arg(long, value_name = "MS", default_value_t = 30_000)]
    silence_ms: u64,
    /// Serve a script in place of a model (tests only).
    #[cfg(feature = "scripted")]
    #[arg(long, value_name = "FILE")]
    scripted: Option<PathBuf>,
}

/// The size and the pace of an engine.
#[derive(Debug, clap::Args)]
struct EngineFlags {
    /// Requests that run at once.
    #[arg(long, value_name = "N", default_value_t = 16)]
    slots: usize,
    /// Requests that wait beyond those that run.
    #[arg(long, value_name = "N", default_value_t = 256)]
    queue: usize,
    /// Milliseconds that a request may wait for its first pass [default: no limit].
    #[arg(long, value_name = "MS")]
    queue_ms: Option<u64>,
    /// Milliseconds between two tokens to aim at: prompts are computed in smaller pieces.
    #[arg(long, value_name = "MS")]
    itl_target_ms: Option<u64>,
    /// Most tokens computed in one pass; changes no bit of an answer.
    #[arg(long, value_name = "TOKENS", default_value_t = 512)]
    chunk: usize,
    /// Positions a sequence may have [default: the model's own].
    #[arg(long, value_name = "TOKENS")]
    context: Option<usize>,
    /// Positions whose keys and values are held for all requests together.
    #[arg(long, value_name = "TOKENS", default_value_t = 65_536)]
    kv_tokens: usize,
    /// How keys and values are kept.
    #[arg(long, value_name = "TYPE", default_value = "f16", value_parser = KV_TYPES)]
    kv_type: String,
    /// Threads that compute [default: the CPUs this process may use].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Forget the keys and values of a prompt when its request has ended.
    #[arg(long)]
    no_prefix_cache: bool,
    #[command(flatten)]
    ahead: AheadFlags,
    #[command(flatten)]
    kv_disk: KvDiskFlags,
}

/// Megabytes of records whose answers are given again where only policies and requests ask for it.
const RESULTS_MB: u64 = 1_000;

/// Runs the command until a signal stops it.
pub(crate) fn run(args: &Args) -> Outcome {
    let policy = args.policy.file()?;
    if policy.is_some() && args.chat_template.is_some() {
        return Err(Failure::caller(anyhow::anyhow!(
            "--chat-template is given beside a policy file, which says it as `prompt.template`"
        )));
    }
    let ledger = ledger(args)?;
    let kept = ledger.as_ref().map(|_| args.store.open_to_read()).transpose()?;
    let results = ledger.as_ref().map(|_| args.store.open_to_read()).transpose()?;
    let options = Options {
        addr: args.addr,
        models: sources(args)?,
        models_bytes_max: args.models_memory.map(|mb| mb.saturating_mul(1_000_000)),
        policy,
        sizing: args.engine.sizing()?,
        limits: WireLimits::default(),
        drain: Duration::from_millis(args.drain_ms),
        silence_max: Duration::from_millis(args.silence_ms),
        auth: args.operation.auth(kept.as_ref())?,
        observer: args.logs.begin()?,
        ledger,
        results,
        operation: Operation {
            results_by_default: args.result_cache_mb > 0,
            ..args.operation.operation(kept)
        },
    };
    causeway_server::serve(options, Stop::Signals, |addr| say(addr, args.json)).map_err(failure)
}

/// The ledger's writer, unless no records are kept.
fn ledger(args: &Args) -> Result<Option<Arc<Writer>>, Failure> {
    if args.no_ledger {
        return Ok(None);
    }
    let store = args.store.open()?;
    let mb = if args.result_cache_mb > 0 { args.result_cache_mb } else { RESULTS_MB };
    let result_cache_bytes_max = Some(mb.saturating_mul(1_000_000));
    let limits = WriterLimits { result_cache_bytes_max, ..WriterLimits::default() };
    Ok(Some(Arc::new(Writer::start(store, limits))))
}

/// The models by their names; known ones that are missing are fetched.
fn sources(args: &Args) -> Result<Vec<Source>, Failure> {
    #[cfg(feature = "scripted")]
    if let Some(path) = &args.scripted {
        let text = std::fs::read_to_string(path).map_err(Failure::caller)?;
        let script = causeway_server::scripted::Script::from_json(&text);
        return Ok(vec![Source::Script(Arc::new(script.map_err(Failure::caller)?))]);
    }
    let template = args.chat_template.as_deref();
    let source = |name: &String| {
        let opening = args.engine.flags(name.clone()).opening()?;
        let own = policy_choice::of_served(&args.policy, &opening, template)?;
        Ok(Source::File { opening, own: own.map(Box::new) })
    };
    args.models.iter().map(source).collect()
}

impl EngineFlags {
    fn flags(&self, model: String) -> ModelFlags {
        ModelFlags {
            model,
            context: self.context,
            threads: self.threads,
            kv_type: self.kv_type.clone(),
            chunk: self.chunk,
        }
    }

    fn sizing(&self) -> Result<Sizing, Failure> {
        for (name, value) in
            [("--slots", self.slots), ("--chunk", self.chunk), ("--kv-tokens", self.kv_tokens)]
        {
            if value == 0 {
                return Err(Failure::caller(anyhow::anyhow!("{name} is 0, the least is 1")));
            }
        }
        let ns = |ms: u64| ms.saturating_mul(1_000_000);
        let limits = Limits {
            queue_max: self.queue,
            wait_ns_max: self.queue_ms.map(ns),
            kv_positions_max: Some(self.kv_tokens),
            prefix_cache: !self.no_prefix_cache,
            ..self.ahead.over(Limits::new(self.slots, self.chunk))
        };
        let itl_target_ns = self.itl_target_ms.map(ns);
        let kv_disk = self.kv_disk.open()?;
        Ok(Sizing { limits, itl_target_ns, hashes: model_path::hashes(), kv_disk })
    }
}

/// Says where requests can be sent.
fn say(addr: SocketAddr, json: bool) {
    use std::io::Write as _;
    if json {
        // Whoever started the server may not read what it says.
        let _ = writeln!(std::io::stdout(), "{}", json!({ "addr": addr.to_string() }));
        let _ = std::io::stdout().flush();
    } else {
        eprintln!("listening on http://{addr}");
    }
}

fn failure(error: ServeError) -> Failure {
    let is_callers_mistake = error.is_callers_mistake();
    Failure::of(error, is_callers_mistake)
}
