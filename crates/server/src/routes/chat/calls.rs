//! Calls of tools in a chat's answers, as OpenAI writes them.

use causeway_session::{ToolCall, ToolEvent, ToolFormat, ToolParser};
use serde_json::{Value, json};

/// The calls of one answer on their way out.
pub(super) struct Calls {
    /// `None` where no tool may be called, and once the answer has ended.
    parser: Option<ToolParser>,
    /// What the ids of the calls begin with.
    id: String,
    count: usize,
}

impl Calls {
    /// The calls of one choice of a request.
    pub(super) fn new(format: Option<ToolFormat>, request: &str, choice: usize) -> Self {
        let tail = request.rsplit('-').next().unwrap_or(request);
        let id = format!("call_{tail}_{choice}");
        Self { parser: format.map(ToolParser::new), id, count: 0 }
    }

    /// Whether any call came.
    pub(super) fn any(&self) -> bool {
        self.count > 0
    }

    /// Takes the next text of the answer: deltas of the message, as they are decided.
    pub(super) fn feed(&mut self, text: &str) -> Vec<Value> {
        match &mut self.parser {
            None if text.is_empty() => Vec::new(),
            None => vec![json!({ "content": text })],
            Some(parser) => {
                let events = parser.feed(text.as_bytes());
                self.deltas(events)
            }
        }
    }

    /// What was still waiting for its end.
    pub(super) fn finish(&mut self) -> Vec<Value> {
        let events = self.parser.take().map(ToolParser::finish).unwrap_or_default();
        self.deltas(events)
    }

    fn deltas(&mut self, events: Vec<ToolEvent>) -> Vec<Value> {
        let delta = |event| match event {
            ToolEvent::Text(text) => json!({ "content": text }),
            ToolEvent::Call(call) => {
                let index = self.count;
                let mut call = self.told(call);
                call["index"] = json!(index);
                json!({ "tool_calls": [call] })
            }
        };
        events.into_iter().map(delta).collect()
    }

    fn told(&mut self, ToolCall { name, arguments }: ToolCall) -> Value {
        let id = format!("{}_{}", self.id, self.count);
        self.count += 1;
        let function = json!({ "name": name, "arguments": arguments });
        json!({ "id": id, "type": "function", "function": function })
    }

    /// The whole message's content, null where there are calls alone, and its calls.
    pub(super) fn whole(mut self, text: &str) -> (Value, Vec<Value>) {
        let Some(mut parser) = self.parser.take() else { return (json!(text), Vec::new()) };
        let mut events = parser.feed(text.as_bytes());
        events.extend(parser.finish());
        let (mut content, mut calls) = (String::new(), Vec::new());
        for event in events {
            match event {
                ToolEvent::Text(text) => content.push_str(&text),
                ToolEvent::Call(call) => calls.push(self.told(call)),
            }
        }
        let is_calls_alone = content.is_empty() && !calls.is_empty();
        (if is_calls_alone { Value::Null } else { json!(content) }, calls)
    }
}
