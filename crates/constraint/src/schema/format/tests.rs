//! Formats against texts that their standards take and refuse.

use regex::Regex;

use super::{Format, format};

fn check(name: &str, taken: &[&str], refused: &[&str]) {
    let Format::Held(pattern) = format(name) else {
        panic!("{name} is not held");
    };
    let regex = Regex::new(&pattern).unwrap();
    for text in taken {
        assert!(regex.is_match(text), "{name} refuses {text}");
    }
    for text in refused {
        assert!(!regex.is_match(text), "{name} takes {text}");
    }
}

#[test]
fn formats_hold_what_their_standards_say() {
    check(
        "date",
        &["2024-02-29", "2000-02-29", "2023-12-31"],
        &["2023-02-29", "1900-02-29", "2023-04-31", "2023-13-01", "2023-1-01", "20230101"],
    );
    check("time", &["08:30:06Z", "08:30:06.283+01:00"], &["08:30:06", "24:00:00Z", "08:60:00Z"]);
    check(
        "date-time",
        &["1963-06-19T08:30:06.283185Z"],
        &["1963-06-19 08:30:06Z", "1990-02-31T15:59:59Z"],
    );
    check("duration", &["P4DT12H30M5S", "P4W", "PT36H"], &["PT", "P", "4D", "P1D2H", "P2D1Y"]);
    check("ipv4", &["192.168.0.1", "255.255.255.255"], &["256.0.0.1", "087.10.0.1", "1.2.3"]);
    check(
        "ipv6",
        &[
            "::",
            "::1",
            "1::",
            "12:34::abc",
            "1:2:3:4:5:6:7:8",
            "::ffff:192.168.0.1",
            "1:2::1.2.3.4",
        ],
        &["1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "::1::", ":1", "12345::", "1:2:3:4:5:6:7::8"],
    );
    check(
        "hostname",
        &["www.example.com", "a", "a-b.c1"],
        &["-a", "a-", "a..b", "xn--x", "a_b", ""],
    );
    check("email", &["joe.bloggs@example.com", "~a@b.co"], &["2962", ".a@b.c", "a..b@c.d", "a@-b"]);
    check(
        "uuid",
        &["2eb8aa08-aa98-11ea-b4aa-73b441d16380"],
        &["2eb8aa08-aa98-11ea-b4aa73b441d16380"],
    );
    check(
        "uri",
        &["http://foo.bar/?baz=qux#quux", "urn:isbn:1", "mailto:a@b.c", "ldap://[2001:db8::7]/c"],
        &["//foo.bar", "/abs", "\\\\x", "abc", "http:// x", "http://foo.bar?[a"],
    );
    check("json-pointer", &["", "/a~0b/~1", "/"], &["a", "/~", "/~2"]);
    assert_eq!(format("idn-email"), Format::Unsupported);
    assert_eq!(format("int32"), Format::Unknown);
}
