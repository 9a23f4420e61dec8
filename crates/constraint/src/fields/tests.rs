//! Tokens and the fields that they wrote.

use proptest::prelude::*;
use serde_json::{Map, Value};

use super::{FieldWalker, PATH_BYTES_MAX, Part};

fn walked(tokens: &[&[u8]]) -> (FieldWalker, Vec<(String, Part)>) {
    let mut walker = FieldWalker::default();
    for token in tokens {
        walker.token(token);
    }
    let told = walker.written().iter().map(|w| (walker.path(w.field).to_owned(), w.part));
    let told = told.collect();
    (walker, told)
}

fn check(tokens: &[&str], want: &[(&str, Part)]) {
    let bytes: Vec<&[u8]> = tokens.iter().map(|token| token.as_bytes()).collect();
    let (_, told) = walked(&bytes);
    let told: Vec<(&str, Part)> = told.iter().map(|(path, part)| (path.as_str(), *part)).collect();
    assert_eq!(told, want, "{tokens:?}");
}

#[test]
fn tokens_belong_to_what_they_wrote() {
    use Part::{Key, Punctuation, Value};
    check(
        &["{\"", "reason", "ing", "\":\"", "so", " it is", "\",\"risk", "\":", "7", "}"],
        &[
            ("", Punctuation),
            ("/reasoning", Key),
            ("/reasoning", Key),
            ("/reasoning", Key),
            ("/reasoning", Value),
            ("/reasoning", Value),
            ("/risk", Key),
            ("/risk", Key),
            ("/risk", Value),
            ("", Punctuation),
        ],
    );
    check(
        &["{\"a/b\":[", "1", ",", "22", "]", "}"],
        &[
            ("/a~1b", Key),
            ("/a~1b/*", Value),
            ("/a~1b", Punctuation),
            ("/a~1b/*", Value),
            ("/a~1b", Punctuation),
            ("", Punctuation),
        ],
    );
    check(&["tr", "ue"], &[("", Value), ("", Value)]);
}

#[test]
fn a_cut_answer_names_what_was_open() {
    let open = |text: &str| {
        let (walker, _) = walked(&[text.as_bytes()]);
        walker.path(walker.open()).to_owned()
    };
    for (text, want) in [
        ("{\"a\":\"x", "/a"),
        ("{\"a\":[1,2", "/a/*"),
        ("{\"a\":1,", ""),
        ("{\"a\":{\"b\":[{\"c\":\"", "/a/b/*/c"),
        ("[", "/*"),
        // What a value cannot go on from is finished, and its object or list is open.
        ("{\"a\":tru", "/a"),
        ("{\"a\":true", ""),
        ("{\"a\":false", ""),
        ("{\"a\":null", ""),
        ("{\"a\":1", "/a"),
        ("{\"a\":1 ", ""),
        ("{\"a\":\"x\"", ""),
        ("{\"a\":\"x\\\"", "/a"),
        ("{\"a\":{\"b\":1}", ""),
        ("{\"a\":{\"b\":[]", "/a"),
        ("{\"a\":{\"b\":true", "/a"),
        ("[true", ""),
        ("[[\"x\"", "/*"),
        ("[true,", "/*"),
        ("{\"a\":1}", ""),
        ("\"x\"", ""),
        ("7", ""),
        // The next field begins once its name is whole.
        ("{", ""),
        ("{\"a", ""),
        ("{\"a\":true,", ""),
        ("{\"a\":true,\"nnn", ""),
        ("{\"a\":{\"b\":1,\"nnn", "/a"),
        ("{\"a\":true,\"nnn\"", "/nnn"),
        ("{\"a\":true,\"nnn\":", "/nnn"),
    ] {
        assert_eq!(open(text), want, "{text}");
    }
}

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        Just(Value::from("\"\\/\n{[,:")),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec(("[a-c\"~/\\\\]{0,3}", inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Bytes of every value and name, by the path of its field, in the order of the text.
fn bytes_of(value: &Value, path: &str, told: &mut Vec<(String, Part, usize)>) {
    match value {
        Value::Array(items) => {
            for item in items {
                bytes_of(item, &format!("{path}/*"), told);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let step = name.replace('~', "~0").replace('/', "~1");
                let path = format!("{path}/{step}");
                told.push((path.clone(), Part::Key, Value::from(name.as_str()).to_string().len()));
                bytes_of(field, &path, told);
            }
        }
        leaf => told.push((path.to_owned(), Part::Value, leaf.to_string().len())),
    }
}

proptest! {
    #[test]
    fn every_byte_by_itself_belongs_to_its_field(value in document()) {
        let text = value.to_string();
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        let (_, told) = walked(&bytes);
        let mut want = Vec::new();
        bytes_of(&value, "", &mut want);
        let want: Vec<(String, Part)> = want
            .into_iter()
            .flat_map(|(path, part, bytes)| std::iter::repeat_n((path, part), bytes))
            .collect();
        let told: Vec<_> = told.into_iter().filter(|(_, p)| *p != Part::Punctuation).collect();
        prop_assert_eq!(told, want);
    }

    #[test]
    fn any_bytes_in_any_pieces_are_counted(text in ".{0,60}", cuts in prop::collection::vec(1_usize..7, 1..40)) {
        let mut rest = text.as_bytes();
        let mut walker = FieldWalker::default();
        let mut tokens = 0;
        for cut in cuts {
            let (token, after) = rest.split_at(cut.min(rest.len()));
            walker.token(token);
            tokens += 1;
            rest = after;
        }
        prop_assert_eq!(walker.written().len(), tokens);
    }
}

#[test]
fn paths_of_an_answer_that_only_nests_stay_short() {
    let mut walker = FieldWalker::default();
    for _ in 0..4_000 {
        walker.token(br#"{"name":"#);
    }
    let longest = walker.written().iter().map(|w| walker.path(w.field).len()).max();
    assert_eq!(longest, Some(PATH_BYTES_MAX + 1));
    assert_eq!(walker.paths.len(), 206);
}
