//! Pages of models, and queries that are none.

use super::*;

const NAMES: [&str; 5] = ["a:1", "b", "c", "d", "e"];

/// The names of a page, with dots where there are more.
fn check(query: &str, want: &str) {
    let page = Page::read(query).and_then(|page| page.of(&NAMES));
    let found = match page {
        Ok((names, has_more)) => names.join(" ") + if has_more { " …" } else { "" },
        Err(error) => error.message,
    };
    assert_eq!(found, want, "{query}");
}

#[test]
fn pages_follow_one_another() {
    check("", "a:1 b c d e");
    check("beta=true&limit=1000", "a:1 b c d e");
    check("limit=2", "a:1 b …");
    check("limit=2&after_id=b", "c d …");
    check("limit=2&after_id=d", "e");
    check("after_id=e", "");
    check("limit=2&before_id=e", "c d …");
    check("limit=2&before_id=c", "a:1 b");
    check("after_id=a%3A1&limit=1", "b …");
}

#[test]
fn a_query_that_is_no_page_is_refused() {
    check("limit=0", "`limit` is `0`, must be a whole number between 1 and 1000");
    check("limit=x", "`limit` is `x`, must be a whole number between 1 and 1000");
    check("limit=1001", "`limit` is `1001`, must be a whole number between 1 and 1000");
    check("nonsense=1", "unknown parameter `nonsense`");
    check("after_id=z%2", "`after_id` is `z%2`, which no model is called");
    check("after_id=b&before_id=d", "`after_id` and `before_id` are given: give one of them");
}
