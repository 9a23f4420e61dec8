//! Spans and dates, read and written.

use super::*;

/// 2026-01-31 15:04:05 UTC.
const NOW: u64 = 1_769_871_845_000;

#[test]
fn spans_count_back_from_now() {
    check("90s", Some("2026-01-31 15:02:35"));
    check("30m", Some("2026-01-31 14:34:05"));
    check("2h", Some("2026-01-31 13:04:05"));
    check("7d", Some("2026-01-24 15:04:05"));
    check("0s", Some("2026-01-31 15:04:05"));
    check("99999999d", Some("1970-01-01 00:00:00"));
}

#[test]
fn dates_are_utc() {
    check("2026-01-31", Some("2026-01-31 00:00:00"));
    check("2024-02-29T23:59:59Z", Some("2024-02-29 23:59:59"));
    check("2000-03-01 00:00:01", Some("2000-03-01 00:00:01"));
    check("1970-01-01", Some("1970-01-01 00:00:00"));
    check("9999-12-31", Some("9999-12-31 00:00:00"));
}

#[test]
fn what_is_no_time_is_refused() {
    for text in ["", "h", "-1h", "1.5h", "2w", "é", "2026", "2026-13-01", "2026-02-29"] {
        check(text, None);
    }
    for text in ["2026-01-32", "2026-01-01T24:00:00", "2026-01-01T1:2", "1969-12-31", "1-1-1-1"] {
        check(text, None);
    }
    for text in ["99999999999999999999d", "18446744073709551615d", "2026-01-01T00:00:60"] {
        check(text, None);
    }
}

fn check(text: &str, want: Option<&str>) {
    let read = parse_since(text, NOW);
    assert_eq!(read.as_ref().ok().map(|ms| utc(*ms)).as_deref(), want, "{text}");
    if let Err(error) = read {
        assert!(error.is_callers_mistake());
        assert!(error.to_string().starts_with(&format!("`{text}` is no time")), "{error}");
    }
}

#[test]
fn every_day_of_four_centuries_reads_back() {
    for day in 0..146_097 {
        let ms = day * 86_400_000;
        assert_eq!(parse_since(&utc(ms), 0), Ok(ms));
    }
    assert_eq!(utc(u64::MAX), "18446744073709551615 ms");
}
