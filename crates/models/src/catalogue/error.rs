//! What can be wrong with a catalogue's file, with the line that is to be changed.

use std::io;
use std::path::PathBuf;

use crate::hub::HubError;

/// Why a catalogue's file was not read.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    #[error("cannot read the catalogue `{}`", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("the catalogue `{}` has more than {limit} bytes", path.display())]
    Length { path: PathBuf, limit: u64 },
    /// No TOML, or keys and values of another kind than a catalogue's.
    #[error("`{}`, line {line}: {}", path.display(), on_one_line(fault))]
    Toml { path: PathBuf, line: usize, fault: Box<toml::de::Error> },
    #[error("`{}`, line {line}: schema is {found}, this version reads 1", path.display())]
    Schema { path: PathBuf, line: usize, found: u32 },
    #[error("`{}`, line {line}: `{name}` {fault}", path.display())]
    Entry { path: PathBuf, line: usize, name: String, fault: EntryFault },
}

/// What is wrong with one name of a catalogue; the sentence goes on from the name.
#[derive(Debug, thiserror::Error)]
pub enum EntryFault {
    #[error(
        "cannot be a name: letters, digits, `.`, `_`, `-` and `:` are taken, {limit} at most, \
         without `hf:` at the start or `.gguf` at the end"
    )]
    Name { limit: usize },
    #[error("is the name of a built-in model, which no other may have: choose another name")]
    BuiltIn,
    #[error("is a name already, in line {line}")]
    Twice { line: usize },
    #[error("has {count} of `path`, `hf`, `url` and `parts`, and one is wanted")]
    Sources { count: usize },
    #[error("lacks `{key}`, which says what its file must be")]
    Lacks { key: &'static str },
    #[error("has `{key}`, which says nothing of a `{source_key}`")]
    Surplus { key: &'static str, source_key: &'static str },
    #[error("has a `sha256` that is none: 64 hexadecimal digits are wanted")]
    Hash,
    #[error("has the file `{file}`: a name that ends in `.gguf` is wanted, without a folder")]
    FileName { file: String },
    #[error("has the file `{file}`, which is that of `{owner}`: give it another as `file`")]
    FileTaken { file: String, owner: String },
    #[error("has the address `{url}`: one that begins with `https://` or `http://` is wanted")]
    Url { url: String },
    #[error("is of the hub, but {fault}")]
    Hub { fault: Box<HubError> },
    #[error("stands for {}", nowhere(way, nearest))]
    Alias {
        /// The names from the alias on; the last is unknown, or the alias itself.
        way: Vec<String>,
        nearest: Option<String>,
    },
}

impl CatalogueError {
    /// Whether the caller can mend it by changing a file of his own.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        match self {
            Self::File { source, .. } => {
                matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData)
            }
            Self::Length { .. } | Self::Toml { .. } | Self::Schema { .. } | Self::Entry { .. } => {
                true
            }
        }
    }
}

/// The parser's message without the picture of the line.
fn on_one_line(fault: &toml::de::Error) -> String {
    fault.message().lines().map(str::trim).collect::<Vec<_>>().join(", ")
}

fn nowhere(way: &[String], nearest: &Option<String>) -> String {
    let last = way.last().map_or("", String::as_str);
    if way.iter().filter(|name| *name == last).count() > 1 {
        let chain: Vec<String> = way.iter().map(|name| format!("`{name}`")).collect();
        return format!("itself: {}", chain.join(" is "));
    }
    let hint = nearest.as_ref().map(|name| format!(": is `{name}` meant?"));
    format!("`{last}`, which is no name{}", hint.unwrap_or_default())
}
