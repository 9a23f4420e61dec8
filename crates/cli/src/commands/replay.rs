//! `causeway replay`: run a record again and prove it equal, or name the first step that differs.

use std::sync::Arc;

use causeway_ledger::{Pair, Record, compare};
use causeway_policy::PolicyFile;
use causeway_session::{Forms, Loaded, Place};

use crate::ahead::AheadFlags;
use crate::clock::Clock;
use crate::commands::diff::{print_verdict, read_record};
use crate::commands::ledger::StorePlace;
use crate::commands::run::interrupts;
use crate::failure::{Failure, Outcome};
use crate::generate::{Job, Unwatched, generate};
use crate::loaded::{ModelFlags, about, session_failure};
use crate::session;

/// Arguments of `causeway replay`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The record to play again: a file, or an id in the store.
    record: String,
    #[command(flatten)]
    place: StorePlace,
    /// Another model than the record names: a name, .gguf file or folder.
    #[arg(short, long)]
    model: Option<String>,
    /// Threads that compute [default: the CPUs this process may use].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Most prompt positions computed in one pass; changes no bit of the answer.
    #[arg(long, value_name = "TOKENS", default_value_t = 512)]
    chunk: usize,
    #[command(flatten)]
    ahead: AheadFlags,
    /// Print the verdict as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command: exit code 0 where the replay proves the record, 1 where it does not.
pub(crate) fn run(args: &Args) -> Outcome {
    let recorded = read_record(&args.record, &args.place)?.record;
    let again = run_again(&recorded, args)?;
    prove(&recorded, &again, args.json)
}

/// Runs the record's request again: same tokens, policy, seed and budget, on this machine.
fn run_again(recorded: &Record, args: &Args) -> Result<Record, Failure> {
    let interrupted = interrupts()?;
    let name = args.model.clone().unwrap_or_else(|| recorded.start.model.name.clone());
    let flags = ModelFlags {
        model: name,
        context: usize::try_from(recorded.start.request.effective.context_len).ok(),
        threads: args.threads,
        kv_type: recorded.start.numerics.kv_type.clone(),
        chunk: args.chunk,
    };
    let loaded = flags.open()?;
    let about = about(&loaded)?;
    let tree = serde_json::from_str(&recorded.start.policy.canonical).map_err(Failure::world)?;
    let file = PolicyFile::from_json(&tree).map_err(Failure::world)?;
    let policy = session::compile(&file, &about)?;
    let mut start = recorded.start.clone();
    start.request.id = 1;
    start.model = about.model.clone();
    start.numerics = about.numerics.clone();
    start.policy = causeway_session::policy_used(&policy);
    start.conditions = about.conditions(&Place::alone(flags.chunk()?));
    // A run that was cut short is played as far as it came.
    let budget = recorded.to_request().tokens_max as u64;
    start.request.effective.tokens_max = start.request.effective.tokens_max.min(budget);
    let Loaded { model, text, .. } = loaded;
    let mut engine = session::engine(model, flags.chunk()?, args.ahead);
    // Calls of tools are written in the form of the policy's template, where it has one.
    let templated = |text| causeway_session::with_template(text, &file).map_err(session_failure);
    let text = text.map(templated).transpose()?;
    let forms = text.map(|text| Forms::new(Arc::new(text), &about));
    let job = Job { start, policy, forms: forms.as_ref() };
    generate(&mut engine, job, &Clock::start(), &interrupted, &mut Unwatched)
}

/// Compares the record with the second run of it, and prints what was found.
pub(crate) fn prove(recorded: &Record, again: &Record, json: bool) -> Outcome {
    let verdict = compare(recorded, again);
    print_verdict(&verdict, recorded, again, Pair { a: "record", b: "replay" }, json)?;
    if verdict.is_proof() { Ok(()) } else { Err(Failure::Unequal) }
}
