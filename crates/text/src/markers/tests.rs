//! Texts cut at markers; control ones in capitals, and a user's ranges where they may not stand.

use std::slice::from_ref;

use super::*;

/// Markers A (control) to D, tried on `text`; `[3]` stands for a token.
fn check(text: &str, control: Control<'_>, cut: &str) {
    let texts = [("<END>", true), ("<END>>", true), ("  ", false), ("   ", false), ("é", false)];
    let ids = 0u32..;
    let markers = Markers::new(ids.zip(texts).map(|(id, (text, is))| (text.to_owned(), id, is)));
    let shown = markers.cut(text, control).into_iter().map(|piece| match piece {
        Piece::Text(range) => text[range].to_owned(),
        Piece::Token(token) => format!("[{token}]"),
    });
    assert_eq!(shown.collect::<Vec<_>>().join("|"), cut, "{text:?} {control:?}");
}

#[test]
fn the_longest_marker_wins() {
    check("a<END>>b<END>c", Control::Everywhere, "a|[1]|b|[0]|c");
    check("     x", Control::Everywhere, "[3]|[2]|x");
    check("<END", Control::Everywhere, "<END");
    check("é<é", Control::Everywhere, "[4]|<|[4]");
    check("", Control::Everywhere, "");
}

#[test]
fn control_tokens_stay_text_where_a_user_wrote() {
    check("a<END>  b", Control::Nowhere, "a<END>|[2]|b");
    let text = "<END><END><END>";
    check(text, Control::Outside(&[]), "[0]|[0]|[0]");
    check(text, Control::Outside(from_ref(&(5..10))), "[0]|<END>|[0]");
    check(text, Control::Outside(&[5..6, 14..15]), "[0]|<END><END>");
    check(text, Control::Outside(&[0..1, 9..10]), "<END><END>|[0]");
    // Where the longest touches a user's text, a shorter one may still stand.
    check("<END>>", Control::Outside(from_ref(&(5..6))), "[0]|>");
}

#[test]
fn no_markers_are_fine() {
    assert_eq!(Markers::default().cut("ab", Control::Everywhere), [Piece::Text(0..2)]);
    assert_eq!(Markers::new([]).cut("ab", Control::Everywhere), [Piece::Text(0..2)]);
    assert_eq!(Markers::new([(String::new(), 1, true)]).cut("", Control::Everywhere), []);
}
