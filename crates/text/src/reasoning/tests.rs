//! Reasoning and answer for every way of cutting the text.

use super::*;
use crate::stop::StopMatcher;

/// The text cut into pieces of each length, always with the same parts.
fn check(text: &str, starts_inside: bool, reasoning: &str, visible: &str) {
    let letters: Vec<char> = text.chars().collect();
    for length in 1..=letters.len().max(1) {
        let mut splitter = ReasoningSplitter::new("<think>", "</think>", starts_inside);
        let mut whole = Parts::default();
        for piece in letters.chunks(length) {
            let parts = splitter.push(&piece.iter().collect::<String>());
            whole.reasoning.push_str(&parts.reasoning);
            whole.visible.push_str(&parts.visible);
        }
        let parts = splitter.finish();
        whole.reasoning.push_str(&parts.reasoning);
        whole.visible.push_str(&parts.visible);
        let wanted = Parts { reasoning: reasoning.to_owned(), visible: visible.to_owned() };
        assert_eq!(whole, wanted, "{text:?} in pieces of {length}");
    }
}

#[test]
fn a_marker_may_be_split_anywhere() {
    check("weighing it</think>Answer.", true, "weighing it", "Answer.");
    check("<think>é中</think>Answer.", false, "é中", "Answer.");
    check("a<think>b</think>c<think>d</think>e", false, "bd", "ace");
}

#[test]
fn half_a_marker_is_text() {
    check("weighing </thi", true, "weighing </thi", "");
    check("a <th", false, "", "a <th");
    check("a < b </think>", false, "", "a < b </think>");
    check("", true, "", "");
}

#[test]
fn an_empty_marker_is_never_found() {
    let mut splitter = ReasoningSplitter::new("", "", false);
    assert_eq!(splitter.push("abc").visible, "abc");
    assert!(!splitter.is_inside());
}

#[test]
fn stops_apply_to_the_answer_only() {
    let mut splitter = ReasoningSplitter::new("<think>", "</think>", false);
    let mut stops = StopMatcher::new(&["9.8".to_owned()]).unwrap();
    let mut visible = String::new();
    for piece in ["<think>", "9.8 is more", "</think>", "Answer 9"] {
        let emitted = stops.push(&splitter.push(piece).visible);
        visible.push_str(&emitted.text);
        assert_eq!(emitted.stopped, None);
    }
    visible.push_str(&stops.push(&splitter.finish().visible).text);
    visible.push_str(&stops.finish().text);
    assert_eq!(visible, "Answer 9");
}
