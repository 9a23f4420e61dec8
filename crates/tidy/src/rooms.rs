//! Rules between rooms: arrows, banned words, shared lints and dependencies.

use std::collections::BTreeMap;

use crate::Found;
use crate::scan::{code_of, has_word};
use crate::tree::{Source, Tree};
use crate::walls::{DEPENDENCIES, DEPENDENCIES_MAX, ROOMS, Room};

/// What a manifest names, and whether only its tests do.
struct Named {
    package: String,
    for_tests: bool,
}

/// A room names only the rooms that its table allows.
pub(crate) fn arrows(tree: &Tree, found: Found<'_>) {
    for (name, manifest) in tree.manifests() {
        let Some(room) = ROOMS.iter().find(|room| room.name == name) else {
            found(&manifest.path, format!("the room `{name}` has no walls in the table"));
            continue;
        };
        for Named { package, for_tests } in named(manifest) {
            let Some(other) = package.strip_prefix("causeway-") else {
                continue;
            };
            let other = other.replace('-', "_");
            let is_allowed = room.arrows.contains(&other.as_str());
            if !is_allowed && (!for_tests || other == "cli") {
                found(&manifest.path, format!("`{name}` may not name `{other}`"));
            }
        }
    }
}

/// A room does not contain what it may not know.
pub(crate) fn words(tree: &Tree, found: Found<'_>) {
    for file in tree.rust().filter(|file| !file.is_test()) {
        let Some(room) = ROOMS.iter().find(|room| Some(room.name) == file.room()) else {
            continue;
        };
        let Room { name, banned, .. } = room;
        let code = code_of(&file.text);
        for word in banned.iter().filter(|word| has_word(&code, word)) {
            found(&file.path, format!("`{name}` may not know `{word}`"));
        }
    }
}

/// Every crate takes the workspace's lints.
pub(crate) fn lints(tree: &Tree, found: Found<'_>) {
    for (_, manifest) in tree.manifests() {
        let inherits = section(&manifest.text, "[lints]").any(|line| line == "workspace = true");
        if !inherits {
            found(&manifest.path, "does not inherit the workspace's lints".to_owned());
        }
    }
}

/// Third-party packages are few, and each has its reason in the table.
pub(crate) fn dependencies(tree: &Tree, found: Found<'_>) {
    let mut users: BTreeMap<String, &str> = BTreeMap::new();
    for (_, manifest) in tree.manifests() {
        for Named { package, .. } in named(manifest) {
            if !package.starts_with("causeway-") {
                users.entry(package).or_insert(&manifest.path);
            }
        }
    }
    for (package, path) in &users {
        if !DEPENDENCIES.iter().any(|(known, _)| known == package) {
            found(path, format!("`{package}` has no reason in the table of dependencies"));
        }
    }
    let place = "crates/tidy/src/walls.rs";
    for (known, _) in DEPENDENCIES.iter().filter(|(known, _)| !users.contains_key(*known)) {
        if tree.has(place) {
            found(
                place,
                format!("`{known}` is in the table of dependencies, and no room names it"),
            );
        }
    }
    if users.len() > DEPENDENCIES_MAX {
        let count = users.len();
        found("Cargo.toml", format!("{count} direct dependencies, {DEPENDENCIES_MAX} at most"));
    }
}

/// The packages that a manifest names, whichever way they are written.
fn named(manifest: &Source) -> Vec<Named> {
    let mut packages = Vec::new();
    let mut inside = None;
    for line in manifest.text.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let for_tests = header.contains("dev-dependencies");
            inside = header.ends_with("dependencies").then_some(for_tests);
            if let Some((_, package)) = header.split_once("dependencies.") {
                packages.push(Named { package: package.to_owned(), for_tests });
            }
        } else if let Some(for_tests) = inside {
            let package = line.split(['=', '.', ' ']).next().unwrap_or_default();
            if !package.is_empty() && !package.starts_with('#') {
                packages.push(Named { package: package.to_owned(), for_tests });
            }
        }
    }
    packages
}

/// The lines of one section of a manifest.
fn section<'a>(text: &'a str, header: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = text.lines().map(str::trim).skip_while(move |line| *line != header).skip(1);
    lines.take_while(|line| !line.starts_with('['))
}
