//! Patterns of JSON Schema (ECMA-262, Unicode) in the engine's syntax, with the same meaning.

use std::iter::Peekable;
use std::str::Chars;

/// Most states that a pattern's repetitions may stand for.
const STATES_MAX: u64 = 100_000;
/// Deepest nesting of groups.
const GROUPS_MAX: usize = 50;
/// Most characters of a pattern.
const PATTERN_CHARS_MAX: usize = 10_000;
/// What `\s` means (ECMA-262, WhiteSpace and LineTerminator).
const SPACES: &str = r"\t\n\x0B\x0C\r \u{A0}\u{1680}\u{2000}-\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}\u{3000}\u{FEFF}";
const WORD: &str = "0-9A-Z_a-z";
const NOT_LINE_ENDS: &str = r"[^\n\r\u{2028}\u{2029}]";
const EVERYTHING: &str = r"[\x00-\u{10FFFF}]";

/// Translates a pattern; what comes back as an error is the reason it cannot be held.
pub(super) fn translated(pattern: &str) -> Result<String, String> {
    let length = pattern.chars().count();
    if length > PATTERN_CHARS_MAX {
        return Err(format!("it has {length} characters, the limit is {PATTERN_CHARS_MAX}"));
    }
    let mut reader = Reader { rest: pattern.chars().peekable(), written: String::new(), groups: 0 };
    let states = reader.alternatives()?;
    if reader.rest.next().is_some() {
        return Err("a `)` closes nothing".to_owned());
    }
    if states > STATES_MAX {
        return Err(format!("it stands for {states} states, the limit is {STATES_MAX}"));
    }
    Ok(reader.written)
}

/// The characters still to be read and what was made of the others.
struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    written: String,
    groups: usize,
}

/// One member of a character class.
enum Member {
    Char(char),
    Set(String),
}

impl Reader<'_> {
    /// Reads to the end of the group; how many states it stands for.
    fn alternatives(&mut self) -> Result<u64, String> {
        let mut states = 0_u64;
        while let Some(&next) = self.rest.peek() {
            match next {
                ')' => break,
                '|' => {
                    self.rest.next();
                    self.written.push('|');
                }
                _ => states = states.saturating_add(self.term()?),
            }
        }
        Ok(states)
    }

    /// Reads one atom and its quantifier.
    fn term(&mut self) -> Result<u64, String> {
        let Some(first) = self.rest.next() else {
            return Ok(0);
        };
        let states = match first {
            '^' | '$' => {
                self.written.push(first);
                // An anchor matches no text, so repeating it means nothing.
                return match self.rest.peek() {
                    Some('*' | '+' | '?') => Err("an anchor is repeated".to_owned()),
                    _ => Ok(0),
                };
            }
            '(' => self.group()?,
            '[' => {
                self.class()?;
                1
            }
            '.' => {
                self.written.push_str(NOT_LINE_ENDS);
                1
            }
            '\\' => {
                match self.escape()? {
                    Member::Char(c) => push_char(&mut self.written, c),
                    Member::Set(set) => self.written.push_str(&format!("[{set}]")),
                }
                1
            }
            '*' | '+' | '?' => return Err(format!("`{first}` repeats nothing")),
            other => {
                push_char(&mut self.written, other);
                1
            }
        };
        self.quantifier(states)
    }

    fn group(&mut self) -> Result<u64, String> {
        self.groups += 1;
        if self.groups > GROUPS_MAX {
            return Err(format!("its groups are nested deeper than {GROUPS_MAX}"));
        }
        if self.rest.next_if_eq(&'?').is_some() {
            match self.rest.next() {
                Some(':') => {}
                Some('<') if !matches!(self.rest.peek(), Some('=' | '!')) => {
                    while self.rest.next().ok_or("a group's name has no end")? != '>' {}
                }
                Some('=' | '!' | '<') => return Err("it looks ahead or behind".to_owned()),
                _ => return Err("a group has a kind that is not known".to_owned()),
            }
        }
        self.written.push_str("(?:");
        let states = self.alternatives()?;
        if self.rest.next() != Some(')') {
            return Err("a `(` is not closed".to_owned());
        }
        self.written.push(')');
        self.groups -= 1;
        Ok(states)
    }

    fn quantifier(&mut self, states: u64) -> Result<u64, String> {
        let states = match self.rest.peek() {
            Some(&sign @ ('*' | '+' | '?')) => {
                self.rest.next();
                self.written.push(sign);
                states
            }
            Some('{') => match self.counts()? {
                Some((low, high)) => {
                    let (low_told, high_told) = (low, high.map(|high| high.to_string()));
                    let told = high_told.unwrap_or_default();
                    self.written.push_str(&format!("{{{low_told},{told}}}"));
                    let times = u64::from(high.unwrap_or(low).max(1));
                    states.saturating_mul(times)
                }
                None => {
                    self.written.push_str(r"\{");
                    states + 1
                }
            },
            _ => return Ok(states),
        };
        // Which match is found does not matter where all of it must match.
        self.rest.next_if_eq(&'?');
        match self.rest.peek() {
            Some('*' | '+' | '?') => Err("a quantifier is quantified".to_owned()),
            _ => Ok(states),
        }
    }

    /// Reads `{n}`, `{n,}` or `{n,m}`; nothing where the brace is a letter like others.
    fn counts(&mut self) -> Result<Option<(u32, Option<u32>)>, String> {
        let mut ahead = self.rest.clone();
        ahead.next();
        let inner: String = ahead.by_ref().take_while(|&c| c != '}').take(32).collect();
        let (low, high) = inner.split_once(',').unwrap_or((&inner, &inner));
        let is_count = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !is_count(low) || !(high.is_empty() || is_count(high)) {
            self.rest.next();
            return Ok(None);
        }
        self.rest = ahead;
        let count = |text: &str| match text.parse::<u32>() {
            Ok(count) if count <= 100_000 => Ok(count),
            _ => Err(format!("a count of {text} is beyond the limit of 100000")),
        };
        let low = count(low)?;
        let high = if high.is_empty() { None } else { Some(count(high)?) };
        match high {
            Some(high) if high < low => Err(format!("the counts {low} and {high} are swapped")),
            _ => Ok(Some((low, high))),
        }
    }

    fn class(&mut self) -> Result<(), String> {
        let is_negated = self.rest.next_if_eq(&'^').is_some();
        let mut inner = String::new();
        loop {
            let member = match self.rest.next().ok_or("a `[` is not closed")? {
                ']' => break,
                '\\' => self.escape_in_class()?,
                other => Member::Char(other),
            };
            let Member::Char(low) = member else {
                if let Member::Set(set) = member {
                    inner.push_str(&format!("[{set}]"));
                }
                continue;
            };
            match self.range_end()? {
                Some(high) if high < low => return Err("a range runs backwards".to_owned()),
                Some(high) => {
                    push_char(&mut inner, low);
                    inner.push('-');
                    push_char(&mut inner, high);
                }
                None => push_char(&mut inner, low),
            }
        }
        let written = match (is_negated, inner.is_empty()) {
            (true, true) => EVERYTHING.to_owned(),
            (false, true) => return Err("the class `[]` holds nothing".to_owned()),
            (true, false) => format!("[^{inner}]"),
            (false, false) => format!("[{inner}]"),
        };
        self.written.push_str(&written);
        Ok(())
    }

    /// The end of a range whose first character was read, if there is one.
    fn range_end(&mut self) -> Result<Option<char>, String> {
        let mut ahead = self.rest.clone();
        if ahead.next() != Some('-') || matches!(ahead.peek(), None | Some(']')) {
            return Ok(None);
        }
        self.rest.next();
        match self.rest.next() {
            Some('\\') => match self.escape_in_class()? {
                Member::Char(high) => Ok(Some(high)),
                Member::Set(_) => Err("a range ends in a class".to_owned()),
            },
            high => Ok(high),
        }
    }

    fn escape_in_class(&mut self) -> Result<Member, String> {
        match self.rest.peek() {
            Some('b') => {
                self.rest.next();
                Ok(Member::Char('\u{8}'))
            }
            _ => self.escape(),
        }
    }

    fn escape(&mut self) -> Result<Member, String> {
        let set = |text: &str| Ok(Member::Set(text.to_owned()));
        let letter = self.rest.next().ok_or("a `\\` stands at the end")?;
        match letter {
            'd' => set("0-9"),
            'D' => set("^0-9"),
            'w' => set(WORD),
            'W' => Ok(Member::Set(format!("^{WORD}"))),
            's' => set(SPACES),
            'S' => Ok(Member::Set(format!("^{SPACES}"))),
            't' => Ok(Member::Char('\t')),
            'n' => Ok(Member::Char('\n')),
            'v' => Ok(Member::Char('\u{b}')),
            'f' => Ok(Member::Char('\u{c}')),
            'r' => Ok(Member::Char('\r')),
            '0' if !matches!(self.rest.peek(), Some('0'..='9')) => Ok(Member::Char('\0')),
            'c' => match self.rest.next() {
                Some(c) if c.is_ascii_alphabetic() => {
                    Ok(Member::Char(char::from(c.to_ascii_uppercase() as u8 - b'@')))
                }
                _ => Err("`\\c` needs a letter".to_owned()),
            },
            'x' => self.hex(2).and_then(character),
            'u' => self.unicode(),
            'p' | 'P' => self.property(letter),
            'b' | 'B' => Err("it asks for a word's edge".to_owned()),
            '1'..='9' | 'k' => Err("it refers back to a group".to_owned()),
            other if other.is_ascii_alphanumeric() => Err(format!("`\\{other}` means nothing")),
            other => Ok(Member::Char(other)),
        }
    }

    fn unicode(&mut self) -> Result<Member, String> {
        if self.rest.next_if_eq(&'{').is_some() {
            let inner: String = self.rest.by_ref().take_while(|&c| c != '}').take(8).collect();
            let code = u32::from_str_radix(&inner, 16).map_err(|_| "`\\u{` has no number")?;
            return character(code);
        }
        let code = self.hex(4)?;
        if !(0xd800..0xdc00).contains(&code) {
            return character(code);
        }
        if self.rest.next() != Some('\\') || self.rest.next() != Some('u') {
            return Err("it holds half of a surrogate pair".to_owned());
        }
        let low = self.hex(4)?;
        if !(0xdc00..0xe000).contains(&low) {
            return Err("it holds half of a surrogate pair".to_owned());
        }
        character(0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00))
    }

    fn hex(&mut self, digits: usize) -> Result<u32, String> {
        let text: String = self.rest.by_ref().take(digits).collect();
        let is_hex = text.len() == digits && text.bytes().all(|b| b.is_ascii_hexdigit());
        let code = u32::from_str_radix(&text, 16).ok().filter(|_| is_hex);
        code.ok_or_else(|| format!("an escape needs {digits} hexadecimal digits"))
    }

    /// A Unicode property, whose names both syntaxes take from the same standard.
    fn property(&mut self, letter: char) -> Result<Member, String> {
        if self.rest.next() != Some('{') {
            return Err(format!("`\\{letter}` needs a property in braces"));
        }
        let name: String = self.rest.by_ref().take_while(|&c| c != '}').take(64).collect();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '=';
        if name.is_empty() || !name.chars().all(is_name) {
            return Err("a property has no name".to_owned());
        }
        Ok(Member::Set(format!("\\{letter}{{{name}}}")))
    }
}

fn character(code: u32) -> Result<Member, String> {
    char::from_u32(code).map(Member::Char).ok_or_else(|| "it holds no character".to_owned())
}

/// Appends one character as itself, inside a class or out of it.
fn push_char(written: &mut String, c: char) {
    if c.is_ascii_alphanumeric() || c == ' ' || c == '_' {
        written.push(c);
    } else if c.is_ascii_punctuation() {
        written.push('\\');
        written.push(c);
    } else {
        written.push_str(&format!("\\u{{{:X}}}", u32::from(c)));
    }
}

#[cfg(test)]
mod tests;
