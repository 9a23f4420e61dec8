//! An answer as a row of segments, for APIs that keep reasoning and text apart and in order.

use super::calls::{Called, Calls, Said};
use super::choices;
use crate::ask::Answering;
use crate::error::ApiError;
use crate::event::{Ended, Event, Part, TokenLine};

/// What a segment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Reasoning,
    Text,
    Call,
}

/// Text of one kind between two changes of kind, or one call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Segment {
    pub(super) kind: Kind,
    /// Of a call, its arguments.
    pub(super) text: String,
    /// Filled only where tokens were asked for.
    pub(super) tokens: Vec<TokenLine>,
    /// The id and the name of a call; both empty elsewhere.
    pub(super) id: String,
    pub(super) name: String,
}

/// The segments of one answer.
#[derive(Debug)]
pub(super) struct Segments {
    all: Vec<Segment>,
    calls: Calls,
    /// Tokens whose text is not decided yet.
    waiting: Vec<TokenLine>,
}

impl Segments {
    /// No segments yet; the ids of calls will begin with `prefix`.
    pub(super) fn new(prefix: &str, answering: &Answering) -> Self {
        let calls = Calls::new(prefix, answering, 0);
        Self { all: Vec::new(), calls, waiting: Vec::new() }
    }

    /// The segments so far.
    pub(super) fn all(&self) -> &[Segment] {
        &self.all
    }

    /// The last segment and its index, while it may still grow.
    pub(super) fn last(&self) -> Option<(usize, &Segment)> {
        self.all.last().map(|last| (self.all.len() - 1, last))
    }

    /// Whether a piece of this kind begins a new segment: each call is one of its own.
    pub(super) fn is_change(&self, kind: Kind) -> bool {
        self.all.last().is_none_or(|last| last.kind != kind || kind == Kind::Call)
    }

    /// Puts a piece behind what there is.
    pub(super) fn push(&mut self, piece: Segment) {
        if self.is_change(piece.kind) {
            self.all.push(piece);
        } else if let Some(last) = self.all.last_mut() {
            last.text.push_str(&piece.text);
            last.tokens.extend(piece.tokens);
        }
    }

    /// Whether an answer that ends here still lacks its text, which may be empty; calls are
    /// answers without text.
    pub(super) fn lacks_text(&self) -> bool {
        self.all.iter().all(|segment| segment.kind == Kind::Reasoning)
    }

    /// Whether tools are called.
    pub(super) fn has_calls(&self) -> bool {
        self.calls.count() > 0
    }

    /// The pieces that a part decides, reasoning first.
    pub(super) fn pieces(&mut self, part: Part, includes_reasoning: bool) -> Vec<Segment> {
        let Part { visible, reasoning, tokens } = part;
        let mut pieces = Vec::new();
        if includes_reasoning && !reasoning.is_empty() {
            pieces.push(of(Kind::Reasoning, reasoning));
        }
        if self.calls.may_come() {
            self.waiting.extend(tokens);
            let said = self.calls.feed(visible);
            pieces.extend(self.told(said));
        } else if !visible.is_empty() || !tokens.is_empty() {
            pieces.push(Segment { tokens, ..of(Kind::Text, visible) });
        }
        pieces
    }

    /// The pieces of what was still waiting for the answer's end.
    pub(super) fn rest(&mut self) -> Vec<Segment> {
        let said = self.calls.finish();
        self.told(said)
    }

    fn told(&mut self, said: Vec<Said>) -> Vec<Segment> {
        let piece = |said| match said {
            Said::Text(text) => {
                let tokens = self.tokens_of(text.len());
                Segment { tokens, ..of(Kind::Text, text) }
            }
            Said::Call(Called { id, name, arguments }) => {
                // No API tells the tokens of a call.
                self.waiting.clear();
                Segment { id, name, ..of(Kind::Call, arguments) }
            }
        };
        said.into_iter().map(piece).collect()
    }

    /// Those of the waiting tokens that wrote a text of so many bytes.
    fn tokens_of(&mut self, bytes: usize) -> Vec<TokenLine> {
        let mut written = 0;
        let is_before = |line: &&TokenLine| {
            let is_in = written < bytes;
            written += line.piece.len();
            is_in
        };
        let count = self.waiting.iter().take_while(is_before).count();
        self.waiting.drain(..count).collect()
    }
}

/// A segment of this text.
fn of(kind: Kind, text: String) -> Segment {
    Segment { kind, text, tokens: Vec::new(), id: String::new(), name: String::new() }
}

/// An empty segment of text.
pub(super) fn empty() -> Segment {
    of(Kind::Text, String::new())
}

/// Waits for the answer's end; there is a call in it or text, if only an empty one. The ids of
/// calls begin with `prefix`.
///
/// # Errors
/// An answer that could not go on.
pub(super) async fn whole(
    prefix: &str,
    answering: &mut Answering,
    includes_reasoning: bool,
) -> Result<(Segments, Ended), ApiError> {
    let mut segments = Segments::new(prefix, answering);
    let mut ended = None;
    while let Some((_, event)) = answering.events.recv().await {
        match event {
            Event::Prefilled { .. } => {}
            Event::Part(part) => {
                let pieces = segments.pieces(part, includes_reasoning);
                pieces.into_iter().for_each(|piece| segments.push(piece));
            }
            Event::Ended(end) => ended = Some(*end),
        }
    }
    let ended = outcome(ended)?;
    segments.rest().into_iter().for_each(|piece| segments.push(piece));
    if segments.lacks_text() {
        segments.push(empty());
    }
    Ok((segments, ended))
}

/// How an answer ended, where it ended well.
///
/// # Errors
/// An answer that could not go on, or was left without an end.
pub(super) fn outcome(ended: Option<Ended>) -> Result<Ended, ApiError> {
    let ended = ended.ok_or_else(choices::broken)?;
    choices::failure(&ended).map_or(Ok(ended), Err)
}
