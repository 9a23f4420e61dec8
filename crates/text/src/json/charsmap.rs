//! SentencePiece's table of characters (`Precompiled`), walked before the library follows it.
//!
//! It is a length in bytes, a double array of 32-bit units (Aoe 1989, as Darts-clone packs it),
//! and the texts that its values point to, each ended by a zero byte. The library looks at no
//! bound, so everything that a text could lead it to is looked at here.

/// Most units; the largest table in use has some sixty thousand.
const UNITS_MAX: usize = 1 << 20;

/// Above this no byte of UTF-8 lies.
const BYTE_MAX: u8 = 0xF4;

/// What is wrong with a table, whose texts may have `bytes_max` bytes each.
pub(super) fn fault(base64: &str, bytes_max: usize) -> Option<&'static str> {
    let Some(table) = decoded(base64) else {
        return Some("has a table that is no base64");
    };
    let length = table.first_chunk().map_or(0, |length| u32::from_le_bytes(*length) as usize / 4);
    let units = table.get(4..4 + 4 * length.min(UNITS_MAX + 1)).unwrap_or_default();
    if length > UNITS_MAX || units.is_empty() {
        return Some("has a table that is empty, cut, or too long");
    }
    let units: Vec<u32> =
        units.as_chunks().0.iter().map(|unit| u32::from_le_bytes(*unit)).collect();
    walk(&units, &table[4 + 4 * length..], bytes_max)
}

/// Every unit that some text leads to: inside the table, and its value the start of a short text.
fn walk(units: &[u32], texts: &[u8], bytes_max: usize) -> Option<&'static str> {
    let outside = Some("has a table that leads out of itself");
    let mut seen = vec![false; units.len()];
    let mut places = vec![offset(*units.first()?)];
    while let Some(place) = places.pop() {
        match seen.get_mut(place) {
            Some(true) => continue,
            Some(seen) => *seen = true,
            None => return outside,
        }
        for byte in 1..=BYTE_MAX {
            let at = place ^ usize::from(byte);
            let Some(&unit) = units.get(at) else { return outside };
            if label(unit) != u32::from(byte) {
                continue;
            }
            let next = at ^ offset(unit);
            let Some(&leaf) = units.get(next) else { return outside };
            if has_leaf(unit) {
                let start = (leaf & (u32::MAX >> 1)) as usize;
                let Some(text) = texts.get(start..) else { return outside };
                // In the middle of a character there is no text.
                if text.first().is_some_and(|byte| byte & 0xC0 == 0x80) {
                    return outside;
                }
                let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
                if end > bytes_max {
                    return Some("puts in more than 64 bytes");
                }
            }
            places.push(next);
        }
    }
    None
}

/// The byte that a unit stands for; of a leaf no byte.
fn label(unit: u32) -> u32 {
    unit & (1 << 31 | 0xFF)
}

fn has_leaf(unit: u32) -> bool {
    unit >> 8 & 1 == 1
}

/// From a unit to those that follow it, as an exclusive or.
fn offset(unit: u32) -> usize {
    ((unit >> 10) << ((unit & 1 << 9) >> 6)) as usize
}

/// Standard base64 with its padding.
pub(crate) fn decoded(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 3);
    let (mut held, mut bits) = (0_u32, 0);
    for digit in digits {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        held = held << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits & 0xFF) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
