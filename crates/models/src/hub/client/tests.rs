//! Cases of addresses and tags.

use super::{bare_etag, escaped, is_etag, joined, origin};

#[test]
fn an_origin_is_scheme_host_and_port() {
    for (url, want) in [
        ("https://Hub.co/a/b?c", "https://hub.co"),
        ("http://h:1", "http://h:1"),
        ("https://hub.co@evil.co/x", "https://hub.co@evil.co"),
        ("https://hub.co?x=/", "https://hub.co"),
    ] {
        assert_eq!(origin(url), want);
    }
}

#[test]
fn a_redirect_is_read_from_where_it_came() {
    for (location, want) in [
        ("https://store/x?s=1", "https://store/x?s=1"),
        ("//store/x", "https://store/x"),
        ("/new/x", "https://hub/new/x"),
        ("y", "https://hub/a/y"),
    ] {
        assert_eq!(joined("https://hub/a/b?q=/z", location), want);
    }
    assert_eq!(joined("https://hub", "y"), "https://hub/y");
}

#[test]
fn a_tag_that_could_leave_the_cache_is_none() {
    assert_eq!(bare_etag("W/\"abc\""), "abc");
    for etag in ["", "..", "../x", "a/b", "a.b", &"a".repeat(129)] {
        assert!(!is_etag(etag), "{etag}");
    }
    assert!(is_etag("abc-12"));
    assert_eq!(escaped("refs/pr/1 ü"), "refs%2Fpr%2F1%20%C3%BC");
}
