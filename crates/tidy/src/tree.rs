//! The tree as text: every file that a rule may look at.

use std::fs;
use std::io;
use std::path::Path;

/// Folders that are not ours, or that break the rules on purpose; hidden ones are skipped too.
const SKIPPED: &[&str] = &["target", "crates/tidy/tests/canary", "fuzz/target"];

/// Endings of the files that are read.
const READ: &[&str] = &["rs", "toml", "md", "json", "jsonl", "sh", "py", "txt", "jinja", "yml"];

/// Longest file that is read: longer ones are data, not writing.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// One text file.
#[derive(Debug)]
pub(crate) struct Source {
    /// Path from the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Every text file below a root, sorted by path.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) files: Vec<Source>,
}

impl Source {
    /// Whether this is Rust.
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether this is Rust that only tests run.
    pub(crate) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs")
            || self.path.contains("/tests/")
            || self.path.contains("/benches/")
    }

    /// The room that the file belongs to.
    pub(crate) fn room(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }
}

impl Tree {
    /// Reads the tree at `root`.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let mut files = Vec::new();
        visit(root, "", &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { files })
    }

    /// The Rust files.
    pub(crate) fn rust(&self) -> impl Iterator<Item = &Source> {
        self.files.iter().filter(|file| file.is_rust())
    }

    /// The documents.
    pub(crate) fn documents(&self) -> impl Iterator<Item = &Source> {
        self.files.iter().filter(|file| file.path.ends_with(".md"))
    }

    /// The rooms' manifests, each with its room's name.
    pub(crate) fn manifests(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.files.iter().filter_map(|file| {
            let room = file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
            (!room.contains('/')).then_some((room, file))
        })
    }

    /// Whether a file or folder is in the tree, by its path from the root.
    pub(crate) fn has(&self, path: &str) -> bool {
        let below = format!("{}/", path.trim_end_matches('/'));
        self.files.iter().any(|file| file.path == path || file.path.starts_with(&below))
    }
}

fn visit(folder: &Path, below: &str, files: &mut Vec<Source>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        let kind = entry.file_type()?;
        let is_hidden = path.starts_with('.') && path != ".ci";
        if is_hidden || SKIPPED.contains(&path.as_str()) {
            continue;
        }
        if kind.is_dir() {
            visit(&entry.path(), &path, files)?;
        } else if kind.is_file() {
            let is_text = is_text(&path) && entry.metadata()?.len() <= FILE_BYTES_MAX;
            // A file that is not read is still there for links to meet.
            let text = if is_text { fs::read(entry.path())? } else { Vec::new() };
            files.push(Source { path, text: String::from_utf8_lossy(&text).into_owned() });
        }
    }
    Ok(())
}

fn is_text(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((_, ending)) => READ.contains(&ending),
        None => path.starts_with(".ci/"),
    }
}
