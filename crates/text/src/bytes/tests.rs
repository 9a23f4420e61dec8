//! The byte-level alphabet and its inverse.

use super::*;

#[test]
fn every_byte_has_a_letter_of_its_own() {
    let letters = byte_letters();
    let (letter_bytes, mut bytes) = (LetterBytes::new(), Vec::new());
    letter_bytes.push_bytes(&letters.iter().collect::<String>(), &mut bytes);
    assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
    assert_eq!((letters[0x20], letters[0x0A], letters[0xAD]), ('Ġ', 'Ċ', 'Ń'));
}

#[test]
fn other_characters_stay() {
    let mut bytes = Vec::new();
    LetterBytes::new().push_bytes("Ġ中", &mut bytes);
    assert_eq!(bytes, " 中".as_bytes());
}

#[test]
fn bytes_are_named_by_two_digits() {
    for (text, byte) in [
        ("<0x00>", Some(0)),
        ("<0xfF>", Some(255)),
        ("<0x+1>", None),
        ("<0x1>", None),
        ("<0x100>", None),
        ("0x10", None),
    ] {
        assert_eq!(named_byte(text), byte, "{text}");
    }
}
