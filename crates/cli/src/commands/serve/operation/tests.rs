//! Which texts are origins.

use super::origin;

#[test]
fn an_origin_is_a_scheme_and_a_host_or_any() {
    for (text, is_origin) in [
        ("*", true),
        ("https://app.example.org", true),
        ("http://localhost:3000", true),
        ("http://[::1]:3000", true),
        ("app.example.org", false),
        ("https://app.example.org/", false),
        ("https://App.example.org", false),
        ("https://", false),
        ("ftp://a.org", false),
        ("", false),
    ] {
        assert_eq!(origin(text).is_ok(), is_origin, "{text}");
    }
}
