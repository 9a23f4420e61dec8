//! Which part of a JSON answer each token wrote: the core of the account by fields.

use std::collections::BTreeMap;

use crate::schema::pointer_token;

/// Most bytes of a path below which fields are told apart: what lies deeper counts for the field
/// there. The paths of an answer that only nests would else grow with the square of its length.
const PATH_BYTES_MAX: usize = 1024;

/// Bytes of a number or a word that are kept: one more than the longest word has.
const LITERAL_BYTES_MAX: usize = 6;

/// A field of the answer, by its number in the order in which fields began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldId(usize);

/// What a token wrote of its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The name with its quotes.
    Key,
    /// A string with its quotes, a number, `true`, `false` or `null`.
    Value,
    /// Brackets, colons, commas and white space.
    Punctuation,
}

/// Where one token belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    pub field: FieldId,
    pub part: Part,
}

/// Reads an answer token by token.
///
/// A token that spans several parts belongs to the one that has most of its bytes, the first of
/// equals. A text that is no JSON is read as far as it makes sense; nothing fails.
#[derive(Debug, Clone)]
pub struct FieldWalker {
    /// Paths of the fields: (fields).
    paths: Vec<String>,
    /// (parent, step as in a JSON pointer) to the field.
    children: BTreeMap<(FieldId, String), FieldId>,
    written: Vec<Written>,
    /// Containers that are open, outermost first.
    frames: Vec<Frame>,
    /// The field whose value comes next or is being written.
    current: FieldId,
    lexeme: Lexeme,
    expects_key: bool,
    /// Whether the value of `current` is written, and cannot go on.
    is_written: bool,
    /// The number or the word being written, as far as a word needs.
    literal: Vec<u8>,
    /// The name being written, with its quotes.
    key: Vec<u8>,
    /// Tokens so far of the name being written, by their place in `written`.
    waiting: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    field: FieldId,
    is_object: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lexeme {
    None,
    Text { is_key: bool, is_escaped: bool },
    Literal,
}

/// Bytes of one token by part; no field stands for the name that is being written.
type Tally = Vec<((Option<FieldId>, Part), usize)>;

impl Default for FieldWalker {
    fn default() -> Self {
        Self {
            paths: vec![String::new()],
            children: BTreeMap::new(),
            written: Vec::new(),
            frames: Vec::new(),
            current: FieldId(0),
            lexeme: Lexeme::None,
            expects_key: false,
            is_written: false,
            literal: Vec::new(),
            key: Vec::new(),
            waiting: Vec::new(),
        }
    }
}

impl FieldWalker {
    /// Takes the bytes of the next token.
    pub fn token(&mut self, bytes: &[u8]) {
        let mut tally = Tally::new();
        for &byte in bytes {
            let (owner, part) = self.byte(byte);
            match tally.iter_mut().find(|(key, _)| *key == (owner, part)) {
                Some((_, count)) => *count += 1,
                None => tally.push(((owner, part), 1)),
            }
            if part == Part::Key && self.lexeme == Lexeme::None {
                self.name(&mut tally);
            }
        }
        // `max_by_key` takes the last of equals, so the walk is backwards.
        let most = tally.iter().rev().max_by_key(|(_, count)| *count).map(|(key, _)| *key);
        let (owner, part) = most.unwrap_or((Some(self.current), Part::Punctuation));
        if owner.is_none() {
            self.waiting.push(self.written.len());
        }
        let field = owner.unwrap_or(self.container());
        self.written.push(Written { field, part });
    }

    /// Where each token belongs, in their order; the tokens of a name that is still open count
    /// for the object that it stands in.
    #[must_use]
    pub fn written(&self) -> &[Written] {
        &self.written
    }

    /// The field's path as a JSON pointer, with `*` for every item of an array; the whole answer
    /// is the empty path.
    #[must_use]
    pub fn path(&self, field: FieldId) -> &str {
        &self.paths[field.0]
    }

    /// The innermost field that is not finished, as the account of a cut answer names it.
    ///
    /// A field begins with the end of its name, and ends where its value cannot go on: a number
    /// only with what stands behind it.
    #[must_use]
    pub fn open(&self) -> FieldId {
        let is_between = match self.lexeme {
            Lexeme::None => self.expects_key || self.is_written,
            Lexeme::Text { is_key, .. } => is_key,
            Lexeme::Literal => matches!(&self.literal[..], b"true" | b"false" | b"null"),
        };
        if is_between { self.container() } else { self.current }
    }

    fn container(&self) -> FieldId {
        self.frames.last().map_or(self.current, |frame| frame.field)
    }

    /// The name is whole: what waited for it belongs to its field.
    fn name(&mut self, tally: &mut Tally) {
        let key = std::mem::take(&mut self.key);
        let name: String = serde_json::from_slice(&key)
            .unwrap_or_else(|_| String::from_utf8_lossy(&key).trim_matches('"').to_owned());
        self.current = self.child(self.container(), pointer_token(&name));
        self.is_written = false;
        for index in self.waiting.drain(..) {
            self.written[index].field = self.current;
        }
        for ((owner, _), _) in tally.iter_mut() {
            owner.get_or_insert(self.current);
        }
    }

    fn child(&mut self, parent: FieldId, step: String) -> FieldId {
        if self.paths[parent.0].len() > PATH_BYTES_MAX {
            return parent;
        }
        let next = FieldId(self.paths.len());
        let path = format!("{}/{step}", self.paths[parent.0]);
        let field = *self.children.entry((parent, step)).or_insert(next);
        if field == next {
            self.paths.push(path);
        }
        field
    }

    fn byte(&mut self, byte: u8) -> (Option<FieldId>, Part) {
        if let Lexeme::Text { is_key, is_escaped } = self.lexeme {
            return self.text(byte, is_key, is_escaped);
        }
        let is_structure =
            matches!(byte, b'{' | b'}' | b'[' | b']' | b':' | b',' | b' ' | b'\n' | b'\r' | b'\t');
        if is_structure {
            self.is_written |= self.lexeme == Lexeme::Literal;
            self.lexeme = Lexeme::None;
            return (Some(self.structure(byte)), Part::Punctuation);
        }
        if byte == b'"' {
            let is_key = self.expects_key;
            self.lexeme = Lexeme::Text { is_key, is_escaped: false };
            self.expects_key = false;
            if is_key {
                self.key.push(byte);
                return (None, Part::Key);
            }
        } else {
            if self.lexeme != Lexeme::Literal {
                self.literal.clear();
            }
            self.lexeme = Lexeme::Literal;
            if self.literal.len() < LITERAL_BYTES_MAX {
                self.literal.push(byte);
            }
        }
        self.is_written = false;
        (Some(self.current), Part::Value)
    }

    fn text(&mut self, byte: u8, is_key: bool, is_escaped: bool) -> (Option<FieldId>, Part) {
        self.lexeme = match byte {
            b'"' if !is_escaped => Lexeme::None,
            _ => Lexeme::Text { is_key, is_escaped: byte == b'\\' && !is_escaped },
        };
        if is_key {
            self.key.push(byte);
            return (None, Part::Key);
        }
        self.is_written = self.lexeme == Lexeme::None;
        (Some(self.current), Part::Value)
    }

    /// Takes a byte of structure; whose it is.
    fn structure(&mut self, byte: u8) -> FieldId {
        let container = self.container();
        match byte {
            b'{' | b'[' => {
                let field = self.current;
                self.frames.push(Frame { field, is_object: byte == b'{' });
                self.next();
                field
            }
            b'}' | b']' => {
                self.current = self.frames.pop().map_or(self.current, |frame| frame.field);
                self.expects_key = false;
                self.is_written = true;
                self.current
            }
            b':' => self.current,
            b',' => {
                self.next();
                container
            }
            _ => container,
        }
    }

    /// What the innermost container begins with next.
    fn next(&mut self) {
        self.is_written = false;
        match self.frames.last().copied() {
            Some(Frame { is_object: true, .. }) => self.expects_key = true,
            Some(Frame { field, .. }) => {
                self.expects_key = false;
                self.current = self.child(field, "*".to_owned());
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests;
