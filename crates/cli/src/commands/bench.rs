//! `causeway bench`: what the machine gives, and what a model makes of it.

mod kernels;
mod machine;
mod speed;

use crate::failure::Outcome;

/// Arguments of `causeway bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

/// What is measured.
#[derive(Debug, clap::Subcommand)]
enum What {
    /// Prefill and decode of a model, as llama-bench and llama-batched-bench define them.
    Speed(speed::Args),
    /// Each operation of a model: its time, bytes, operations and share of the limits.
    Kernels(kernels::Args),
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    match &args.what {
        What::Speed(args) => speed::run(args),
        What::Kernels(args) => kernels::run(args),
    }
}

/// Least, median and greatest of some figures.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
struct Spread {
    min: f64,
    median: f64,
    max: f64,
}

impl Spread {
    /// # Panics
    /// If there are no figures.
    fn of(mut figures: Vec<f64>) -> Self {
        figures.sort_by(f64::total_cmp);
        let last = figures.len() - 1;
        let median = f64::midpoint(figures[last / 2], figures[last.div_ceil(2)]);
        Self { min: figures[0], median, max: figures[last] }
    }
}

#[cfg(test)]
mod tests;
