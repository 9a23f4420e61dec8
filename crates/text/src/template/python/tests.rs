//! Values as Python prints them; every right side is what Python 3 prints.

use super::*;

fn value(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

fn str_of(value: &Value) -> String {
    let mut text = String::new();
    push_str(value, &mut text).unwrap();
    text
}

fn check_str(json: &str, wanted: &str) {
    assert_eq!(str_of(&value(json)), wanted, "{json}");
}

#[test]
fn constants_and_numbers() {
    check_str("null", "None");
    check_str("true", "True");
    check_str("[false, null]", "[False, None]");
    check_str("3", "3");
    check_str("-9223372036854775808", "-9223372036854775808");
    check_str("3.0", "3.0");
    check_str("1e3", "1000.0");
    check_str("1e16", "1e+16");
    check_str("123456789012345680.0", "1.2345678901234568e+17");
    check_str("1e15", "1000000000000000.0");
    check_str("0.0001", "0.0001");
    check_str("0.00001", "1e-05");
    check_str("-1.5e-10", "-1.5e-10");
    check_str("-0.0", "-0.0");
    check_str("0.1", "0.1");
    assert_eq!(str_of(&Value::from(f64::INFINITY)), "inf");
    assert_eq!(str_of(&Value::from(f64::NAN)), "nan");
    assert_eq!(str_of(&Value::UNDEFINED), "");
}

#[test]
fn strings_are_quoted_inside_containers_only() {
    check_str(r#""it's""#, "it's");
    check_str(r#"["a", "it's", "\"", "'\""]"#, r#"['a', "it's", '"', '\'"']"#);
    check_str(r#"["\\ \n\r\t é 中 😀"]"#, r"['\\ \n\r\t é 中 😀']");
    check_str(
        r#"["\u0000\u007f\u00a0\u200b\ue000\u2028\ufeff"]"#,
        r"['\x00\x7f\xa0\u200b\ue000\u2028\ufeff']",
    );
    check_str(r#"["\udb40\udc01"]"#, r"['\U000e0001']");
    check_str(r#"{"b": {"a": [1, {}]}, "c": []}"#, "{'b': {'a': [1, {}]}, 'c': []}");
}

#[test]
fn nesting_has_a_limit() {
    let mut deep = Value::from(1);
    for _ in 0..DEPTH_MAX {
        deep = Value::from(vec![deep]);
    }
    assert!(push_str(&deep, &mut String::new()).is_err());
    assert!(push_json(&deep, &layout(), 0, &mut String::new()).is_err());
}

fn layout() -> JsonLayout {
    JsonLayout {
        indent: None,
        item_separator: ", ".to_owned(),
        key_separator: ": ".to_owned(),
        ensure_ascii: false,
        sort_keys: false,
    }
}

fn check_json(json: &str, layout: &JsonLayout, wanted: &str) {
    let mut text = String::new();
    push_json(&value(json), layout, 0, &mut text).unwrap();
    assert_eq!(text, wanted, "{json}");
}

#[test]
fn json_is_written_as_dumps_does() {
    let one_line = layout();
    let text = r#"{"d": "a<b & 'é' 中/"}"#;
    check_json(text, &one_line, text);
    check_json(
        r#"{"b":1,"a":[1.0,1e22,null,true]}"#,
        &one_line,
        r#"{"b": 1, "a": [1.0, 1e+22, null, true]}"#,
    );
    check_json(r#""\u0001\b\f\"\\\u007f""#, &one_line, "\"\\u0001\\b\\f\\\"\\\\\u{7f}\"");
    check_json("[]", &one_line, "[]");
    let ascii = JsonLayout { ensure_ascii: true, sort_keys: true, ..layout() };
    check_json(r#"{"b":"é😀","a":1}"#, &ascii, r#"{"a": 1, "b": "\u00e9\ud83d\ude00"}"#);
    let indented =
        JsonLayout { indent: Some("  ".to_owned()), item_separator: ",".to_owned(), ..layout() };
    check_json(
        r#"{"a":[1,{}],"b":[]}"#,
        &indented,
        "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}",
    );
}

#[test]
fn entries_are_replaced_in_place_or_added() {
    let map = with_entry(&value(r#"{"a": 1, "b": 2}"#), "a", Value::from(3));
    assert_eq!(str_of(&map), "{'a': 3, 'b': 2}");
    assert_eq!(str_of(&with_entry(&map, "c", Value::from("x"))), "{'a': 3, 'b': 2, 'c': 'x'}");
}
