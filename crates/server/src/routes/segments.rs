//! An answer as a row of segments, for APIs that keep reasoning and text apart and in order.

use crate::ask::Answering;
use crate::error::ApiError;
use crate::event::{Ended, Event, Part, TokenLine};
use crate::routes::choices;

/// What a segment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Reasoning,
    Text,
}

/// Text of one kind between two changes of kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Segment {
    pub(crate) kind: Kind,
    pub(crate) text: String,
    /// Filled only where tokens were asked for.
    pub(crate) tokens: Vec<TokenLine>,
}

/// The segments of one answer.
#[derive(Debug, Default)]
pub(crate) struct Segments(Vec<Segment>);

impl Segments {
    /// The segments so far.
    pub(crate) fn all(&self) -> &[Segment] {
        &self.0
    }

    /// The last segment and its index, while it may still grow.
    pub(crate) fn last(&self) -> Option<(usize, &Segment)> {
        self.0.last().map(|last| (self.0.len() - 1, last))
    }

    /// Whether a piece of this kind begins a new segment.
    pub(crate) fn is_change(&self, kind: Kind) -> bool {
        self.0.last().is_none_or(|last| last.kind != kind)
    }

    /// Puts a piece behind what there is.
    pub(crate) fn push(&mut self, piece: Segment) {
        if self.is_change(piece.kind) {
            self.0.push(piece);
        } else if let Some(last) = self.0.last_mut() {
            last.text.push_str(&piece.text);
            last.tokens.extend(piece.tokens);
        }
    }

    /// Whether an answer that ends here still lacks its text, which may be empty.
    pub(crate) fn lacks_text(&self) -> bool {
        !self.0.iter().any(|segment| segment.kind == Kind::Text)
    }
}

/// An empty segment of text.
pub(crate) fn empty() -> Segment {
    Segment { kind: Kind::Text, text: String::new(), tokens: Vec::new() }
}

/// The pieces of a part, reasoning first.
pub(crate) fn pieces(part: Part, includes_reasoning: bool) -> impl Iterator<Item = Segment> {
    let Part { visible, reasoning, tokens } = part;
    let has_reasoning = includes_reasoning && !reasoning.is_empty();
    let has_text = !visible.is_empty() || !tokens.is_empty();
    let reasoning = Segment { kind: Kind::Reasoning, text: reasoning, tokens: Vec::new() };
    let text = Segment { kind: Kind::Text, text: visible, tokens };
    has_reasoning.then_some(reasoning).into_iter().chain(has_text.then_some(text))
}

/// Waits for the answer's end; there is text in it, if only an empty one.
///
/// # Errors
/// An answer that could not go on.
pub(crate) async fn whole(
    answering: &mut Answering,
    includes_reasoning: bool,
) -> Result<(Segments, Ended), ApiError> {
    let mut segments = Segments::default();
    let mut ended = None;
    while let Some((_, event)) = answering.events.recv().await {
        match event {
            Event::Prefilled { .. } => {}
            Event::Part(part) => {
                pieces(part, includes_reasoning).for_each(|piece| segments.push(piece));
            }
            Event::Ended(end) => ended = Some(*end),
        }
    }
    let ended = outcome(ended)?;
    if segments.lacks_text() {
        segments.push(empty());
    }
    Ok((segments, ended))
}

/// How an answer ended, where it ended well.
///
/// # Errors
/// An answer that could not go on, or was left without an end.
pub(crate) fn outcome(ended: Option<Ended>) -> Result<Ended, ApiError> {
    let ended = ended.ok_or_else(choices::broken)?;
    choices::failure(&ended).map_or(Ok(ended), Err)
}
