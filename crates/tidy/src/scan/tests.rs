//! Cases of telling code from comments and literals.

use super::{code_of, has_word};

fn check(source: &str, want: &str) {
    let words: Vec<_> = code_of(source).split_whitespace().map(str::to_owned).collect();
    assert_eq!(words.join(" "), want, "{source}");
    assert_eq!(code_of(source).matches('\n').count(), source.matches('\n').count());
}

#[test]
fn comments_and_literals_are_blanked() {
    check("a // f32\nb", "a b");
    check("a /* f32 /* f64 */ */ b", "a b");
    check("a(\"f32 \\\" f64\", b)", "a( , b)");
    check("a(r#\"f32 \" f64\"#, b)", "a( , b)");
    check("a(br\"f32\", b)", "a(b , b)");
    check("a('\"', b)", "a( , b)");
    check("a('\\'', '\\u{1f}', b)", "a( , , b)");
    check("fn a<'b>(c: &'b str)", "fn a<'b>(c: &'b str)");
    check("let r#type = attr\"", "let r#type = attr");
    check("a \"x\ny\" b", "a b");
}

#[test]
fn a_word_is_whole() {
    for (text, word, want) in [
        ("x: f32", "f32", true),
        ("to_f32(x)", "f32", false),
        ("f32x8", "f32", false),
        ("use std::fs;", "std::fs", true),
        ("use std::fsx;", "std::fs", false),
        ("unsafe_code", "unsafe", false),
        ("todo!()", "todo!", true),
        ("#[ignore = \"x\"]", "#[ignore", true),
    ] {
        assert_eq!(has_word(text, word), want, "{text} {word}");
    }
}
