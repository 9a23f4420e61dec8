//! How a size is written.

use super::size;

#[test]
fn a_size_is_a_whole_number_with_a_unit_or_none() {
    for (text, want) in [
        ("512MiB", Some(512 << 20)),
        ("4GiB", Some(4 << 30)),
        ("4 GiB", Some(4 << 30)),
        ("1TiB", Some(1 << 40)),
        ("10KiB", Some(10_240)),
        ("3MB", Some(3_000_000)),
        ("7kB", Some(7_000)),
        ("42", Some(42)),
        ("42B", Some(42)),
        ("0", None),
        ("0GiB", None),
        ("", None),
        ("GiB", None),
        ("-1MiB", None),
        ("1.5GiB", None),
        ("4gib", None),
        ("4G", None),
        ("99999999999TiB", None),
        ("99999999999999999999", None),
    ] {
        assert_eq!(size(text).ok(), want, "{text}");
    }
}
