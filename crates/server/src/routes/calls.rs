//! Calls of tools in an answer, told apart from its text as it comes.

use causeway_session::{ToolCall, ToolEvent, ToolParser};

use crate::ask::Answering;

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Said {
    Text(String),
    Call(Called),
}

/// A call, under an id of its own.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Called {
    pub(super) id: String,
    pub(super) name: String,
    /// A JSON object without white space.
    pub(super) arguments: String,
}

/// The calls of one answer on their way out.
#[derive(Debug)]
pub(super) struct Calls {
    /// `None` where no tool may be called, and once the answer has ended.
    parser: Option<ToolParser>,
    /// What the ids of the calls begin with.
    id: String,
    count: usize,
}

impl Calls {
    /// The calls of one choice of a request, whose ids begin with `prefix`.
    pub(super) fn new(prefix: &str, answering: &Answering, choice: usize) -> Self {
        let tail = answering.id.rsplit('-').next().unwrap_or(&answering.id);
        let id = format!("{prefix}_{tail}_{choice}");
        Self { parser: answering.tools.map(ToolParser::new), id, count: 0 }
    }

    /// How many calls came.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Whether calls are told from text at all.
    pub(super) fn may_come(&self) -> bool {
        self.parser.is_some()
    }

    /// Takes the next text of the answer: what of it is decided.
    pub(super) fn feed(&mut self, text: String) -> Vec<Said> {
        match &mut self.parser {
            None if text.is_empty() => Vec::new(),
            None => vec![Said::Text(text)],
            Some(parser) => {
                let events = parser.feed(text.as_bytes());
                self.said(events)
            }
        }
    }

    /// What was still waiting for its end.
    pub(super) fn finish(&mut self) -> Vec<Said> {
        let events = self.parser.take().map(ToolParser::finish).unwrap_or_default();
        self.said(events)
    }

    fn said(&mut self, events: Vec<ToolEvent>) -> Vec<Said> {
        let said = |event| match event {
            ToolEvent::Text(text) => Said::Text(text),
            ToolEvent::Call(ToolCall { name, arguments }) => {
                let id = format!("{}_{}", self.id, self.count);
                self.count += 1;
                Said::Call(Called { id, name, arguments })
            }
        };
        events.into_iter().map(said).collect()
    }
}
