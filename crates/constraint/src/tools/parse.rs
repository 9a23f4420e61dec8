//! The model's text read back: calls out of the template's own form, as the bytes come.

mod json;

use super::{ToolCall, ToolFormat};
use json::Scan;

const OPEN: &[u8] = b"<tool_call>";
const CLOSE: &[u8] = b"</tool_call>";
const PYTHON_TAG: &[u8] = b"<|python_tag|>";
/// White space before a call that belongs to the call, at the most.
const SPACE_MAX: usize = 64;

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolEvent {
    /// Text for the reader; what looks like a call and is none is text too, as it was written.
    Text(String),
    Call(ToolCall),
}

/// Reads one answer. However the bytes are cut, the calls are the same and so is all of the text.
#[derive(Debug)]
pub struct ToolParser {
    format: ToolFormat,
    state: State,
    /// Bytes that are not decided yet.
    waiting: Vec<u8>,
    calls: usize,
}

#[derive(Debug)]
enum State {
    /// Text, in which a call may begin.
    Text,
    /// After what opens a call, which is kept in case that it is none: its bytes and the JSON.
    Call { opening: usize, scan: Scan },
    /// Text in which no call begins any more.
    Plain,
}

/// What the next look at the waiting bytes came to.
enum Look {
    /// More bytes are needed.
    More,
    /// Something was decided, and the rest is to be looked at.
    Again,
}

impl ToolParser {
    /// A parser at the beginning of an answer.
    #[must_use]
    pub fn new(format: ToolFormat) -> Self {
        Self { format, state: State::Text, waiting: Vec::new(), calls: 0 }
    }

    /// Takes the next bytes of the answer; they may end anywhere.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<ToolEvent> {
        self.waiting.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Look::Again = self.look(&mut events, false) {}
        events
    }

    /// Ends the answer: what was still waiting is a call if it is whole, else text.
    pub fn finish(mut self) -> Vec<ToolEvent> {
        let mut events = Vec::new();
        while let Look::Again = self.look(&mut events, true) {}
        let is_space = self.waiting.iter().all(u8::is_ascii_whitespace);
        if self.calls == 0 || !is_space {
            let count = self.waiting.len();
            self.text(count, &mut events);
        }
        events
    }

    fn look(&mut self, events: &mut Vec<ToolEvent>, is_end: bool) -> Look {
        match (&mut self.state, self.format) {
            (State::Plain, _) => {
                let whole = whole_characters(&self.waiting);
                self.text(whole, events);
                Look::More
            }
            (State::Text, ToolFormat::Qwen) => self.marked_text(events),
            (State::Text, ToolFormat::Llama3) => self.bare_text(),
            (State::Call { .. }, _) => self.call(events, is_end),
        }
    }

    /// Gives out text up to the next marker.
    fn marked_text(&mut self, events: &mut Vec<ToolEvent>) -> Look {
        let found = self.waiting.windows(OPEN.len()).position(|window| window == OPEN);
        if let Some(at) = found {
            let space = trailing_space(&self.waiting[..at]);
            self.text(at - space, events);
            self.state = State::Call { opening: space + OPEN.len(), scan: Scan::default() };
            return Look::Again;
        }
        let partial = (1..OPEN.len()).rev().find(|&count| self.waiting.ends_with(&OPEN[..count]));
        let kept = partial.unwrap_or(0);
        let text = &self.waiting[..self.waiting.len() - kept];
        let text = if kept == 0 { &text[..whole_characters(text)] } else { text };
        let count = text.len() - trailing_space(text);
        self.text(count, events);
        Look::More
    }

    /// Decides whether the answer is a call at all.
    fn bare_text(&mut self) -> Look {
        let is_separator =
            |byte: &u8| byte.is_ascii_whitespace() || (self.calls > 0 && *byte == b';');
        let space = self.waiting.iter().take_while(|byte| is_separator(byte)).count();
        let rest = &self.waiting[space..];
        let tag = if rest.starts_with(PYTHON_TAG) { PYTHON_TAG.len() } else { 0 };
        let blank = rest[tag..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let opening = space + tag + blank;
        self.state = match self.waiting.get(opening) {
            _ if space + blank > SPACE_MAX => State::Plain,
            Some(b'{') => State::Call { opening, scan: Scan::default() },
            None => return Look::More,
            Some(_) if tag == 0 && PYTHON_TAG.starts_with(rest) => return Look::More,
            Some(_) => State::Plain,
        };
        Look::Again
    }

    /// Reads on in a call; what turns out to be none becomes text.
    fn call(&mut self, events: &mut Vec<ToolEvent>, is_end: bool) -> Look {
        let State::Call { opening, scan } = &mut self.state else {
            return Look::More;
        };
        let opening = *opening;
        let body = &self.waiting[opening..];
        let end = match scan.on(body) {
            json::Found::End(end) => end,
            json::Found::Open if !is_end => return Look::More,
            json::Found::Open | json::Found::Never => return self.no_call(opening, events),
        };
        let rest = &body[end..];
        let close = match self.format {
            ToolFormat::Llama3 => 0,
            ToolFormat::Qwen => {
                let blank = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
                let tail = &rest[blank..];
                match () {
                    () if tail.starts_with(CLOSE) => blank + CLOSE.len(),
                    () if CLOSE.starts_with(tail) && is_end => rest.len(),
                    () if CLOSE.starts_with(tail) => return Look::More,
                    () => return self.no_call(opening, events),
                }
            }
        };
        match json::call(&body[..end]) {
            Some(call) => {
                events.push(ToolEvent::Call(call));
                self.calls += 1;
                self.waiting.drain(..opening + end + close);
                self.state = State::Text;
                Look::Again
            }
            None => self.no_call(opening, events),
        }
    }

    /// Gives out the opening as text and goes on behind it.
    fn no_call(&mut self, opening: usize, events: &mut Vec<ToolEvent>) -> Look {
        self.text(opening, events);
        self.state = match self.format {
            ToolFormat::Qwen => State::Text,
            ToolFormat::Llama3 => State::Plain,
        };
        Look::Again
    }

    /// Gives out the first bytes that wait; joined to text that came just before.
    fn text(&mut self, count: usize, events: &mut Vec<ToolEvent>) {
        if count == 0 {
            return;
        }
        let bytes: Vec<u8> = self.waiting.drain(..count).collect();
        let text = String::from_utf8_lossy(&bytes);
        match events.last_mut() {
            Some(ToolEvent::Text(before)) => before.push_str(&text),
            _ => events.push(ToolEvent::Text(text.into_owned())),
        }
    }
}

/// Bytes of white space at the end that a call may follow.
fn trailing_space(text: &[u8]) -> usize {
    let space = text.iter().rev().take(SPACE_MAX);
    space.take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// Bytes up to a character whose end has not come yet.
fn whole_characters(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(3)..bytes.len();
    for start in tail.rev() {
        let byte = bytes[start];
        let length = match byte {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            0x80..=0xbf => continue,
            _ => 1,
        };
        return if start + length > bytes.len() { start } else { bytes.len() };
    }
    bytes.len()
}

#[cfg(test)]
mod tests;
