//! Which policy a command runs under: a file, flags over it, or the built-in one.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use causeway_policy::{Method, PolicyFile};

use crate::failure::Failure;
use crate::policy_flags::PolicyFlags;

/// A policy file, and single fields over it.
#[derive(Debug, clap::Args)]
pub(crate) struct PolicyChoice {
    /// Policy file; without one the answer is greedy, unless a flag asks for a draw.
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) flags: PolicyFlags,
}

impl PolicyChoice {
    /// The effective policy, the file's fields and then the flags', and the request's seed.
    ///
    /// A seed is the policy's only where the policy file fixes one: otherwise it belongs to the
    /// request, and runs of other seeds are runs of the same policy.
    pub(crate) fn file(&self) -> Result<(PolicyFile, Option<u64>), Failure> {
        let mut file = match &self.policy {
            Some(path) => read(path)?,
            None => PolicyFile::default(),
        };
        let fixes_a_seed = file.choose.seed.is_some();
        self.flags.apply(&mut file)?;
        if self.policy.is_none() && !self.flags.ask_for_a_draw() {
            file.choose.method = Method::Greedy;
        }
        file.check().map_err(Failure::caller)?;
        let seed = if !fixes_a_seed { file.choose.seed.take() } else { None };
        Ok((file, seed))
    }
}

/// Largest policy file: templates are at most 1 MiB, and a file holds few long texts.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Reads a policy file.
pub(crate) fn read(path: &Path) -> Result<PolicyFile, Failure> {
    PolicyFile::from_toml(&text(path, "policy")?)
        .with_context(|| format!("policy `{}`", path.display()))
        .map_err(Failure::caller)
}

/// The text of a policy file, or of another one that a policy has; one that is not there is the
/// caller's mistake.
pub(crate) fn text(path: &Path, what: &str) -> Result<String, Failure> {
    let name = path.display();
    let unreadable = |error: io::Error| {
        let is_callers_mistake = error.kind() == io::ErrorKind::NotFound;
        let error = anyhow::Error::new(error);
        Failure::of(error.context(format!("cannot read the {what} `{name}`")), is_callers_mistake)
    };
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let sentence = anyhow!("the {what} `{name}` has more than {FILE_BYTES_MAX} bytes");
        return Err(Failure::caller(sentence));
    }
    String::from_utf8(bytes)
        .map_err(|_| Failure::caller(anyhow!("the {what} `{name}` is not UTF-8 text")))
}
