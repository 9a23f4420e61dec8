//! Tables built here, unit by unit, and what the walk says of them.

use super::{decoded, fault, offset};
use crate::bytes::base64;

/// A table of these units and texts, in base64.
fn table(units: &[u32], texts: &[u8]) -> String {
    let length = u32::try_from(4 * units.len()).unwrap();
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
    bytes.extend_from_slice(texts);
    base64(&bytes)
}

/// A table in which `a` becomes the text at `value`: the root leads to block 256, `a` to 512.
fn one_letter(value: u32) -> Vec<u32> {
    let mut units = vec![0; 768];
    units[0] = 256 << 10;
    let letter = 256 ^ usize::from(b'a');
    let to = u32::try_from(letter ^ 512).unwrap();
    units[letter] = to << 10 | 1 << 8 | u32::from(b'a');
    units[512] = value | 1 << 31;
    assert_eq!(letter ^ offset(units[letter]), 512);
    units
}

fn check(text: &str, want: Option<&str>) {
    assert_eq!(fault(text, 64), want);
}

#[test]
fn a_table_that_stays_inside_is_taken() {
    check(&table(&one_letter(0), b"bc\0"), None);
    check(&table(&one_letter(2), "bc".as_bytes()), None);
    check(&table(&one_letter(0), &[b'b'; 64]), None);
}

#[test]
fn a_table_that_leads_astray_is_refused() {
    let outside = Some("has a table that leads out of itself");
    let empty = Some("has a table that is empty, cut, or too long");
    check(&table(&one_letter(3), b"bc"), outside);
    check(&table(&one_letter(1), "\u{e9}".as_bytes()), outside);
    check(&table(&one_letter(0)[..512], b"bc"), outside);
    check(&table(&one_letter(0)[..300], b"bc"), outside);
    let far = |at: usize| {
        let mut units = one_letter(0);
        units[at] |= 1 << 30;
        table(&units, b"bc")
    };
    check(&far(0), outside);
    check(&far(256 ^ usize::from(b'a')), outside);
    check(&table(&one_letter(0), &[b'b'; 65]), Some("puts in more than 64 bytes"));
    check(&table(&[], b"bc"), empty);
    check("", empty);
    check(&base64(&u32::MAX.to_le_bytes()), empty);
    check("!", Some("has a table that is no base64"));
    // A way that comes back to itself ends.
    let mut units = one_letter(0);
    units[512 ^ usize::from(b'b')] =
        u32::try_from(512 ^ usize::from(b'b') ^ 256).unwrap() << 10 | u32::from(b'b');
    check(&table(&units, b"bc"), None);
}

#[test]
fn base64_gives_back_what_it_was_given() {
    for length in 0..9_u8 {
        let bytes: Vec<u8> = (0..length).map(|i| i.wrapping_mul(97) ^ 0xA5).collect();
        assert_eq!(decoded(&base64(&bytes)), Some(bytes));
    }
}
