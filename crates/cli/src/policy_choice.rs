//! Which policy a command runs under: a file, flags over it, or the built-in one.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use causeway_policy::{FileError, Method, PolicyFile};

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
    /// The effective policy: the file's fields, then the flags'.
    pub(crate) fn file(&self) -> Result<PolicyFile, Failure> {
        let mut file = match &self.policy {
            Some(path) => read(path)?,
            None => PolicyFile::default(),
        };
        let before = (file.shape.clone(), file.choose.clone());
        self.flags.apply(&mut file);
        let asks_for_a_draw = (&file.shape, &file.choose) != (&before.0, &before.1);
        if self.policy.is_none() && !asks_for_a_draw {
            file.choose.method = Method::Greedy;
        }
        file.check().map_err(Failure::caller)?;
        Ok(file)
    }
}

/// Reads a policy file.
pub(crate) fn read(path: &Path) -> Result<PolicyFile, Failure> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("policy `{}` cannot be read", path.display()))
        .map_err(Failure::caller)?;
    PolicyFile::from_toml(&text)
        .map_err(|error: FileError| anyhow::Error::new(error))
        .with_context(|| format!("policy `{}`", path.display()))
        .map_err(Failure::caller)
}
