//! What a user types for a model on the hub: `hf:owner/repo[@revision][:quant]`, or with a file.

use std::fmt;

use super::HubError;

/// What a name of a model on the hub begins with.
pub const PREFIX: &str = "hf:";

/// The branch that is meant where no revision is named.
pub(crate) const MAIN: &str = "main";

/// Longest owner, repository or revision, in bytes; the hub's own limit for names is 96.
const WORD_BYTES_MAX: usize = 128;

/// Longest path of a file inside a repository, in bytes.
const PATH_BYTES_MAX: usize = 512;

/// A model on the hub, by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HubName {
    pub owner: String,
    pub repo: String,
    /// A branch, a tag or a commit; `None` is the main branch.
    pub revision: Option<String>,
    pub wanted: Wanted,
}

/// What of a repository is wanted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wanted {
    /// What the repository offers first; see [`super::choose`].
    Default,
    /// The GGUF file of this quantisation, or `safetensors` for the folder.
    Quant(String),
    /// This GGUF file, by its path inside the repository.
    File(String),
}

/// What is wrong with a name that begins with `hf:`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameFault {
    #[error("it has no owner and repository, joined by `/`")]
    NoRepository,
    #[error(
        "`{word}` is no name there: letters, digits, `.`, `_` and `-` are taken, \
         {WORD_BYTES_MAX} at most, without `..`, `--` and signs at the ends"
    )]
    Word { word: String },
    #[error("`{revision}` is no revision: a branch, a tag or a commit")]
    Revision { revision: String },
    #[error("`{quant}` is no quantisation: letters, digits, `.`, `_` and `-` are taken")]
    Quant { quant: String },
    #[error(
        "`{path}` is no GGUF file of a repository: a path that ends in `.gguf`, of \
         {PATH_BYTES_MAX} bytes at most, without `..`"
    )]
    File { path: String },
}

impl HubName {
    /// Whether `text` is meant for a name on the hub.
    #[must_use]
    pub fn is_meant_by(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// Reads a name; `hf://` is taken for `hf:`.
    ///
    /// A revision stands behind the repository, or at the very end. A `/` in it is written `%2F`,
    /// except in `refs/pr/N`.
    ///
    /// # Errors
    /// [`HubError::Name`], which says what is wrong and what the form is.
    pub fn parse(text: &str) -> Result<Self, HubError> {
        let refuse = |fault| HubError::Name { name: text.to_owned(), fault };
        let rest = text.strip_prefix(PREFIX).unwrap_or(text);
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        let (owner, rest) = rest.split_once('/').ok_or_else(|| refuse(NameFault::NoRepository))?;
        let end = rest.find(['@', ':', '/']).unwrap_or(rest.len());
        let (repo, rest) = rest.split_at(end);
        if owner.is_empty() || repo.is_empty() {
            return Err(refuse(NameFault::NoRepository));
        }
        for word in [owner, repo] {
            if !is_word(word) || word.contains("--") || word.contains("..") {
                return Err(refuse(NameFault::Word { word: word.to_owned() }));
            }
        }
        let (revision, rest) = first_revision(rest);
        let (wanted, revision) = match revision {
            Some(revision) => (rest, Some(revision)),
            None => last_revision(rest),
        };
        let revision = revision.map(|text| text.replace("%2F", "/").replace("%2f", "/"));
        if let Some(revision) = revision.as_ref().filter(|revision| !is_revision(revision)) {
            return Err(refuse(NameFault::Revision { revision: revision.clone() }));
        }
        let wanted = Wanted::parse(wanted).map_err(refuse)?;
        Ok(Self { owner: owner.to_owned(), repo: repo.to_owned(), revision, wanted })
    }

    /// `owner/repo`.
    #[must_use]
    pub fn repository(&self) -> String {
        format!("{}/{}", self.owner, self.repo)
    }

    /// The revision that is meant.
    pub(crate) fn revision_or_main(&self) -> &str {
        self.revision.as_deref().unwrap_or(MAIN)
    }
}

impl Wanted {
    /// Reads what stands behind the repository: nothing, `:quant` or `/path.gguf`.
    fn parse(text: &str) -> Result<Self, NameFault> {
        if text.is_empty() {
            return Ok(Self::Default);
        }
        if let Some(quant) = text.strip_prefix(':') {
            let is_quant = is_word(quant);
            let fault = || NameFault::Quant { quant: quant.to_owned() };
            return if is_quant { Ok(Self::Quant(quant.to_owned())) } else { Err(fault()) };
        }
        let path = text.strip_prefix('/').unwrap_or(text);
        if is_inside(path) && is_gguf(path) {
            Ok(Self::File(path.to_owned()))
        } else {
            Err(NameFault::File { path: path.to_owned() })
        }
    }
}

impl fmt::Display for HubName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owner, repo, revision, wanted } = self;
        write!(f, "{PREFIX}{owner}/{repo}")?;
        if let Some(revision) = revision {
            write!(f, "@{}", revision.replace('/', "%2F"))?;
        }
        match wanted {
            Wanted::Default => Ok(()),
            Wanted::Quant(quant) => write!(f, ":{quant}"),
            Wanted::File(path) => write!(f, "/{path}"),
        }
    }
}

/// A revision right behind the repository, and what follows it.
fn first_revision(rest: &str) -> (Option<&str>, &str) {
    let Some(behind) = rest.strip_prefix('@') else {
        return (None, rest);
    };
    // The one kind of revision whose slashes are read as they stand.
    let refs = ["refs/pr/", "refs/convert/"].into_iter().find(|refs| behind.starts_with(refs));
    let skipped = refs.map_or(0, str::len);
    let end = behind[skipped..].find([':', '/']).map_or(behind.len(), |end| skipped + end);
    let (revision, rest) = behind.split_at(end);
    (Some(revision), rest)
}

/// What stands before a revision at the very end, and the revision.
fn last_revision(rest: &str) -> (&str, Option<&str>) {
    match rest.rsplit_once('@') {
        Some((before, revision)) if before.starts_with(':') || is_gguf(before) => {
            (before, Some(revision))
        }
        _ => (rest, None),
    }
}

fn is_word(word: &str) -> bool {
    let is_known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_sign = |c: char| matches!(c, '.' | '-');
    (1..=WORD_BYTES_MAX).contains(&word.len())
        && word.chars().all(is_known)
        && !word.starts_with(is_sign)
        && !word.ends_with(is_sign)
}

fn is_revision(revision: &str) -> bool {
    let is_known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '+');
    revision.len() <= WORD_BYTES_MAX && revision.chars().all(is_known) && is_inside(revision)
}

/// Whether a path stays inside what it is joined to.
pub(crate) fn is_inside(path: &str) -> bool {
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    let is_known = |c: char| !c.is_control() && !matches!(c, '\\' | ':' | '?' | '#' | '%');
    path.len() <= PATH_BYTES_MAX && path.chars().all(is_known) && path.split('/').all(is_plain)
}

pub(crate) fn is_gguf(path: &str) -> bool {
    path.len() > 5 && path.get(path.len() - 5..).is_some_and(|e| e.eq_ignore_ascii_case(".gguf"))
}

#[cfg(test)]
mod tests;
