//! `causeway policy`: check or hash a policy file, or show what a model says itself.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use causeway_policy::PolicyFile;
use causeway_session::{Defaults, SessionError};
use causeway_weights::ModelFile;

use crate::failure::{Failure, Outcome};
use crate::loaded::session_failure;
use crate::{model_path, policy_choice};

/// Arguments of `causeway policy`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

/// What is done with the file.
#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Say that the file is in order, or every mistake in it
    Check {
        /// The policy file (TOML)
        file: PathBuf,
    },
    /// Print the SHA-256 of the file's canonical form
    Hash {
        /// The policy file (TOML)
        file: PathBuf,
        /// Print the canonical form itself
        #[arg(long)]
        canonical: bool,
    },
    /// Print what a model file says about decoding as a policy file, each line with its origin
    Show {
        /// A model's name, a `.gguf` file, or a Hugging Face folder
        model: String,
        /// Print one object in place of the file
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    let mut out = std::io::stdout().lock();
    match &args.action {
        Action::Check { file: path } => {
            match PolicyFile::from_toml(&policy_choice::text(path, "policy")?) {
                Ok(file) => {
                    let identity = &file.identity;
                    let name = identity.name.as_deref().unwrap_or("(no name)");
                    let version = identity.version.as_deref().unwrap_or("(no version)");
                    writeln!(out, "ok: {name} {version} {}", file.hash_hex())?;
                    Ok(())
                }
                Err(error) => {
                    for problem in error.problems() {
                        writeln!(out, "{problem}")?;
                    }
                    let count = error.problems().len();
                    let sentence = match count {
                        0 => anyhow!("`{}`: {error}", path.display()),
                        1 => anyhow!("`{}` has 1 mistake", path.display()),
                        _ => anyhow!("`{}` has {count} mistakes", path.display()),
                    };
                    Err(Failure::caller(sentence))
                }
            }
        }
        Action::Hash { file: path, canonical } => {
            let file = read(Some(path))?;
            let line = if *canonical { file.to_canonical_json() } else { file.hash_hex() };
            writeln!(out, "{line}")?;
            Ok(())
        }
        Action::Show { model, json } => show(model, *json, &mut out),
    }
}

/// What a model file says of decoding, and what becomes of it.
fn show(model: &str, json: bool, out: &mut impl Write) -> Outcome {
    let file = ModelFile::open(&model_path::resolve(model)?).map_err(SessionError::from);
    let defaults = Defaults::of(&file.map_err(session_failure)?).map_err(session_failure)?;
    if json {
        writeln!(out, "{}", defaults.to_json(model))?;
        return Ok(());
    }
    writeln!(out, "# What {model:?} says about decoding.")?;
    let said = match defaults.policy() {
        Some(_) => "`run` and `serve` begin with it, and `--policy none` leaves it out.",
        None => "There is nothing in it that a policy takes over.",
    };
    write!(out, "# {said}\n{}", defaults.to_toml())?;
    Ok(())
}

/// The policy of a file, or the policy that changes nothing.
pub(crate) fn read(path: Option<&Path>) -> Result<PolicyFile, Failure> {
    let Some(path) = path else { return Ok(PolicyFile::default()) };
    policy_choice::read(path)
}
