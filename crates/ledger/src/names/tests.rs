//! Names of every kind, and the lines that they are shown in.

use super::{CHARS_MAX, shown_name};

#[test]
fn a_name_is_one_short_line() {
    for (name, want) in [
        ("/reasoning", "/reasoning"),
        ("", ""),
        ("größe 🦀", "größe 🦀"),
        ("a\nb\r\u{1b}[2J", "a\\nb\\r\\u{1b}[2J"),
        ("a\u{85}\u{2028}\u{202e}b", "a\\u{85}\\u{2028}\\u{202e}b"),
    ] {
        assert_eq!(shown_name(name), want);
    }
    let exact = "é".repeat(CHARS_MAX);
    assert_eq!(shown_name(&exact), exact);
    let long = format!("/first{}/last", "x".repeat(5000));
    let shown = shown_name(&long);
    assert_eq!(shown.chars().count(), CHARS_MAX, "{shown}");
    assert!(shown.starts_with("/first") && shown.ends_with("/last"), "{shown}");
    assert!(shown.contains('…'), "{shown}");
    assert_eq!(shown_name(&"\n".repeat(5000)).chars().count(), CHARS_MAX);
}
