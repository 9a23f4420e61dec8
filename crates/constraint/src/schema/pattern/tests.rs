//! Patterns and what becomes of them.

use super::translated;

fn check(cases: &[(&str, Result<&str, &str>)]) {
    for (pattern, want) in cases {
        let found = translated(pattern);
        let found = found.as_ref().map(String::as_str).map_err(String::as_str);
        match (found, want) {
            (Ok(found), Ok(want)) => assert_eq!(found, *want, "{pattern}"),
            (Err(found), Err(want)) => assert!(found.contains(want), "{pattern}: {found}"),
            _ => panic!("{pattern}: {found:?}, wanted {want:?}"),
        }
    }
}

#[test]
fn patterns_keep_their_meaning() {
    check(&[
        ("^[a-z]+$", Ok("^[a-z]+$")),
        ("a.b", Ok(r"a[^\n\r\u{2028}\u{2029}]b")),
        (r"\d{2,4}", Ok("[0-9]{2,4}")),
        (r"\d{2,}?x", Ok("[0-9]{2,}x")),
        (r"[\d\-_]", Ok(r"[[0-9]\-_]")),
        (r"[^\W]", Ok("[^[^0-9A-Z_a-z]]")),
        (r"\u0041\x42\cC", Ok(r"AB\u{3}")),
        (r"\uD83D\uDE00", Ok(r"\u{1F600}")),
        (r"(?<name>a|b)+", Ok("(?:a|b)+")),
        (r"[&&~~[]", Ok(r"[\&\&\~\~\[]")),
        ("[^]", Ok(r"[\x00-\u{10FFFF}]")),
        ("a{,5}", Ok(r"a\{\,5\}")),
        (r"\p{Letter}", Ok(r"[\p{Letter}]")),
        (r"/\/", Ok(r"\/\/")),
        ("é", Ok(r"\u{E9}")),
    ]);
}

#[test]
fn patterns_that_cannot_be_held_say_why() {
    check(&[
        ("(?=a)", Err("ahead or behind")),
        ("(?<!a)b", Err("ahead or behind")),
        (r"(a)\1", Err("refers back")),
        (r"\ba", Err("word's edge")),
        ("^(abc$", Err("not closed")),
        ("abc)", Err("closes nothing")),
        ("[a", Err("not closed")),
        ("[z-a]", Err("backwards")),
        ("*a", Err("repeats nothing")),
        ("a**", Err("quantified")),
        (r"\", Err("at the end")),
        (r"\uD83D", Err("surrogate")),
        (r"\y", Err("means nothing")),
        ("a{3,2}", Err("swapped")),
        ("(ab{1000}){9999}", Err("states")),
        ("a{9999999}", Err("beyond the limit")),
    ]);
    let deep = "(".repeat(60);
    assert!(translated(&deep).unwrap_err().contains("deeper"));
}
