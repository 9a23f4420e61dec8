//! The commands, one file each; every file owns its arguments and its `run`.

mod bench;
mod choose;
mod completions;
mod detokenize;
mod diff;
mod doctor;
mod inspect;
mod keys;
mod ledger;
mod load;
mod logits;
mod models;
mod order;
mod policy;
mod pull;
mod quantize;
mod replay;
mod rm;
mod run;
mod schema;
mod score;
mod serve;
mod template;
mod tokenize;
mod trace;
mod trim;

use crate::failure::Outcome;

/// What `causeway` can be asked to do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Answer a prompt, stream the text, and print one line of account.
    Run(run::Args),
    /// Answer over HTTP, many requests at once.
    Serve(serve::Args),
    /// Show every decoding step: what the pass runs over, the token, the sequence so far.
    Trace(trace::Args),
    /// Turn text into token ids.
    Tokenize(tokenize::Args),
    /// Turn token ids into text.
    Detokenize(detokenize::Args),
    /// Print the logits at each position of a token sequence.
    Logits(logits::Args),
    /// Log-likelihood and bits per byte of a text.
    Score(score::Args),
    /// Say which documents a JSON schema takes, through the mask that decoding uses.
    Schema(schema::Args),
    /// Say in which order a JSON schema's fields are written, and what each follows from.
    Order(order::Args),
    /// Say what it would buy to leave a field out of an answer.
    Trim(trim::Args),
    /// Run a policy on literal logits.
    Choose(choose::Args),
    /// Render messages through a chat template.
    Template(template::Args),
    /// Run a record again and prove it equal, or name the first step that differs.
    Replay(replay::Args),
    /// Compare two records and name the first step that differs, and why.
    Diff(diff::Args),
    /// List, show and export the records in the store.
    Ledger(ledger::Args),
    /// Draw API keys for a server.
    Keys(keys::Args),
    /// Show a model file: metadata, tensors, sizes and values.
    Inspect(inspect::Args),
    /// Look a model over before it is used, and say what is unusual about it.
    Doctor(doctor::Args),
    /// Fetch a model by name, or from the hub.
    Pull(pull::Args),
    /// Write a model file again with its weights in smaller types.
    Quantize(quantize::Args),
    /// List the models there are and where they are kept.
    Models(models::Args),
    /// Remove a model that was fetched.
    Rm(rm::Args),
    /// Check or hash a policy file.
    Policy(policy::Args),
    /// Measure the machine's limits and a model's share of them.
    Bench(bench::Args),
    /// Ask a server many things at their times, and measure how it answers.
    Load(Box<load::Args>),
    /// Print a completion script for a shell.
    Completions(completions::Args),
}

/// Runs one command to its end.
pub(crate) fn run(command: Command) -> Outcome {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Tokenize(args) => tokenize::run(&args),
        Command::Detokenize(args) => detokenize::run(&args),
        Command::Logits(args) => logits::run(&args),
        Command::Score(args) => score::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Order(args) => order::run(&args),
        Command::Trim(args) => trim::run(&args),
        Command::Choose(args) => choose::run(&args),
        Command::Template(args) => template::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Ledger(args) => ledger::run(&args),
        Command::Keys(args) => keys::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Pull(args) => pull::run(&args),
        Command::Quantize(args) => quantize::run(&args),
        Command::Models(args) => models::run(&args),
        Command::Rm(args) => rm::run(&args),
        Command::Policy(args) => policy::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Load(args) => load::run(&args),
        Command::Completions(args) => completions::run(&args),
    }
}
