//! The JSON object of a call: where it ends, and what it says.

use serde_json::Value;

use crate::reading::compact_json;
use crate::tools::ToolCall;

/// Finds the end of an object as its bytes come; each byte is looked at once.
#[derive(Debug, Default)]
pub(super) struct Scan {
    at: usize,
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

pub(super) enum Found {
    /// Just past the object.
    End(usize),
    /// It goes on.
    Open,
    /// It is no object.
    Never,
}

impl Scan {
    /// Looks at what came since, in all of the bytes so far.
    pub(super) fn on(&mut self, bytes: &[u8]) -> Found {
        while let Some(&byte) = bytes.get(self.at) {
            if self.depth == 0 && !byte.is_ascii_whitespace() && byte != b'{' {
                return Found::Never;
            }
            self.at += 1;
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.in_string => self.is_escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        let end = self.at;
                        // Asked again, the end is the same.
                        (self.at, self.depth) = (end - 1, 1);
                        return Found::End(end);
                    }
                }
                _ => {}
            }
        }
        Found::Open
    }
}

/// The call that an object states, if it states one.
pub(super) fn call(bytes: &[u8]) -> Option<ToolCall> {
    let text = std::str::from_utf8(bytes).ok()?;
    let object: Value = serde_json::from_str(text).ok()?;
    let name = object.get("name")?.as_str()?.to_owned();
    let key = ["arguments", "parameters"].into_iter().find(|key| object.get(key).is_some())?;
    if !object[key].is_object() {
        return None;
    }
    let compact = compact_json(text).ok()?;
    let arguments = member(&compact, key)?.to_owned();
    Some(ToolCall { name, arguments })
}

/// The text of the last member of this name in an object that is written compactly.
fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let bytes = object.as_bytes();
    let wanted = format!("\"{name}\":");
    let mut found = None;
    let mut at = 1;
    while at < bytes.len() && bytes[at] != b'}' {
        let start = at;
        let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
        while let Some(&byte) = bytes.get(at) {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' if in_string => is_escaped = true,
                b'"' => in_string = !in_string,
                _ if in_string => {}
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth > 0 => depth -= 1,
                b'}' | b',' if depth == 0 => break,
                _ => {}
            }
            at += 1;
        }
        found = object[start..at].strip_prefix(&wanted).or(found);
        at += usize::from(bytes.get(at) == Some(&b','));
    }
    found
}
