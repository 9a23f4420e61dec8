//! Files of keys, and who is let in by them.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::*;

const LINE: &str = r#"{"name":"shop","sha256":"HASH"}"#;

fn line(key: &str) -> String {
    LINE.replace("HASH", &Sha256::of(key.as_bytes()).to_string())
}

fn parse(text: &str) -> String {
    match Keys::parse(text) {
        Ok(keys) => keys.meters().map(|(name, _)| name).collect::<Vec<_>>().join(" "),
        Err(error) => crate::error::sentence(&error),
    }
}

#[test]
fn a_file_of_keys_is_read_line_by_line() {
    let one = line("k1");
    let other = line("k2").replace("shop", "mill");
    let limit = |limit: &str| one.replace("}", &format!(",{limit}}}"));
    let cases = [
        (one.clone(), "shop"),
        (format!("# ours\n\n{one}\r\n  {other}\n"), "shop mill"),
        (limit(r#""role":"operate","tokens_per_day":5"#), "shop"),
        (String::new(), "there is no key in it"),
        ("# none\n".to_owned(), "there is no key in it"),
        (format!("{one}\n{one}"), "line 2: the key or the name `shop` is there already"),
        (
            format!("{one}\n{}", line("k1").replace("shop", "mill")),
            "line 2: the key or the name `mill` is there already",
        ),
        (one.replace("shop", ""), "line 1: the name has 0 bytes, must be 1 to 128"),
        (
            limit(r#""requests_per_minute":0"#),
            "line 1: `requests_per_minute` is 0, must be 1 to 100000",
        ),
    ];
    for (text, want) in cases {
        assert_eq!(parse(&text), want, "{text}");
    }
    for broken in ["k1", "{}", r#"{"name":"a","sha256":"ff"}"#, &limit(r#""colour":1"#)] {
        assert!(parse(broken).starts_with("line 1 is no key: "), "{broken}: {}", parse(broken));
    }
}

/// The status and the code of a request with these headers.
fn admit(keys: &Keys, headers: &[(&'static str, &str)], role: Role) -> String {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::from_static(name);
        map.insert(name, HeaderValue::from_str(value).unwrap());
    }
    match keys.admit(&map, role) {
        Ok(caller) => caller.name,
        Err(error) => format!("{} {}", error.status.as_u16(), error.message),
    }
}

#[test]
fn a_key_opens_what_its_role_allows() {
    let operate = line_for("boss", "ops", Role::Operate, KeyLimits::default());
    let keys = Keys::parse(&format!("{}\n{operate}", line("cw-1234"))).unwrap();
    let unknown = "401 the API key is not known";
    let none = "401 no API key was sent: `Authorization: Bearer KEY` or `X-Api-Key: KEY`";
    let low = "403 API key `shop` has the role `use`, `operate` is needed";
    let hash = Sha256::of(b"cw-1234").to_string();
    let long = "k".repeat(10_000);
    type Case<'a> = (&'a [(&'static str, &'a str)], Role, &'a str);
    let cases: &[Case<'_>] = &[
        (&[("authorization", "Bearer cw-1234")], Role::Use, "shop"),
        (&[("authorization", "bearer  cw-1234 ")], Role::Use, "shop"),
        (&[("x-api-key", "cw-1234")], Role::Use, "shop"),
        (&[("authorization", "Bearer boss")], Role::Operate, "ops"),
        (&[("authorization", "Bearer cw-1234")], Role::Operate, low),
        // Wrong in the first byte, in the last one, and a beginning of the right key.
        (&[("authorization", "Bearer xw-1234")], Role::Use, unknown),
        (&[("authorization", "Bearer cw-1235")], Role::Use, unknown),
        (&[("authorization", "Bearer cw-123")], Role::Use, unknown),
        (&[("authorization", "Bearer ")], Role::Use, unknown),
        (&[("authorization", "Basic cw-1234")], Role::Use, none),
        (&[("authorization", "cw-1234")], Role::Use, none),
        (&[], Role::Use, none),
        // The hash of a key is no key.
        (&[("x-api-key", &hash)], Role::Use, unknown),
        (&[("x-api-key", &long)], Role::Use, unknown),
    ];
    for (headers, role, want) in cases {
        assert_eq!(admit(&keys, headers, *role), *want, "{headers:?}");
    }
}

#[test]
fn a_line_for_a_key_is_read_back() {
    let limits =
        KeyLimits { requests_per_minute: Some(60), concurrency: None, tokens_per_day: Some(1_000) };
    let keys = Keys::parse(&line_for("secret", "a \"b\"", Role::Use, limits)).unwrap();
    let (name, meter) = keys.meters().next().unwrap();
    assert_eq!((name, meter.limits()), ("a \"b\"", limits));
    assert!(!line_for("secret", "a", Role::Use, limits).contains("secret"));
}
