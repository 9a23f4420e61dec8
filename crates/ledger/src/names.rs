//! Names in the lines of a table: they may hold anything, and no line may be forged by one.

/// Most characters of a name in a line, escapes and ellipsis included.
const CHARS_MAX: usize = 80;

/// A text in one line: what would end the line, turn it round or drive a terminal is escaped.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            c if c.is_control() => line.extend(c.escape_default()),
            c @ ('\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => {
                line.extend(c.escape_default());
            }
            c => line.push(c),
        }
    }
    line
}

/// A name in one line; of a long one, the beginning and the end, since paths of one place differ
/// in their end.
#[must_use]
pub fn shown_name(name: &str) -> String {
    let line = escaped(name);
    let count = line.chars().count();
    if count <= CHARS_MAX {
        return line;
    }
    let (first, last) = (CHARS_MAX / 2, CHARS_MAX / 2 - 1);
    let start: String = line.chars().take(first).collect();
    let end: String = line.chars().skip(count - last).collect();
    format!("{start}…{end}")
}

#[cfg(test)]
mod tests;
