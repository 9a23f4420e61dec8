//! `causeway trim`: what it would buy to leave a field out of an answer.

mod field;
mod inputs;
mod table;

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use causeway_constraint::read_schema;
use causeway_engine::Engine;
use causeway_ledger::{Record, Stop, shown_name};
use causeway_policy::PolicyFile;
use causeway_request::RequestId;
use causeway_session::{About, Asked, Forms, Given, Loaded, Place};
use serde_json::{Value, json};

use crate::ahead::AheadFlags;
use crate::clock::Clock;
use crate::commands::run::{clear_progress, ended_well, interrupts, show_progress};
use crate::failure::{Failure, Outcome};
use crate::generate::{Job, Unwatched, generate};
use crate::loaded::{ModelFlags, about, session_failure};
use crate::prompting::prompt;
use crate::{policy_choice, session};
use inputs::Input;

/// Arguments of `causeway trim`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Policy file with `constraints.schema`; it is left as it is.
    policy: PathBuf,
    /// The field to leave out, by its name or by its JSON pointer, as in `/verdict/reasoning`.
    #[arg(long, value_name = "FIELD")]
    field: String,
    /// A prompt to compare on; may be given often.
    #[arg(long, value_name = "TEXT")]
    prompt: Vec<String>,
    /// JSON Lines to compare on: `{"prompt": …}`, and where it is known the right answer's fields
    /// as `"expect": {…}`, which an answer meets with exactly these values.
    #[arg(long, value_name = "FILE")]
    eval: Option<PathBuf>,
    /// Seed of the first input; the next ones count up, and the three variants of an input share
    /// theirs, so that they draw by the same random numbers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    model: ModelFlags,
    /// Write one JSON object: the table's figures, and every answer.
    #[arg(long)]
    json: bool,
}

/// The variant that nothing is taken from.
const AS_IT_IS: &str = "as it is";

/// One of the three ways to answer.
struct Variant {
    name: String,
    file: PolicyFile,
}

impl Variant {
    /// Refuses a schema that cannot be held, and says where it is the one without the field.
    fn check(&self, forms: &Forms, field: &str) -> Outcome {
        let form = &self.file.constraints.form;
        let refused = match forms.plan(form) {
            Ok(_) => return Ok(()),
            Err(error) => session_failure(error.into()),
        };
        let is_whole = self.name == AS_IT_IS;
        Err(if is_whole { refused } else { refused.within(without(field)) })
    }
}

fn without(field: &str) -> String {
    format!("the schema without `{}` cannot be held", shown_name(field))
}

/// A variant's answers, in the order of the inputs.
struct Answered {
    name: String,
    records: Vec<Record>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    let inputs = inputs::read(&args.prompt, args.eval.as_deref())?;
    let file = policy_choice::read(&args.policy)?;
    let variants = variants(&file, &args.field)?;
    let schema = schema_of(&file)?;
    inputs.iter().try_for_each(|input| input.check(&schema, &args.field))?;
    let loaded = args.model.open()?;
    let about = about(&loaded)?;
    let Loaded { model, text, .. } = loaded;
    let text = text.ok_or_else(|| Failure::caller(anyhow!("a schema needs a model with text")))?;
    let text = causeway_session::with_template(text, &file);
    let text = text.map_err(session_failure)?;
    let forms = Forms::new(Arc::new(text), &about);
    variants.iter().try_for_each(|variant| variant.check(&forms, &args.field))?;
    let chunk = args.model.chunk()?;
    let mut engine = session::engine(model, chunk, AheadFlags::default());
    let interrupted = interrupts()?;
    let empty = |variant: &Variant| Answered { name: variant.name.clone(), records: Vec::new() };
    let mut answered: Vec<Answered> = variants.iter().map(empty).collect();
    let (mut done, count) = (0, inputs.len() * variants.len());
    // Input by input, so that a machine that changes its speed changes it for all variants.
    for (index, input) in (0_u64..).zip(&inputs) {
        let seed = args.seed.wrapping_add(index);
        let place = Run { about: &about, forms: &forms, chunk, seed };
        for (variant, answered) in variants.iter().zip(&mut answered) {
            show_progress("trim", done, count, "answers");
            let record = place.answer(&mut engine, &variant.file, input, &interrupted);
            let record = record.and_then(|record| whole(record, done, count));
            answered.records.push(record.inspect_err(|_| clear_progress())?);
            done += 1;
        }
    }
    clear_progress();
    let told = if args.json {
        format!("{}\n", table::object(&answered, &inputs, &args.field))
    } else {
        table::lines(&answered, &inputs, &args.field)
    };
    std::io::stdout().lock().write_all(told.as_bytes())?;
    Ok(())
}

/// The record of a run that came to its end; an interrupted one, or one that failed, is no answer
/// to compare.
fn whole(record: Record, done: usize, count: usize) -> Result<Record, Failure> {
    if let Stop::Cancelled { .. } = record.end.stop {
        let sentence = anyhow!("interrupted behind {done} of {count} answers");
        return Err(Failure::World(sentence));
    }
    ended_well(&record)?;
    Ok(record)
}

/// The policy as it is, without the field, and without it but asked to think of it.
fn variants(file: &PolicyFile, field: &str) -> Result<[Variant; 3], Failure> {
    let mut schema = schema_of(file)?;
    field::delete(&mut schema, field).map_err(Failure::Caller)?;
    let mut without = file.clone();
    without.constraints.form.schema = Some(schema.to_string());
    let mut silent = without.clone();
    let name = field::name(field);
    let asks = format!("Reason silently about \"{name}\" before you answer, and do not write it.");
    let system = silent.prompt.system.take();
    silent.prompt.system = Some(system.map_or(asks.clone(), |system| format!("{system}\n{asks}")));
    let name = shown_name(&name);
    Ok([
        Variant { name: AS_IT_IS.to_owned(), file: file.clone() },
        Variant { name: format!("without `{name}`"), file: without },
        Variant { name: "without, reasoned silently".to_owned(), file: silent },
    ])
}

fn schema_of(file: &PolicyFile) -> Result<Value, Failure> {
    let schema = file.constraints.form.schema.as_deref().ok_or_else(|| {
        Failure::caller(anyhow!("the policy has no `constraints.schema`, so there is no field"))
    })?;
    read_schema(schema).map_err(Failure::caller)
}

/// What all runs have in common, and the seed of one.
struct Run<'a> {
    about: &'a About,
    forms: &'a Forms,
    chunk: usize,
    seed: u64,
}

impl Run<'_> {
    fn answer(
        &self,
        engine: &mut Engine,
        file: &PolicyFile,
        input: &Input,
        interrupted: &std::sync::atomic::AtomicBool,
    ) -> Result<Record, Failure> {
        let policy = session::compile(file, self.about)?;
        let given = match self.forms.text().template {
            Some(_) => Given::Chat(input.prompt.clone()),
            None => Given::Raw(input.prompt.clone()),
        };
        let prompt = prompt(given, file, self.about, Some(self.forms.text()))?;
        let received = json!({ "prompt": input.prompt });
        let asked = Asked { id: RequestId(1), received, seed: Some(self.seed), choice: 0 };
        let place = Place::alone(self.chunk);
        let start = causeway_session::start(self.about, &policy, prompt, asked, &place);
        let job = Job { start, policy, forms: Some(self.forms) };
        generate(engine, job, &Clock::start(), interrupted, &mut Unwatched)
    }
}
