//! Spans as people type them.

use super::*;

#[test]
fn spans_are_read_or_refused() {
    let check = |text: &str, want_ms: Option<u128>| {
        let found = text.parse::<Span>().ok().map(|span| span.duration().as_millis());
        assert_eq!(found, want_ms, "{text}");
    };
    check("240s", Some(240_000));
    check("4m", Some(240_000));
    check("500ms", Some(500));
    check("1.5s", Some(1_500));
    check("2h", Some(7_200_000));
    check("30", Some(30_000));
    check("0s", Some(0));
    check("25h", None);
    check("-1s", None);
    check("nan", None);
    check("inf", None);
    check("s", None);
    check("", None);
    let refusal = "soon".parse::<Span>().unwrap_err().to_string();
    assert!(refusal.contains("`soon` is no length of time"), "{refusal}");
}
