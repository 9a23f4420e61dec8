//! Cases of finding a model by name.

use super::{CATALOGUE, DEFAULT_MODEL, distance, find};

fn check_unknown(name: &str, want: &str) {
    let error = find(name).expect_err("the name is not in the catalogue");
    assert!(error.is_callers_mistake());
    assert_eq!(error.to_string(), want);
}

#[test]
fn every_name_is_found_and_the_default_is_first() {
    for entry in CATALOGUE {
        assert_eq!(find(entry.name).unwrap(), entry);
    }
    assert_eq!(CATALOGUE[0].name, DEFAULT_MODEL);
}

#[test]
fn names_and_files_are_told_apart() {
    for (index, entry) in CATALOGUE.iter().enumerate() {
        for other in &CATALOGUE[index + 1..] {
            assert_ne!(entry.name, other.name);
            assert_ne!(entry.file_name, other.file_name);
        }
    }
}

#[test]
fn an_unknown_name_lists_the_known_ones_nearest_first() {
    let (s, g, q) = ("`smollm2:135m`", "`gemma3:270m`", "`qwen2.5-coder:0.5b`");
    let sentence = |typed: &str, [first, second, third]: [&str; 3]| {
        format!(
            "no model is called `{typed}`: there are {first}, {second} and {third}, or give a path"
        )
    };
    check_unknown("smollm2", &sentence("smollm2", [s, g, q]));
    check_unknown("gemma3:1b", &sentence("gemma3:1b", [g, s, q]));
    check_unknown("Qwen2.5-Coder:0.5B", &sentence("Qwen2.5-Coder:0.5B", [q, s, g]));
    check_unknown("", &sentence("", [g, s, q]));
}

#[test]
fn distance_counts_single_character_edits() {
    let cases = [("", "", 0), ("a", "", 1), ("", "ab", 2), ("kitten", "sitting", 3), ("ä", "a", 1)];
    for (left, right, want) in cases {
        assert_eq!(distance(left, right), want, "{left:?} {right:?}");
    }
}
