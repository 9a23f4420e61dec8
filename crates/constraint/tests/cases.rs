//! Faults that users of other engines met, each as a test of its kind.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use causeway_constraint::{
    Constraint, Environment, Limits, Matcher, Plan, Whitespace, accepts, compile,
};
use causeway_request::TokenId;
use serde_json::{Value, json};

fn environment() -> Environment {
    Environment::of_bytes()
}

fn plan(schema: &Value, whitespace: Whitespace) -> Plan {
    let constraint = Constraint::JsonSchema { schema: schema.clone(), whitespace };
    compile(&constraint, &environment(), &Limits::default())
        .unwrap_or_else(|error| panic!("{schema}: {error}"))
}

/// Which of the documents are accepted, with and without free white space.
fn check(schema: &Value, documents: &[(&str, bool)]) {
    for whitespace in [Whitespace::Compact, Whitespace::Flexible] {
        let plan = plan(schema, whitespace);
        for (document, want) in documents {
            let found = accepts(&mut plan.matcher(), &environment(), document);
            assert_eq!(found.is_ok(), *want, "{schema} and {document}: {found:?}");
        }
    }
}

/// A matcher after a prefix.
fn after(schema: &Value, prefix: &str) -> Matcher {
    let plan = plan(schema, Whitespace::Compact);
    let mut matcher = plan.matcher();
    for byte in prefix.bytes() {
        matcher.advance(token(byte)).unwrap_or_else(|error| panic!("{prefix}: {error}"));
    }
    matcher
}

/// The byte's token in the vocabulary of bytes.
fn token(byte: u8) -> TokenId {
    TokenId(u32::from(byte) + 3)
}

fn allows(matcher: &mut Matcher, letter: u8) -> bool {
    let mask = matcher.mask().unwrap();
    mask.allows(token(letter)) || (letter == b' ' && mask.allows(TokenId(2)))
}

#[test]
fn a_property_out_of_order_is_not_an_additional_one() {
    let schema = json!({
        "properties": { "a": { "const": "foo" }, "b": { "const": "bar" } },
        "required": ["b"],
    });
    check(
        &schema,
        &[
            (r#"{"b":"bar","a":"BAD"}"#, false),
            (r#"{"b":"bar","\u0061":"BAD"}"#, false),
            (r#"{"a":"foo","b":"bar"}"#, true),
            (r#"{"b":"bar","z":1}"#, true),
            (r#"{"a":"foo"}"#, false),
        ],
    );
}

#[test]
fn whole_numbers_keep_their_bounds() {
    let documents = |list: &[(&'static str, bool)]| list.to_vec();
    check(
        &json!({ "type": "integer", "minimum": 3 }),
        &documents(&[
            ("0", false),
            ("01", false),
            ("2", false),
            ("3", true),
            ("03", false),
            ("10", true),
            ("29", true),
            ("-3", false),
            ("1000000", true),
        ]),
    );
    check(
        &json!({ "type": "integer", "maximum": 42 }),
        &documents(&[
            ("42", true),
            ("43", false),
            ("042", false),
            ("-100", true),
            ("0", true),
            ("420", false),
        ]),
    );
    check(
        &json!({ "type": "integer", "minimum": -123 }),
        &documents(&[
            ("-123", true),
            ("-124", false),
            ("-0123", false),
            ("0", true),
            ("-1230", false),
        ]),
    );
    check(
        &json!({ "type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 10 }),
        &documents(&[("3", false), ("4", true), ("9", true), ("10", false), ("04", false)]),
    );
    check(
        &json!({ "type": "number", "exclusiveMinimum": 0.5, "maximum": 1.5 }),
        &documents(&[("0.5", false), ("0.51", true), ("1.5", true), ("1.51", false), ("1", true)]),
    );
}

#[test]
fn bounds_of_64_bits_are_exact_or_refused() {
    let most = "9223372036854775807";
    let int64 = json!({ "type": "integer", "minimum": 0, "maximum": i64::MAX });
    check(
        &int64,
        &[
            (most, true),
            ("9223372036854775806", true),
            ("9223372036854775808", false),
            ("10000000000000000000", false),
            ("999999999999999999", true),
            ("-1", false),
        ],
    );
    let least = -(1_i64 << 62);
    check(
        &json!({ "type": ["integer", "null"], "minimum": least, "maximum": i64::MAX }),
        &[
            ("-4611686018427387904", true),
            ("-4611686018427387905", false),
            (most, true),
            ("9223372036854775808", false),
            ("null", true),
        ],
    );
    check(
        &json!({ "enum": [i64::MAX, 1_i64 << 60, -(1_i64 << 60)] }),
        &[
            (most, true),
            ("9223372036854775806", false),
            ("9223372036854775808", false),
            ("1152921504606846976", true),
            ("-1152921504606846976", true),
            ("1152921504606846977", false),
        ],
    );
    for (keyword, schema) in [
        ("minimum", json!({ "type": "integer", "minimum": i64::MIN })),
        ("maximum", json!({ "type": "integer", "maximum": u64::MAX })),
        ("maximum", json!({ "type": "integer", "maximum": (1_i64 << 53) + 1 })),
        ("maximum", json!({ "type": "number", "maximum": i64::MAX })),
        ("exclusiveMaximum", json!({ "type": "integer", "exclusiveMaximum": i64::MAX })),
        ("const", json!({ "const": (1_i64 << 53) + 1 })),
    ] {
        let constraint = Constraint::JsonSchema { schema, whitespace: Whitespace::Compact };
        let error = compile(&constraint, &environment(), &Limits::default()).unwrap_err();
        assert_eq!(error.path(), Some(format!("#/{keyword}").as_str()), "{error}");
        for part in [format!("`{keyword}`"), "the limit is".to_owned()] {
            assert!(error.to_string().contains(&part), "{part}: {error}");
        }
    }
}

#[test]
fn references_do_not_depend_on_the_order_of_definitions() {
    let t = json!({ "type": "object", "required": ["c"], "properties": { "c": { "$ref": "#/$defs/C" } } });
    let c = json!({ "enum": ["red", "blue"] });
    for defs in [json!({ "T": t, "C": c }), json!({ "C": c, "T": t })] {
        let schema = json!({
            "type": "array", "items": { "$ref": "#/$defs/T" }, "minItems": 2, "maxItems": 2, "$defs": defs,
        });
        check(
            &schema,
            &[
                (r#"[{"c":"red"},{"c":{"x":1}}]"#, false),
                (r#"[{"c":"red"},{"c":"blue"}]"#, true),
                (r#"[{"c":"red"}]"#, false),
                (r#"[{"c":"green"},{"c":"blue"}]"#, false),
            ],
        );
    }
}

#[test]
fn what_cannot_be_compiled_is_refused_with_its_path() {
    let of = |schema: Value| json!({ "type": "object", "properties": { "x": schema } });
    let cases = [
        (of(json!({ "type": "string", "pattern": "^(abc$" })), "#/properties/x/pattern"),
        (of(json!({ "type": "strnig" })), "#/properties/x/type"),
        (json!(false), "#"),
        (of(json!({ "$ref": "#/$defs/missing" })), "#/properties/x/$ref"),
        (of(json!({ "uniqueItems": true })), "#/properties/x/uniqueItems"),
        (of(json!({ "x-guidance": {} })), "#/properties/x/x-guidance"),
        (of(json!({ "y": [{ "x-guidance": {} }] })), "#/properties/x/y/0/x-guidance"),
        (of(json!({ "oneOf": [{ "type": "integer" }, { "minimum": 2 }] })), "#/properties/x/oneOf"),
        (of(json!({ "minimum": 3, "maximum": 2 })), "#/properties/x/maximum"),
        (
            of(json!({ "type": "integer", "minimum": 1.2, "maximum": 1.8 })),
            "#/properties/x/maximum",
        ),
        (of(json!({ "minLength": 3, "maxLength": 2 })), "#/properties/x/maxLength"),
        (of(json!({ "minItems": 3, "maxItems": 2 })), "#/properties/x/maxItems"),
        (json!({ "$ref": "#" }), "#"),
        (of(json!({ "pattern": "(a{1000}){1000}" })), "#/properties/x/pattern"),
        (of(json!({ "pattern": "(?=a)b" })), "#/properties/x/pattern"),
        (
            json!({
                "type": "object", "required": ["x"],
                "properties": { "x": { "type": "string", "pattern": "^a$", "maxLength": 0 } },
            }),
            "#/properties/x",
        ),
        (
            json!({
                "$ref": "#/$defs/a",
                "$defs": { "a": {
                    "type": "object", "required": ["n"], "properties": { "n": { "$ref": "#/$defs/a" } },
                } },
            }),
            "#/$defs/a",
        ),
    ];
    for (schema, want) in cases {
        let constraint =
            Constraint::JsonSchema { schema: schema.clone(), whitespace: Whitespace::Compact };
        let error = compile(&constraint, &environment(), &Limits::default());
        let error = error.err().unwrap_or_else(|| panic!("{schema} was compiled"));
        assert_eq!(error.path(), Some(want), "{schema}: {error}");
        assert!(error.is_callers_mistake());
    }
}

#[test]
fn runs_of_white_space_end() {
    let schema = json!({
        "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"],
        "additionalProperties": false,
    });
    for (whitespace, longest) in [(Whitespace::Compact, 0), (Whitespace::Flexible, 8)] {
        let mut matcher = plan(&schema, whitespace).matcher();
        let (mut text, mut run, mut runs) = (String::new(), 0, 0);
        // A model that likes blanks best, then the lowest byte; the number is cut by its digits.
        for _ in 0..200 {
            if matcher.may_stop().unwrap() {
                break;
            }
            let blank = [b' ', b'\n', b'\t'].into_iter().find(|&b| allows(&mut matcher, b));
            let closing = [b'}', b'0', b'"', b':', b'{', b'a'];
            let next = blank.or_else(|| closing.into_iter().find(|&b| allows(&mut matcher, b)));
            let next = next.expect("the schema's own letters go on");
            run = if blank.is_some() { run + 1 } else { 0 };
            runs = runs.max(run);
            text.push(char::from(next));
            let id =
                if matcher.mask().unwrap().allows(token(next)) { token(next) } else { TokenId(2) };
            matcher.advance(id).unwrap();
        }
        assert_eq!(runs, longest, "{text:?}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!({ "a": 0 }));
    }
}

#[test]
fn a_required_name_needs_no_property() {
    check(
        &json!({ "type": "object", "required": ["a"] }),
        &[("{}", false), (r#"{"a":1}"#, true), (r#"{"b":1}"#, false), (r#"{"a":[],"b":1}"#, true)],
    );
}

#[test]
fn a_name_out_of_order_is_no_trap() {
    let schema = json!({
        "type": "object",
        "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } },
        "additionalProperties": true,
    });
    let mut matcher = after(&schema, r#"{"b":1,""#);
    if allows(&mut matcher, b'a') {
        let mut matcher = after(&schema, r#"{"b":1,"a"#);
        let mask = matcher.mask().unwrap();
        let ways = (b'b'..=b'z').filter(|&letter| mask.allows(token(letter))).count();
        assert!(mask.allows(token(b'"')) || ways > 0, "the only way out is an escape");
    }
}

#[test]
fn the_end_is_masked_until_the_answer_is_whole() {
    let schema = json!({
        "oneOf": [
            { "type": "object", "properties": { "k": { "const": "a" } }, "required": ["k"] },
            { "type": "object", "properties": { "k": { "const": "b" } }, "required": ["k"] },
        ],
    });
    let mut matcher = after(&schema, "");
    assert!(!matcher.mask().unwrap().allows(TokenId(1)));
    assert_eq!(matcher.forced().unwrap().first(), Some(&token(b'{')));
    let mut matcher = after(&schema, r#"{"k":"a"}"#);
    assert!(matcher.mask().unwrap().allows(TokenId(1)) && matcher.may_stop().unwrap());
    assert!(matcher.is_complete());
}

#[test]
fn nothing_additional_after_the_last_property() {
    let schema = json!({
        "type": "object",
        "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
        "required": ["a", "b"],
        "additionalProperties": false,
    });
    check(&schema, &[(r#"{"a":"x","b":"y"}"#, true), (r#"{"a":"x","b":"y","c":1}"#, false)]);
    let mut matcher = after(&schema, r#"{"a":"x","b":"y""#);
    assert_eq!(matcher.mask().unwrap().count(), 1);
    assert!(allows(&mut matcher, b'}'));
}
