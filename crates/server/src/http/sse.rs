//! Server-sent events: one line of JSON each, comments as signs of life.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_core::Stream;
use hyper::body::Bytes;
use serde_json::Value;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::ask::Answering;
use crate::event::Event;
use crate::outbox::Gone;

/// Lines that wait for the socket; beyond it the writer waits, and answers are joined behind it.
const LINES_MAX: usize = 8;

/// The writing end of a stream.
#[derive(Debug, Clone)]
pub(crate) struct Sse(Sender<Bytes>);

/// The reading end: a response's body.
#[derive(Debug)]
struct Lines(Receiver<Bytes>);

/// A stream and the response that carries it.
#[must_use]
pub(crate) fn stream() -> (Sse, Response) {
    let (sender, lines) = channel(LINES_MAX);
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        // Proxies that buffer would hold every token back.
        (header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (Sse(sender), (headers, Body::from_stream(Lines(lines))).into_response())
}

impl Sse {
    /// One event without a name.
    ///
    /// # Errors
    /// A reader that is gone.
    pub(crate) async fn send(&self, value: &Value) -> Result<(), Gone> {
        self.event(None, value).await
    }

    /// One event, with a name where the API has names.
    ///
    /// # Errors
    /// A reader that is gone.
    pub(crate) async fn event(&self, name: Option<&str>, value: &Value) -> Result<(), Gone> {
        let name = name.map_or_else(String::new, |name| format!("event: {name}\n"));
        self.line(format!("{name}data: {value}\n\n")).await
    }

    /// OpenAI's last line.
    ///
    /// # Errors
    /// A reader that is gone.
    pub(crate) async fn done(&self) -> Result<(), Gone> {
        self.line("data: [DONE]\n\n".to_owned()).await
    }

    /// The next event of an answer; while there is none, a comment from time to time says that
    /// the connection lives. `None` where no more will come.
    ///
    /// # Errors
    /// A reader that is gone.
    pub(crate) async fn next(
        &self,
        answering: &mut Answering,
        keep_alive: Duration,
    ) -> Result<Option<(u32, Event)>, Gone> {
        loop {
            tokio::select! {
                biased;
                event = answering.events.recv() => return Ok(event),
                () = self.0.closed() => return Err(Gone),
                () = tokio::time::sleep(keep_alive) => {
                    self.line(": keep-alive\n\n".to_owned()).await?;
                }
            }
        }
    }

    async fn line(&self, line: String) -> Result<(), Gone> {
        self.0.send(Bytes::from(line)).await.map_err(|_| Gone)
    }
}

impl Stream for Lines {
    type Item = Result<Bytes, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|line| line.map(Ok))
    }
}
