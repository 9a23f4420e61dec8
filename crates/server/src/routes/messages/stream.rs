//! A message as a stream of named events.

use std::sync::Arc;

use serde_json::{Value, json};

use super::object;
use crate::ask::Answering;
use crate::error::ApiError;
use crate::event::{Ended, Event, Part};
use crate::http::sse::Sse;
use crate::outbox::Gone;
use crate::routes::choices::{self, Delivery};
use crate::routes::segments::{self, Kind, Segment, Segments};
use crate::state::State;

/// A message on its way out.
pub(super) struct Events {
    pub(super) answering: Answering,
    pub(super) delivery: Delivery,
    pub(super) sse: Sse,
    pub(super) state: Arc<State>,
    pub(super) segments: Segments,
}

impl Events {
    /// Writes the message to its end.
    ///
    /// # Errors
    /// A reader that is gone.
    pub(super) async fn write(mut self) -> Result<(), Gone> {
        let begun = object::begun(&self.answering);
        self.say("message_start", json!({ "message": begun })).await?;
        let mut ended = None;
        while let Some((_, event)) =
            self.sse.next(&mut self.answering, self.state.wire.keep_alive).await?
        {
            match event {
                Event::Prefilled { computed, known } => {
                    if self.delivery.returns_progress {
                        let prefill = json!({ "computed": computed, "known": known });
                        self.say("ping", json!({ "causeway": { "prefill": prefill } })).await?;
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
            let is_new = self.segments.is_change(piece.kind);
            if is_new {
                self.close().await?;
                self.open(&piece).await?;
            }
            let index = self.segments.all().len() - usize::from(!is_new);
            let delta = match piece.kind {
                Kind::Reasoning => json!({ "type": "thinking_delta", "thinking": piece.text }),
                Kind::Text => json!({ "type": "text_delta", "text": piece.text }),
                Kind::Call => json!({ "type": "input_json_delta", "partial_json": piece.text }),
            };
            self.say("content_block_delta", json!({ "index": index, "delta": delta })).await?;
            self.segments.push(piece);
        }
        Ok(())
    }

    /// Begins the next block, that of this piece.
    async fn open(&self, piece: &Segment) -> Result<(), Gone> {
        let index = self.segments.all().len();
        let Segment { kind, id, name, .. } = piece.clone();
        let block = object::block(&Segment { kind, id, name, ..segments::empty() });
        self.say("content_block_start", json!({ "index": index, "content_block": block })).await
    }

    /// Ends the block that is open, where one is.
    async fn close(&self) -> Result<(), Gone> {
        let Some((index, segment)) = self.segments.last() else { return Ok(()) };
        if segment.kind == Kind::Reasoning {
            let delta = json!({ "type": "signature_delta", "signature": "" });
            self.say("content_block_delta", json!({ "index": index, "delta": delta })).await?;
        }
        self.say("content_block_stop", json!({ "index": index })).await
    }

    async fn finish(mut self, ended: &Ended) -> Result<(), Gone> {
        let rest = self.segments.rest();
        self.pieces(rest).await?;
        if self.segments.lacks_text() {
            self.close().await?;
            self.open(&segments::empty()).await?;
            self.segments.push(segments::empty());
        }
        self.close().await?;
        let (reason, sequence) =
            object::stop(&self.answering, &ended.stop, self.segments.has_calls());
        let mut event = json!({
            "delta": { "stop_reason": reason, "stop_sequence": sequence },
            "usage": object::usage(ended),
        });
        if self.delivery.extends {
            event["causeway"] = choices::extension(&self.answering, &[(0, ended)]);
        }
        self.say("message_delta", event).await?;
        self.say("message_stop", json!({})).await
    }

    async fn fail(self, error: &ApiError) -> Result<(), Gone> {
        self.sse.event(Some("error"), &object::error(error)).await
    }

    /// Sends an event under its name.
    async fn say(&self, name: &str, mut event: Value) -> Result<(), Gone> {
        event["type"] = json!(name);
        self.sse.event(Some(name), &event).await
    }
}
