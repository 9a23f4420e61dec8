//! Byte-level letters: GPT-2's mapping of every byte to a printable character.

/// The character that spells each byte.
///
/// Printable Latin-1 stands for itself; the other 68 bytes follow from U+0100 on, in order
/// (Radford et al. 2019, `bytes_to_unicode`).
pub(crate) fn byte_letters() -> [char; 256] {
    let mut letters = ['\0'; 256];
    let mut shifted = 0x100;
    for (byte, letter) in (0u8..=255).zip(letters.iter_mut()) {
        let code = if is_printable(byte) {
            u32::from(byte)
        } else {
            shifted += 1;
            shifted - 1
        };
        *letter = char::from_u32(code).expect("codes below 0x200 are characters");
    }
    letters
}

fn is_printable(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF)
}

/// The byte each letter spells: the inverse, by code point.
pub(crate) struct LetterBytes([Option<u8>; 0x200]);

impl LetterBytes {
    pub(crate) fn new() -> Self {
        let mut table = [None; 0x200];
        for (byte, letter) in (0u8..=255).zip(byte_letters()) {
            table[letter as usize] = Some(byte);
        }
        Self(table)
    }

    /// Appends the bytes that `text` spells; a character that spells none stays as it is.
    pub(crate) fn push_bytes(&self, text: &str, bytes: &mut Vec<u8>) {
        for letter in text.chars() {
            match self.0.get(letter as usize) {
                Some(Some(byte)) => bytes.push(*byte),
                _ => bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
    }
}

/// Standard base64, with its padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let mut held = [0; 4];
        held[1..=three.len()].copy_from_slice(three);
        let held = u32::from_be_bytes(held);
        for place in 0..4 {
            let digit = DIGITS[(held >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= three.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// The byte that `<0xNN>` names.
pub(crate) fn named_byte(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    let is_hex = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_hex.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests;
