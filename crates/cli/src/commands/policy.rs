//! `causeway policy`: check or hash a policy file.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use causeway_policy::PolicyFile;

use crate::failure::{Failure, Outcome};

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
}

/// Largest policy file: templates are at most 1 MiB, and a file holds few long texts.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    let mut out = std::io::stdout().lock();
    match &args.action {
        Action::Check { file: path } => match PolicyFile::from_toml(&text(path)?) {
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
        },
        Action::Hash { file: path, canonical } => {
            let file = read(Some(path))?;
            let line = if *canonical { file.to_canonical_json() } else { file.hash_hex() };
            writeln!(out, "{line}")?;
            Ok(())
        }
    }
}

/// The policy of a file, or the policy that changes nothing.
pub(crate) fn read(path: Option<&Path>) -> Result<PolicyFile, Failure> {
    let Some(path) = path else { return Ok(PolicyFile::default()) };
    let file = PolicyFile::from_toml(&text(path)?);
    file.with_context(|| format!("`{}`", path.display())).map_err(Failure::caller)
}

fn text(path: &Path) -> Result<String, Failure> {
    let name = path.display();
    let bytes = std::fs::metadata(path)
        .with_context(|| format!("cannot read the policy file `{name}`"))
        .map_err(Failure::world)?
        .len();
    if bytes > FILE_BYTES_MAX {
        let sentence =
            anyhow!("the policy file `{name}` has {bytes} bytes, but may have {FILE_BYTES_MAX}");
        return Err(Failure::caller(sentence));
    }
    let bytes = std::fs::read(path)
        .with_context(|| format!("cannot read the policy file `{name}`"))
        .map_err(Failure::world)?;
    String::from_utf8(bytes)
        .map_err(|_| Failure::caller(anyhow!("the policy file `{name}` is not UTF-8 text")))
}
