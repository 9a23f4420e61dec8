//! What can go wrong between a name on the hub and its files, and whose mistake it is.

use std::io;
use std::path::PathBuf;

use super::choose::ChoiceFault;
use super::name::NameFault;
use crate::Sha256;

/// Why a name on the hub did not become a model.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    #[error(
        "`{name}` is no model on the hub: {fault}; the form is hf:owner/repo[@revision][:quant] \
         or hf:owner/repo[@revision]/file.gguf"
    )]
    Name { name: String, fault: NameFault },
    #[error("`{name}`: {fault}")]
    Choice { name: String, fault: ChoiceFault },
    /// Not in the cache, and the command does not download.
    #[error("model `{name}` is not fetched yet: run `causeway pull {name}`")]
    NotFetched { name: String },
    #[error(
        "model `{name}` is not in the cache `{}`, and HF_HUB_OFFLINE forbids to fetch it: unset \
         that, or put the model there",
        cache.display()
    )]
    Offline { name: String, cache: PathBuf },
    #[error(
        "`{name}` is gated or private and the hub says {status}: {}",
        way_in(page, *has_token)
    )]
    Gated { name: String, page: String, status: u16, has_token: bool },
    #[error("the hub has no `{what}` (status {status}): check the name; {}", private(*has_token))]
    Missing { what: String, status: u16, has_token: bool },
    #[error("`{url}` cannot be reached ({tries} tries): check the network and HTTPS_PROXY")]
    Network { url: String, tries: usize, source: Box<ureq::Error> },
    #[error("`{url}` cannot be downloaded ({tries} tries): {fault}")]
    Answer { url: String, tries: usize, fault: AnswerFault },
    #[error(
        "`{file}` has sha256 {found}, {wanted} was expected: nothing was kept; run the command \
         again, and if it stays so, a proxy or mirror changes what it passes on"
    )]
    WrongHash { file: String, found: Sha256, wanted: Sha256 },
    #[error(
        "no space for the download in `{}`: it needs {bytes_needed} bytes, {bytes_free} are free: \
         free some, or set HF_HUB_CACHE to a folder on another disk",
        path.display()
    )]
    Space { path: PathBuf, bytes_needed: u64, bytes_free: u64 },
    #[error("cannot {operation} `{}`", path.display())]
    File { operation: &'static str, path: PathBuf, source: io::Error },
}

/// What was wrong with a server's answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerFault {
    #[error("the server answers with status {0}")]
    Status(u16),
    #[error("the connection was cut after {bytes} of {bytes_wanted} bytes; run the command again")]
    Cut { bytes: u64, bytes_wanted: u64 },
    #[error("the server announces {bytes} bytes, {bytes_wanted} were expected")]
    Length { bytes: u64, bytes_wanted: u64 },
    #[error("the server sends more than the {bytes_wanted} bytes that were expected")]
    TooLong { bytes_wanted: u64 },
    #[error("the server sends another part than the one asked for")]
    OtherPart,
    #[error("the server does not tell the file's length: say `bytes` in the catalogue")]
    NoLength,
    #[error("the file changes while it is fetched")]
    Changes,
    #[error("the answer has no usable {0}: is it a hub that HF_ENDPOINT names?")]
    Lacks(&'static str),
    #[error("the answer is no list of files: is it a hub that HF_ENDPOINT names?")]
    NoList,
    #[error("it is redirected more than {0} times, or from https to http")]
    Redirects(usize),
}

impl HubError {
    /// Whether the caller can mend it by asking for something else.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        match self {
            Self::Name { .. }
            | Self::Choice { .. }
            | Self::NotFetched { .. }
            | Self::Offline { .. }
            | Self::Gated { .. }
            | Self::Missing { .. } => true,
            Self::Network { .. }
            | Self::Answer { .. }
            | Self::WrongHash { .. }
            | Self::Space { .. }
            | Self::File { .. } => false,
        }
    }

    /// A failed call of the system on a file of the cache.
    pub(crate) fn file(
        operation: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { operation, path, source }
    }
}

fn way_in(page: &str, has_token: bool) -> String {
    if has_token {
        format!("the token in use has no access: ask for it at {page}, or use another token")
    } else {
        format!("ask for access at {page}, then set HF_TOKEN to a token of that account")
    }
}

fn private(has_token: bool) -> &'static str {
    if has_token {
        "if it is private, the token in use has no access to it"
    } else {
        "if it is private, set HF_TOKEN to a token that may read it"
    }
}
