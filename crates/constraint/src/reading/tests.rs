//! Texts and what is read of them.

use super::{compact_json, read_schema};

#[test]
fn depth_is_refused_with_its_place() {
    let deep = format!("{}1{}", "{\"a\":[".repeat(5000), "]}".repeat(5000));
    let error = read_schema(&deep).unwrap_err().to_string();
    assert!(error.starts_with("schema, #/a/0/a/0"), "{error}");
    assert!(error.contains("the nesting is"), "{error}");
    let long = format!("\"{}\"", "x".repeat(3_000_000));
    assert!(read_schema(&long).unwrap_err().to_string().contains("the length in bytes"));
    assert!(read_schema("{").unwrap_err().to_string().contains("no JSON"));
}

#[test]
fn documents_are_written_as_they_are_decoded() {
    let check = |text: &str, want: &str| assert_eq!(compact_json(text).unwrap(), want);
    check(r#" { "b" : 1.0 , "a" : [ 1e5, -0 ] } "#, r#"{"b":1.0,"a":[1e5,-0]}"#);
    check(r#""\u00e9\u0041\/ \ud83d\ude00 é""#, "\"éA/ 😀 é\"");
    check(r#""\u0001\n\"\\""#, "\"\\u0001\\n\\\"\\\\\"");
    for text in ["01", "{", "\"\\ud800\"", "[1,]", ""] {
        assert!(compact_json(text).is_err(), "{text}");
    }
}
