//! `causeway rm`: remove a model that was fetched, from the home or from the hub's cache.

use std::io::{BufRead, IsTerminal as _, Write};
use std::path::PathBuf;

use causeway_models::Named;
use causeway_models::hub::{self, Removal};

use crate::failure::{Failure, Outcome};
use crate::model_path;

/// Arguments of `causeway rm`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A name from `causeway models`, or `hf:owner/repo[@revision][:quant]`; without revision and
    /// quant all that is kept of the repository.
    name: String,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
}

/// Longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: u64 = 256;

/// What goes.
enum Going {
    Files(Vec<PathBuf>),
    Hub(Removal),
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    let Args { name, yes } = args;
    let (going, bytes, meant) = going(name)?;
    // Whoever types an alias is told what goes.
    let name = if meant == *name { format!("`{name}`") } else { format!("`{name}` ({meant})") };
    let megabytes = bytes.div_ceil(1_000_000);
    let question = format!("remove {name} and free {megabytes} MB? [y/N] ");
    if !yes && !is_agreed(&question)? {
        eprintln!("nothing was removed");
        return Ok(());
    }
    match going {
        Going::Files(paths) => paths.iter().try_for_each(std::fs::remove_file)?,
        Going::Hub(removal) => {
            removal.run().map_err(|error| model_path::failure(error.into()))?;
        }
    }
    eprintln!("removed {name}: {megabytes} MB are free again");
    Ok(())
}

/// What goes, its bytes, and the name it has in full.
fn going(name: &str) -> Result<(Going, u64, String), Failure> {
    match model_path::named(name)? {
        // What is the user's own is the user's own to remove.
        Named::Path(path) => Err(Failure::caller(anyhow::anyhow!(
            "`{}` is a path: only what `causeway pull` fetched is removed, by its name",
            path.display()
        ))),
        Named::Model(entry) => {
            let home = model_path::home()?;
            let mut paths = vec![home.file_of(&entry), home.partial_of(&entry)];
            let length = |path: &PathBuf| {
                let found = std::fs::symlink_metadata(path).ok().filter(|found| !found.is_dir());
                found.map(|found| found.len())
            };
            paths.retain(|path| length(path).is_some());
            if paths.is_empty() {
                return Err(Failure::caller(anyhow::anyhow!(
                    "model `{}` is not fetched",
                    entry.name
                )));
            }
            let bytes = paths.iter().filter_map(length).sum();
            Ok((Going::Files(paths), bytes, entry.name))
        }
        Named::Hub(name) => {
            let removal = hub::removal(&model_path::the_hub()?, &name)
                .map_err(|error| model_path::failure(error.into()))?;
            let bytes = removal.bytes;
            Ok((Going::Hub(removal), bytes, name.to_string()))
        }
    }
}

/// Asks on the terminal; without one, `--yes` must have said it.
fn is_agreed(question: &str) -> Result<bool, Failure> {
    let (stdin, stderr) = (std::io::stdin(), std::io::stderr());
    if !stdin.is_terminal() || !stderr.is_terminal() {
        return Err(Failure::caller(anyhow::anyhow!(
            "nobody can be asked here: say --yes to remove it"
        )));
    }
    asked(question, stdin.lock(), &mut stderr.lock())
}

/// Puts the question and reads the answer: a line that says yes, and nothing else, is one.
fn asked(question: &str, input: impl BufRead, output: &mut impl Write) -> Result<bool, Failure> {
    write!(output, "{question}")?;
    output.flush()?;
    let mut line = String::new();
    // An answer is short; who sends more does not answer.
    input.take(ANSWER_BYTES_MAX).read_line(&mut line)?;
    let answer = line.trim().to_ascii_lowercase();
    Ok(matches!(answer.as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests;
