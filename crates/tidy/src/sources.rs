//! Rules inside a source file: its first line, its length, its names, and where `unsafe` may be.

use crate::Found;
use crate::scan::{code_of, has_word};
use crate::tree::Tree;
use crate::walls::{EMPTY_NAMES, FILE_LINES_MAX, FORBIDDEN, KERNELS_FILE_LINES_MAX, UNSAFE_FILES};

/// Every file begins with one sentence that says what it is for.
pub(crate) fn first_line(tree: &Tree, found: Found<'_>) {
    for file in tree.rust() {
        let first = file.text.lines().next().unwrap_or_default();
        let sentence = first.strip_prefix("//! ").map(str::trim).unwrap_or_default();
        if !sentence.contains(' ') || !sentence.ends_with(['.', ':']) {
            found(&file.path, "its first line is not `//! ` and a sentence".to_owned());
        }
    }
}

/// No file is too long to be read at one sitting.
pub(crate) fn file_lines(tree: &Tree, found: Found<'_>) {
    for file in tree.rust().filter(|file| !file.is_test()) {
        let lines = file.text.lines().count();
        let is_kernel = file.room() == Some("kernels");
        let lines_max = if is_kernel { KERNELS_FILE_LINES_MAX } else { FILE_LINES_MAX };
        if lines > lines_max {
            found(&file.path, format!("{lines} lines, {lines_max} at most"));
        }
    }
}

/// `unsafe` has an address.
pub(crate) fn unsafe_code(tree: &Tree, found: Found<'_>) {
    for file in tree.rust().filter(|file| !UNSAFE_FILES.contains(&file.path.as_str())) {
        let code = code_of(&file.text);
        // The lint's own name is how a file would lift it.
        if has_word(&code, "unsafe") || code.contains("(unsafe_code") {
            found(&file.path, "`unsafe` outside the files that may have it".to_owned());
        }
    }
}

/// Neither files nor what they declare bear names that say nothing.
pub(crate) fn names(tree: &Tree, found: Found<'_>) {
    for file in tree.rust() {
        let places = file.path.trim_end_matches(".rs").split('/');
        for name in places.filter(|name| has_empty_word(name)) {
            found(&file.path, format!("a file or folder may not be called `{name}`"));
        }
        for name in declared(&code_of(&file.text)).filter(|name| has_empty_word(name)) {
            found(&file.path, format!("nothing may be called `{name}`"));
        }
    }
}

/// Nothing that waits to be done, and no test that does not run.
pub(crate) fn forbidden(tree: &Tree, found: Found<'_>) {
    for file in tree.rust() {
        let code = code_of(&file.text);
        for word in FORBIDDEN.iter().filter(|word| has_word(&code, word)) {
            found(&file.path, format!("`{word}` does not merge"));
        }
        // Only in comments are these words; each in two pieces, so that this file has none.
        for word in [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")] {
            if has_word(&file.text, word) && !has_word(&code, word) {
                found(&file.path, format!("`{word}` does not merge"));
            }
        }
    }
}

/// Tests stand in files of their own.
pub(crate) fn tests_apart(tree: &Tree, found: Found<'_>) {
    for file in tree.rust().filter(|file| !file.is_test()) {
        let code = code_of(&file.text);
        let is_inline = code.lines().any(|line| {
            let line = line.trim_start_matches("pub(crate) ").trim();
            line.starts_with("mod tests {") || line == "#[test]"
        });
        if is_inline {
            found(&file.path, "its tests are not in a file of their own".to_owned());
        }
    }
}

/// Words that declare the name after them.
const DECLARES: &[&str] =
    &["fn", "struct", "enum", "trait", "mod", "type", "const", "static", "let", "mut", "union"];

/// The names that code declares: items and plain variables.
fn declared(code: &str) -> impl Iterator<Item = &str> {
    let words =
        || code.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
    words()
        .zip(words().skip(1))
        .filter(|(before, _)| DECLARES.contains(before))
        .map(|(_, name)| name)
}

/// Whether a word of the name, in either spelling, says nothing.
fn has_empty_word(name: &str) -> bool {
    let mut spaced = String::new();
    for c in name.chars() {
        if c.is_uppercase() {
            spaced.push('_');
        }
        spaced.extend(c.to_lowercase());
    }
    spaced.starts_with("do_") || spaced.split('_').any(|word| EMPTY_NAMES.contains(&word))
}
