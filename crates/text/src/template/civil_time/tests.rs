//! Times read, counted from 1970, and printed.

use super::*;

fn check(time: &str, format: &str, wanted: &str) {
    assert_eq!(CivilTime::parse(time).unwrap().strftime(format), wanted, "{time} {format}");
}

#[test]
fn directives_print_as_in_the_c_locale() {
    let time = "2024-07-26T15:04:05";
    check(time, "%Y-%m-%d %H:%M:%S %A %B %j", "2024-07-26 15:04:05 Friday July 208");
    check(time, "%d %b %Y, %a %I:%M %p %y%%", "26 Jul 2024, Fri 03:04 PM 24%");
    check(time, "%F %T %R %D %e %u %w %C%n%t", "2024-07-26 15:04:05 15:04 07/26/24 26 5 5 20\n\t");
    check(time, "%-d %-m %-H %-M %q %", "26 7 15 4 %q %");
    check(time, "%c", "Fri Jul 26 15:04:05 2024");
    check("2024-01-07 00:05:09", "%e|%-e|%I|%-H|%a|%-j|%u", " 7|7|12|0|Sun|7|7");
    check("2023-12-31", "%j %A %f%z%Z", "365 Sunday 000000");
    check("2024-12-31", "%j %x %X", "366 12/31/24 00:00:00");
}

#[test]
fn what_is_no_time_is_none() {
    for text in [
        "",
        "2024",
        "2024-13-01",
        "2024-00-01",
        "2023-02-29",
        "2024-02-30",
        "2024-01-01T24:00:00",
        "2024-01-01T00:60:00",
        "10000-01-01",
        "0000-01-01",
        "2024-1",
        "a-b-c",
        "2024-01-01-01",
        "2024-01-01T+1:00:00",
        "2024-01-01T1:2",
    ] {
        assert_eq!(CivilTime::parse(text), None, "{text}");
    }
    assert!(CivilTime::parse("2024-02-29T23:59:59.123Z").is_some());
}

#[test]
fn seconds_count_from_1970() {
    for (seconds, time) in [
        (0, "1970-01-01T00:00:00"),
        (951_782_399, "2000-02-28T23:59:59"),
        (951_782_400, "2000-02-29T00:00:00"),
        (1_722_006_245, "2024-07-26T15:04:05"),
        (253_402_300_799, "9999-12-31T23:59:59"),
    ] {
        assert_eq!(CivilTime::from_unix(seconds), CivilTime::parse(time), "{time}");
    }
    assert_eq!(CivilTime::from_unix(253_402_300_800), None);
    assert_eq!(CivilTime::from_unix(u64::MAX), None);
}
