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
            ToolEvent::Call(ToolCall { name, arguments }) => {
                let (index, id) = (self.count, format!("{}_{}", self.id, self.count));
                self.count += 1;
                let function = json!({ "name": name, "arguments": arguments });
                let call =
                    json!({ "index": index, "id": id, "type": "function", "function": function });
                json!({ "tool_calls": [call] })
            }
        };
        events.into_iter().map(delta).collect()
    }

    /// The whole message's content and calls.
    pub(super) fn whole(mut self, text: &str) -> (Value, Vec<Value>) {
        let mut deltas = self.feed(text);
        deltas.extend(self.finish());
        let (mut content, mut calls) = (String::new(), Vec::new());
        for mut delta in deltas {
            content.push_str(delta["content"].as_str().unwrap_or_default());
            if let Some(mut call) = delta["tool_calls"].as_array_mut().and_then(Vec::pop) {
                call.as_object_mut().map(|call| call.remove("index"));
                calls.push(call);
            }
        }
        let content =
            if content.is_empty() && !calls.is_empty() { Value::Null } else { json!(content) };
        (content, calls)
    }
}
