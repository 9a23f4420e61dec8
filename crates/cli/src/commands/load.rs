//! `causeway load`: ask a server many things at their times, and say how it answered.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use causeway_load::{
    Arrivals, Counts, Endpoint, Key, Limits, LoadError, Outcome, Plan, PlanSettings, Run, Server,
    Settings, Shape, Span, Spread, read_body,
};
use serde_json::json;

use crate::failure::{Failure, Outcome as Done};

/// Arguments of `causeway load`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Server that speaks the OpenAI API, such as http://127.0.0.1:8080.
    #[arg(long, required_unless_present = "dump_plan")]
    url: Option<Server>,
    /// Model to ask for [default: the first that the server lists].
    #[arg(long)]
    model: Option<String>,
    /// When requests arrive: poisson:RATE, gamma:RATE,CV, trace:FILE or concurrency:N.
    #[arg(long)]
    arrivals: Arrivals,
    /// How long requests arrive and are measured, such as 240s or 4m.
    #[arg(long)]
    duration: Option<Span>,
    /// How many requests arrive, warm-up included.
    #[arg(long, value_name = "N")]
    requests: Option<u64>,
    /// Time before the duration whose requests are sent, but not measured.
    #[arg(long, default_value = "0s", value_name = "SPAN")]
    warmup: Span,
    /// Words of a prompt, log-uniform [default: 64..1024].
    #[arg(long, value_name = "A..B")]
    prompt_words: Option<Counts>,
    /// Tokens of an answer, log-uniform [default: 32..256].
    #[arg(long, value_name = "A..B")]
    output_tokens: Option<Counts>,
    /// Words that all prompts begin with, before their own.
    #[arg(long, default_value_t = 0, value_name = "N")]
    shared_prefix: u32,
    /// How many times as fast as it was a trace is played [default: 1].
    #[arg(long, value_name = "X")]
    trace_speed: Option<f64>,
    /// Share of clients that hang up at random.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    disconnect_rate: f64,
    /// Arrivals, prompts and lengths follow from it.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Which interface is asked.
    #[arg(long, value_enum, default_value_t = Interface::Chat)]
    endpoint: Interface,
    /// Ask for answers of exactly the length planned, with the field `ignore_eos`.
    #[arg(long)]
    ignore_eos: bool,
    /// Give each request a seed of its own, the same in each run.
    #[arg(long)]
    seeds: bool,
    /// Fields merged into each request as a JSON object; null takes a field away.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    body: String,
    /// Key to send as a bearer token [default: $CAUSEWAY_API_KEY, where that is set].
    #[arg(long, value_name = "KEY")]
    api_key: Option<String>,
    /// The time that a request has, from its scheduled arrival.
    #[arg(long, default_value = "600s", value_name = "SPAN")]
    timeout: Span,
    /// Goodput: most milliseconds to the first token.
    #[arg(long, value_name = "MS")]
    slo_ttft_ms: Option<f64>,
    /// Goodput: most milliseconds of every gap between tokens.
    #[arg(long, value_name = "MS")]
    slo_itl_ms: Option<f64>,
    /// Goodput: most milliseconds per output token.
    #[arg(long, value_name = "MS")]
    slo_tpot_ms: Option<f64>,
    /// Goodput: most milliseconds from the scheduled arrival to the end.
    #[arg(long, value_name = "MS")]
    slo_total_ms: Option<f64>,
    /// One JSON object.
    #[arg(long)]
    json: bool,
    /// One line of JSON for each request, written as it ends.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the plan, one request a line with its prompt, and send nothing; - is stdout.
    #[arg(long, value_name = "FILE")]
    dump_plan: Option<PathBuf>,
}

/// The interfaces of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Interface {
    Chat,
    Completions,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Done {
    let plan = Plan::make(plan_settings(args)?).map_err(failure)?;
    if let Some(path) = &args.dump_plan {
        return dump(&plan, path);
    }
    let settings = settings(args)?;
    let mut out = args.out.as_deref().map(create).transpose()?;
    let mut keep = |outcome: &Outcome| match &mut out {
        Some(out) => writeln!(out, "{}", outcome.to_json()),
        None => Ok(()),
    };
    let stop = super::run::interrupts()?;
    let run = causeway_load::run(&plan, &settings, &stop, &mut keep).map_err(failure)?;
    if let Some(out) = &mut out {
        out.flush()?;
    }
    let mut stdout = io::stdout().lock();
    if args.json {
        writeln!(stdout, "{}", serde_json::to_string(&run).map_err(Failure::world)?)?;
    } else {
        show(&mut stdout, &run)?;
    }
    let requests = &run.report.requests;
    if requests.measured > 0 && requests.failed == requests.measured {
        let errors = requests.errors.iter().map(|(kind, count)| format!("{kind} {count}"));
        return Err(Failure::world(anyhow::anyhow!(
            "none of the {} requests measured was answered: {}",
            requests.measured,
            errors.collect::<Vec<_>>().join(", ")
        )));
    }
    Ok(())
}

fn failure(error: LoadError) -> Failure {
    let is_callers_mistake = error.is_callers_mistake();
    Failure::of(error, is_callers_mistake)
}

fn refusal(sentence: &'static str) -> Failure {
    Failure::caller(anyhow::anyhow!(sentence))
}

fn plan_settings(args: &Args) -> Result<PlanSettings, Failure> {
    let is_trace = matches!(args.arrivals, Arrivals::Trace { .. });
    if is_trace && (args.prompt_words.is_some() || args.output_tokens.is_some()) {
        return Err(refusal(
            "a trace has its own lengths: leave out --prompt-words, --output-tokens",
        ));
    }
    if !is_trace && args.trace_speed.is_some() {
        return Err(refusal("--trace-speed has no effect without a trace"));
    }
    let range = |given: Option<Counts>, (least, most)| match given {
        Some(counts) => counts,
        None => Counts::from_bounds(least, most).expect("the defaults are in range"),
    };
    Ok(PlanSettings {
        arrivals: args.arrivals.clone(),
        span: args.duration.map(|duration| args.warmup.plus(duration)),
        requests: args.requests,
        prompt_words: range(args.prompt_words, (64, 1_024)),
        output_tokens: range(args.output_tokens, (32, 256)),
        shared_prefix: args.shared_prefix,
        disconnect_rate: args.disconnect_rate,
        trace_speed: args.trace_speed.unwrap_or(1.0),
        seed: args.seed,
    })
}

fn settings(args: &Args) -> Result<Settings, Failure> {
    let server = args.url.clone().ok_or_else(|| refusal("no server: give --url"))?;
    let key = args.api_key.clone().or_else(|| std::env::var("CAUSEWAY_API_KEY").ok());
    let key = key.map(|key| key.parse::<Key>()).transpose().map_err(Failure::caller)?;
    Ok(Settings {
        server,
        shape: Shape {
            endpoint: match args.endpoint {
                Interface::Chat => Endpoint::Chat,
                Interface::Completions => Endpoint::Completions,
            },
            model: args.model.clone(),
            ignore_eos: args.ignore_eos,
            seeds: args.seeds,
            body: read_body(&args.body).map_err(Failure::caller)?,
        },
        key,
        warmup: args.warmup,
        timeout: args.timeout,
        limits: Limits {
            ttft_ms: args.slo_ttft_ms,
            itl_ms: args.slo_itl_ms,
            tpot_ms: args.slo_tpot_ms,
            total_ms: args.slo_total_ms,
        },
    })
}

fn create(path: &Path) -> Result<BufWriter<File>, Failure> {
    let file = File::create(path).with_context(|| format!("cannot write `{}`", path.display()));
    Ok(BufWriter::new(file.map_err(Failure::World)?))
}

/// Writes the plan, one request a line.
fn dump(plan: &Plan, path: &Path) -> Done {
    let Some(count) = plan.requests() else {
        return Err(refusal(
            "a closed loop that time ends has no list of requests: give --requests",
        ));
    };
    let mut out: Box<dyn Write> = if path == Path::new("-") {
        Box::new(BufWriter::new(io::stdout().lock()))
    } else {
        Box::new(create(path)?)
    };
    for planned in (0..count).map_while(|index| plan.planned(index)) {
        let line = json!({ "request": planned, "prompt": plan.prompt(&planned) });
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(())
}

/// The figures as a table.
fn show(out: &mut impl Write, run: &Run) -> io::Result<()> {
    let Run { conditions, report } = run;
    let requests = &report.requests;
    writeln!(out, "{} at {}", conditions.plan.arrivals, conditions.url)?;
    writeln!(
        out,
        "requests {} sent, {} measured: {} complete, {} hung up, {} failed",
        requests.sent, requests.measured, requests.complete, requests.hung_up, requests.failed
    )?;
    for (kind, count) in &requests.errors {
        let message = requests.messages.get(kind).map_or("", String::as_str);
        writeln!(out, "  {kind:<14}{count:>8}  {message}")?;
    }
    if requests.given_up > 0 {
        writeln!(out, "  stopped with {} requests in flight", requests.given_up)?;
    }
    writeln!(
        out,
        "{:<8}{:>9}{:>11}{:>11}{:>11}{:>11}{:>11}{:>11}",
        "ms", "count", "mean", "p50", "p90", "p95", "p99", "max"
    )?;
    let spreads = [
        ("TTFT", &report.ttft_ms),
        ("ITL", &report.itl_ms),
        ("TPOT", &report.tpot_ms),
        ("total", &report.total_ms),
        ("lag", &report.lag_ms),
    ];
    for (name, spread) in spreads {
        show_spread(out, name, spread)?;
    }
    let rate = &report.throughput;
    writeln!(
        out,
        "in {:.1} s: {:.3} requests/s, {:.1} output tokens/s, {:.1} prompt tokens/s",
        rate.window_s, rate.requests_per_s, rate.output_tokens_per_s, rate.prompt_tokens_per_s
    )?;
    let goodput = &report.goodput;
    let share = goodput.share.unwrap_or(0.0) * 100.0;
    writeln!(out, "goodput {share:.1} %, {:.3} requests/s", goodput.requests_per_s)?;
    let tokens = &report.tokens;
    writeln!(
        out,
        "tokens {} by usage, {} pieces; {} answers differ, {} without usage, {} of another length",
        tokens.output,
        tokens.chunks,
        tokens.disagreements,
        tokens.without_usage,
        tokens.other_length
    )?;
    writeln!(out, "plan {}, seed {}", conditions.plan.hash, conditions.plan.seed)
}

fn show_spread(out: &mut impl Write, name: &str, spread: &Spread) -> io::Result<()> {
    let Spread { count, mean, p50, p90, p95, p99, max, p99_is_thin } = *spread;
    write!(out, "{name:<8}{count:>9}")?;
    for value in [mean, p50, p90, p95, p99, max] {
        let text = value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
        write!(out, "{text:>11}")?;
    }
    writeln!(out, "{}", if p99_is_thin { "  (p99 of fewer than 100)" } else { "" })
}
