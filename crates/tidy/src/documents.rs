//! Rules of documents: what they name exists, and what they say holds on any machine.

use std::collections::BTreeSet;

use crate::Found;
use crate::scan::has_word;
use crate::tree::{Source, Tree};
use crate::walls::{DOCUMENT_LINES_MAX, MACHINE_PATHS};

/// Where the command line lists its commands.
const COMMANDS: &str = "crates/cli/src/commands/mod.rs";

/// Every command and long option that a document names is one that the command line has.
pub(crate) fn commands(tree: &Tree, found: Found<'_>) {
    let Some(list) = tree.files.iter().find(|file| file.path == COMMANDS) else {
        return;
    };
    let commands = variants(&list.text);
    let cli: Vec<_> =
        tree.files.iter().filter(|file| file.path.starts_with("crates/cli/")).collect();
    for file in tree.documents() {
        for line in commands_in(&file.text) {
            let mut words = line.split_whitespace();
            let Some(command) = words.next() else {
                continue;
            };
            if !command.starts_with('-') && !commands.contains(command) {
                found(&file.path, format!("names `causeway {command}`, which does not exist"));
            }
            for option in words.filter_map(option_of) {
                let field = option.replace('-', "_");
                if !cli
                    .iter()
                    .any(|file| has_word(&file.text, &field) || file.text.contains(option))
                {
                    found(&file.path, format!("names `--{option}`, which does not exist"));
                }
            }
        }
    }
}

/// The variants of the enum of commands, as they are typed.
fn variants(text: &str) -> BTreeSet<String> {
    let lines = text.lines().skip_while(|line| !line.contains("enum Command")).skip(1);
    let lines = lines.take_while(|line| *line != "}").map(str::trim);
    let mut commands: BTreeSet<String> = lines
        .filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()))
        .filter_map(|line| line.split(['(', ' ', ',', '{']).next())
        .map(str::to_lowercase)
        .collect();
    commands.insert("help".to_owned());
    commands
}

/// What follows `causeway`, or `cargo run … --`, in the code of a document.
fn commands_in(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    for piece in code_in(text) {
        for line in piece.lines() {
            let line = line.trim().trim_start_matches("$ ");
            // What goes through a pipe comes after the last one.
            for part in line.split(" | ") {
                let part = part.trim();
                let after = part.strip_prefix("causeway ").or_else(|| {
                    let (before, after) = part.split_once(" -- ")?;
                    before.starts_with("cargo run").then_some(after)
                });
                lines.extend(after);
            }
        }
    }
    lines
}

/// The fenced blocks and the spans of code in a document.
fn code_in(text: &str) -> Vec<&str> {
    let mut code = Vec::new();
    for (index, piece) in text.split("```").enumerate() {
        if index % 2 == 1 {
            code.push(piece);
        } else {
            code.extend(piece.lines().flat_map(|line| line.split('`').skip(1).step_by(2)));
        }
    }
    code
}

/// A word's long option, without its dashes and its value.
fn option_of(word: &str) -> Option<&str> {
    let option = word.trim_start_matches('[').strip_prefix("--")?;
    let end = option.find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
    let option = &option[..end.unwrap_or(option.len())];
    (!option.is_empty()).then_some(option)
}

/// Every link to a file leads somewhere, and every path of the tree that is named is there.
pub(crate) fn links(tree: &Tree, found: Found<'_>) {
    for file in tree.documents() {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for piece in prose(file).flat_map(|line| line.split("](").skip(1)) {
            let target = piece.split([')', '#']).next().unwrap_or_default();
            let is_elsewhere = target.is_empty() || target.contains("://");
            if !is_elsewhere && !tree.has(&joined(folder, target)) {
                found(&file.path, format!("links to `{target}`, which does not exist"));
            }
        }
        for path in code_in(&file.text).into_iter().filter(|code| is_path_of_the_tree(tree, code)) {
            if !tree.has(path) && !tree.has(&format!("crates/{path}")) {
                found(&file.path, format!("names `{path}`, which does not exist"));
            }
        }
    }
}

/// Whether a span of code reads as a file of the tree: it begins with a room or a folder at the
/// root and ends as our files do.
fn is_path_of_the_tree(tree: &Tree, code: &str) -> bool {
    let ends = [".rs", ".md", ".sh", "/"].iter().any(|end| code.ends_with(end));
    let is_plain = code.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
    let first = code.split_once('/').map(|(first, _)| first).filter(|first| !first.is_empty());
    let begins = first.is_some_and(|first| tree.has(first) || tree.has(&format!("crates/{first}")));
    ends && is_plain && begins
}

/// A relative path seen from a folder, as a path from the root.
fn joined(folder: &str, target: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in folder.split('/').chain(target.split('/')) {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    names.join("/")
}

/// One sentence a line, so that a change of one sentence is a change of one line.
pub(crate) fn sentences(tree: &Tree, found: Found<'_>) {
    for file in tree.documents() {
        for line in prose(file).filter(|line| !line.starts_with('|') && has_two_sentences(line)) {
            let start: String = line.chars().take(40).collect();
            found(&file.path, format!("more than one sentence on the line \"{start}…\""));
        }
    }
}

fn has_two_sentences(line: &str) -> bool {
    // A numbered item has its full stop too.
    let line = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ' ');
    line.match_indices(". ").any(|(at, _)| {
        let abbreviates =
            ["e.g", "i.e", "vs", "cf", "al"].iter().any(|end| line[..at].ends_with(end));
        let next = line[at + 2..].trim_start_matches(['*', '`', '(', '"']).chars().next();
        !abbreviates && next.is_some_and(char::is_uppercase)
    })
}

/// The lines of a document outside its fenced blocks.
fn prose(file: &Source) -> impl Iterator<Item = &str> {
    let mut is_fenced = false;
    file.text.lines().map(str::trim).filter(move |line| {
        let is_fence = line.starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence
    })
}

/// Documents with a limit keep it.
pub(crate) fn document_lines(tree: &Tree, found: Found<'_>) {
    for file in tree.documents() {
        for (start, lines_max) in DOCUMENT_LINES_MAX {
            let lines = file.text.lines().count();
            if file.path.starts_with(start) && lines > *lines_max {
                found(&file.path, format!("{lines} lines, {lines_max} at most"));
            }
        }
    }
}

/// Nothing written names a path of the machine it was written on.
pub(crate) fn machine_paths(tree: &Tree, found: Found<'_>) {
    for file in &tree.files {
        for (start, end) in MACHINE_PATHS {
            let path = format!("{start}{end}");
            if starts_a_path(&file.text, &path) {
                found(&file.path, format!("names a path below `{path}`"));
            }
        }
    }
}

/// Whether `path` stands where a path begins, not in the middle of a longer one.
fn starts_a_path(text: &str, path: &str) -> bool {
    text.match_indices(path).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/}~".contains(c))
    })
}
