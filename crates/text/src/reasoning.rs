//! Reasoning apart from the answer: text between two markers, found as it comes.

use crate::find::{Found, find};

/// Text by who it is for; either part may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    pub reasoning: String,
    pub visible: String,
}

/// Splits a text at reasoning markers, such as `<think>` and `</think>`, which appear in neither
/// part, not even in pieces. What comes out does not depend on how the text is cut.
///
/// Stop strings are the answer's: give `StopMatcher` the visible part only.
#[derive(Debug, Clone)]
pub struct ReasoningSplitter {
    open: [String; 1],
    close: [String; 1],
    is_inside: bool,
    held: String,
}

impl ReasoningSplitter {
    /// A splitter; `starts_inside` where the prompt already ends with the opening marker.
    ///
    /// An empty marker is never found.
    #[must_use]
    pub fn new(open: &str, close: &str, starts_inside: bool) -> Self {
        let (open, close) = ([open.to_owned()], [close.to_owned()]);
        Self { open, close, is_inside: starts_inside, held: String::new() }
    }

    /// Whether the next text is reasoning, as far as can be told.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.is_inside
    }

    /// Takes the next text and gives what is certain.
    pub fn push(&mut self, text: &str) -> Parts {
        self.held.push_str(text);
        self.take(false)
    }

    /// The rest, when no more text comes: half a marker is text.
    #[must_use]
    pub fn finish(mut self) -> Parts {
        self.take(true)
    }

    fn take(&mut self, is_whole: bool) -> Parts {
        let mut parts = Parts::default();
        loop {
            let marker = if self.is_inside { &self.close } else { &self.open };
            let found = if marker[0].is_empty() {
                Found::Nothing
            } else {
                find(&self.held, marker, 0, is_whole)
            };
            let (shown, rest) = match found {
                Found::Match { start, end, .. } => (start, end),
                Found::Partial { start } => (start, start),
                Found::Nothing => (self.held.len(), self.held.len()),
            };
            let part = if self.is_inside { &mut parts.reasoning } else { &mut parts.visible };
            part.push_str(&self.held[..shown]);
            self.held.drain(..rest);
            if !matches!(found, Found::Match { .. }) {
                return parts;
            }
            self.is_inside = !self.is_inside;
        }
    }
}

#[cfg(test)]
mod tests;
