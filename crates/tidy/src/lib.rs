//! The walls between the rooms, kept as tests: what each rule asks, and who breaks it.
//!
//! It may not know the rooms' code: it reads the tree as text.
//! tree → rules → breaches; `tests/architecture.rs` wants none, `tests/canary.rs` wants each.

mod documents;
mod rooms;
mod scan;
mod sources;
mod tree;
pub mod walls;

use std::fmt;
use std::io;
use std::path::Path;

/// One place that breaks one rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Breach {
    /// The rule's name, as [`RULES`] has it.
    pub rule: &'static str,
    /// Path from the root, with `/`.
    pub path: String,
    /// One clause.
    pub what: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.path, self.what, self.rule)
    }
}

/// Where a rule puts what it finds: path and clause.
type Found<'a> = &'a mut dyn FnMut(&str, String);

/// A rule looks at the whole tree.
type Rule = fn(&tree::Tree, Found<'_>);

/// Every rule, by name.
const RULES: &[(&str, Rule)] = &[
    ("arrows", rooms::arrows),
    ("words", rooms::words),
    ("lints", rooms::lints),
    ("dependencies", rooms::dependencies),
    ("first-line", sources::first_line),
    ("file-lines", sources::file_lines),
    ("unsafe", sources::unsafe_code),
    ("names", sources::names),
    ("forbidden", sources::forbidden),
    ("tests-apart", sources::tests_apart),
    ("commands", documents::commands),
    ("links", documents::links),
    ("sentences", documents::sentences),
    ("document-lines", documents::document_lines),
    ("machine-paths", documents::machine_paths),
];

/// The names of all rules.
pub fn rules() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|(name, _)| *name)
}

/// Every breach of every rule in the tree at `root`, sorted.
///
/// # Errors
/// When the tree cannot be read.
pub fn breaches(root: &Path) -> io::Result<Vec<Breach>> {
    let tree = tree::Tree::read(root)?;
    let mut breaches = Vec::new();
    for (rule, look) in RULES {
        look(&tree, &mut |path, what| {
            breaches.push(Breach { rule, path: path.to_owned(), what });
        });
    }
    breaches.sort();
    Ok(breaches)
}

/// The tree this crate stands in.
#[must_use]
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("the crate stands two folders below the root")
}
