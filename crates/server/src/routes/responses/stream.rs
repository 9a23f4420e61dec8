//! A response as a stream of numbered events.

use std::sync::Arc;

use serde_json::{Value, json};

use super::object::{self, Repeated};
use crate::ask::Answering;
use crate::error::ApiError;
use crate::event::{Ended, Event, Part};
use crate::http::sse::Sse;
use crate::outbox::Gone;
use crate::routes::choices::Delivery;
use crate::routes::segments::{self, Kind, Segment, Segments};
use crate::state::State;

/// A response on its way out.
pub(super) struct Events {
    pub(super) answering: Answering,
    pub(super) delivery: Delivery,
    pub(super) repeated: Repeated,
    pub(super) sse: Sse,
    pub(super) state: Arc<State>,
    pub(super) segments: Segments,
    /// Of the next event.
    pub(super) number: u64,
}

impl Events {
    /// Writes the response to its end.
    ///
    /// # Errors
    /// A reader that is gone.
    pub(super) async fn write(mut self) -> Result<(), Gone> {
        let begun = self.repeated.begun(&self.answering);
        self.say("response.created", json!({ "response": begun })).await?;
        self.say("response.in_progress", json!({ "response": begun })).await?;
        let mut ended = None;
        while let Some((_, event)) =
            self.sse.next(&mut self.answering, self.state.wire.keep_alive).await?
        {
            match event {
                Event::Prefilled { computed, known } => {
                    if self.delivery.returns_progress {
                        let mut response = begun.clone();
                        let prefill = json!({ "computed": computed, "known": known });
                        response["causeway"] = json!({ "prefill": prefill });
                        self.say("response.in_progress", json!({ "response": response })).await?;
                    }
                }
                Event::Part(part) => self.part(part).await?,
                Event::Ended(end) => ended = Some(*end),
            }
        }
        match segments::outcome(ended) {
            Ok(ended) => self.finish(&ended).await,
            Err(error) => self.fail(&error).await,
        }
    }

    async fn part(&mut self, part: Part) -> Result<(), Gone> {
        let pieces = self.segments.pieces(part, self.delivery.include_reasoning);
        self.pieces(pieces).await
    }

    async fn pieces(&mut self, pieces: Vec<Segment>) -> Result<(), Gone> {
        for piece in pieces {
            if self.segments.is_change(piece.kind) {
                self.close("completed").await?;
                self.open(&piece).await?;
            }
            self.delta(&piece).await?;
            self.segments.push(piece);
        }
        Ok(())
    }

    /// Begins the next item, that of this piece, and its one part; a call has none.
    async fn open(&mut self, piece: &Segment) -> Result<(), Gone> {
        let (index, kind) = (self.segments.all().len(), piece.kind);
        let item = object::opened(&self.answering, index, piece);
        let added = json!({ "output_index": index, "item": item });
        self.say("response.output_item.added", added).await?;
        if kind == Kind::Call {
            return Ok(());
        }
        let empty = Segment { kind, ..segments::empty() };
        let part = object::part(&self.answering, &empty);
        let added = self.placed(index, kind, json!({ "part": part }));
        self.say("response.content_part.added", added).await
    }

    async fn delta(&mut self, piece: &Segment) -> Result<(), Gone> {
        // Its segment is the last one, unless it is about to begin.
        let is_new = self.segments.is_change(piece.kind);
        let index = self.segments.all().len() - usize::from(!is_new);
        let mut delta = self.placed(index, piece.kind, json!({ "delta": piece.text }));
        let name = match piece.kind {
            Kind::Reasoning => "response.reasoning_text.delta",
            Kind::Text => {
                delta["logprobs"] = object::logprobs(&self.answering, &piece.tokens);
                "response.output_text.delta"
            }
            Kind::Call => "response.function_call_arguments.delta",
        };
        self.say(name, delta).await
    }

    /// Ends the item that is open, where one is.
    async fn close(&mut self, status: &str) -> Result<(), Gone> {
        let Some((index, segment)) = self.segments.last() else { return Ok(()) };
        let kind = segment.kind;
        let item = object::item(&self.answering, index, segment, status);
        if kind == Kind::Call {
            let words = json!({ "name": segment.name, "arguments": segment.text });
            let done = self.placed(index, kind, words);
            self.say("response.function_call_arguments.done", done).await?;
        } else {
            let mut done = self.placed(index, kind, json!({ "text": segment.text }));
            let part = object::part(&self.answering, segment);
            let name = if kind == Kind::Reasoning {
                "response.reasoning_text.done"
            } else {
                done["logprobs"] = part["logprobs"].clone();
                "response.output_text.done"
            };
            self.say(name, done).await?;
            let done = self.placed(index, kind, json!({ "part": part }));
            self.say("response.content_part.done", done).await?;
        }
        let done = json!({ "output_index": index, "item": item });
        self.say("response.output_item.done", done).await
    }

    async fn finish(mut self, ended: &Ended) -> Result<(), Gone> {
        let rest = self.segments.rest();
        self.pieces(rest).await?;
        if self.segments.lacks_text() {
            self.close("completed").await?;
            self.open(&segments::empty()).await?;
            self.segments.push(segments::empty());
        }
        let is_complete = object::status(&ended.stop).1.is_none();
        let (status, name) = if is_complete {
            ("completed", "response.completed")
        } else {
            ("incomplete", "response.incomplete")
        };
        self.close(status).await?;
        let completed_at = self.state.clock.unix_s();
        let answer = (&self.segments, ended);
        let response =
            self.repeated.ended(&self.answering, answer, completed_at, self.delivery.extends);
        self.say(name, json!({ "response": response })).await
    }

    async fn fail(mut self, error: &ApiError) -> Result<(), Gone> {
        let response = self.repeated.failed(&self.answering, &self.segments, &error.message);
        self.say("response.failed", json!({ "response": response })).await
    }

    /// An event about an item, or about its one part.
    fn placed(&self, index: usize, kind: Kind, mut event: Value) -> Value {
        event["item_id"] = json!(object::item_id(&self.answering, index, kind));
        event["output_index"] = json!(index);
        if kind != Kind::Call {
            event["content_index"] = json!(0);
        }
        event
    }

    /// Sends an event under its name and the next number.
    async fn say(&mut self, name: &str, mut event: Value) -> Result<(), Gone> {
        event["type"] = json!(name);
        event["sequence_number"] = json!(self.number);
        self.number += 1;
        self.sse.event(Some(name), &event).await
    }
}
