//! Tokens that are looked for in the text itself: control and user-defined ones.

use std::ops::Range;

/// One text that stands for one token wherever it may.
#[derive(Debug)]
struct Marker {
    text: Box<str>,
    token: u32,
    is_control: bool,
}

/// A stretch of text between markers, or one marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(Range<usize>),
    Token(u32),
}

/// Which control tokens the text may spell.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Control<'a> {
    /// None: the text is a user's.
    Nowhere,
    /// All.
    Everywhere,
    /// Those that touch none of these byte ranges, which are ascending and a user's.
    Outside(&'a [Range<usize>]),
}

/// All markers, sorted by their bytes so that a walk narrows a range instead of a tree.
#[derive(Debug, Default)]
pub(crate) struct Markers {
    sorted: Vec<Marker>,
    /// Markers that begin with each byte, as a range of `sorted`; empty without markers.
    by_first: Vec<Range<usize>>,
}

impl Markers {
    /// Markers from (text, token, whether it is a control token); of equal texts the first stays.
    pub(crate) fn new(texts: impl IntoIterator<Item = (String, u32, bool)>) -> Self {
        let mut sorted: Vec<Marker> = texts
            .into_iter()
            .filter(|(text, ..)| !text.is_empty())
            .map(|(text, token, is_control)| Marker { text: text.into(), token, is_control })
            .collect();
        sorted.sort_by(|a, b| a.text.cmp(&b.text));
        sorted.dedup_by(|later, earlier| later.text == earlier.text);
        let by_first = (0u8..=255)
            .map(|byte| {
                let first = sorted.partition_point(|marker| marker.text.as_bytes()[0] < byte);
                let end = sorted.partition_point(|marker| marker.text.as_bytes()[0] <= byte);
                first..end
            })
            .collect();
        Self { sorted, by_first }
    }

    /// The texts of the control tokens.
    pub(crate) fn control_texts(&self) -> impl Iterator<Item = &str> {
        self.sorted.iter().filter(|marker| marker.is_control).map(|marker| &*marker.text)
    }

    /// Cuts `text` at its markers: leftmost first, then longest.
    pub(crate) fn cut(&self, text: &str, control: Control<'_>) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut gate = Gate { control, next: 0 };
        let (mut done, mut at) = (0, 0);
        while at < text.len() {
            let Some(marker) = self.longest_at(text, at, &mut gate) else {
                at += 1;
                continue;
            };
            if at > done {
                pieces.push(Piece::Text(done..at));
            }
            pieces.push(Piece::Token(marker.token));
            at += marker.text.len();
            done = at;
        }
        if done < text.len() {
            pieces.push(Piece::Text(done..text.len()));
        }
        pieces
    }

    /// The longest marker that begins at byte `at` and is let through.
    fn longest_at(&self, text: &str, at: usize, gate: &mut Gate<'_>) -> Option<&Marker> {
        let rest = &text.as_bytes()[at..];
        let mut range = self.by_first.get(usize::from(rest[0]))?.clone();
        let mut longest = None;
        let mut depth = 1;
        while !range.is_empty() {
            let first = &self.sorted[range.start];
            if first.text.len() == depth {
                if gate.lets(first, at) {
                    longest = Some(first);
                }
                range.start += 1;
            }
            let Some(&byte) = rest.get(depth) else { break };
            let within = &self.sorted[range.clone()];
            let low = within.partition_point(|marker| marker.text.as_bytes()[depth] < byte);
            let high = within.partition_point(|marker| marker.text.as_bytes()[depth] <= byte);
            range = range.start + low..range.start + high;
            depth += 1;
        }
        longest
    }
}

/// Lets control markers through where they may stand; asked at ascending places.
struct Gate<'a> {
    control: Control<'a>,
    /// First of the user's ranges that can still matter.
    next: usize,
}

impl Gate<'_> {
    fn lets(&mut self, marker: &Marker, at: usize) -> bool {
        if !marker.is_control {
            return true;
        }
        match self.control {
            Control::Nowhere => false,
            Control::Everywhere => true,
            Control::Outside(ranges) => {
                while ranges.get(self.next).is_some_and(|range| range.end <= at) {
                    self.next += 1;
                }
                let end = at + marker.text.len();
                ranges.get(self.next).is_none_or(|range| range.start >= end)
            }
        }
    }
}

#[cfg(test)]
mod tests;
