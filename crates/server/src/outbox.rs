//! Delivery to a reader who may be slow: what waits is one part that grows, never a queue.

use std::time::Duration;

use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

use crate::event::{Event, Part};

/// Events of one request that wait in the channel; beyond it, parts are joined into one.
pub(crate) const EVENTS_MAX: usize = 32;
/// How long an answer that is complete waits for a reader who takes nothing.
pub(crate) const STALL_MAX: Duration = Duration::from_secs(60);

/// The reader is gone, or takes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone;

/// One choice's way to its reader. What waits is bounded by the answer itself.
#[derive(Debug)]
pub(crate) struct Outbox {
    choice: u32,
    sender: Sender<(u32, Event)>,
    pending: Part,
}

impl Outbox {
    /// An outbox of one of several choices.
    #[must_use]
    pub(crate) fn new(choice: u32, sender: Sender<(u32, Event)>) -> Self {
        Self { choice, sender, pending: Part::default() }
    }

    /// Which of the parallel choices it is of.
    #[must_use]
    pub(crate) fn choice(&self) -> u32 {
        self.choice
    }

    /// Sends a part now, or joins it to what waits.
    pub(crate) fn push(&mut self, part: Part) {
        self.pending.append(part);
        self.flush();
    }

    /// Sends what waits, where there is room for it.
    pub(crate) fn flush(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let event = Event::Part(std::mem::take(&mut self.pending));
        // What a reader who is gone would have read goes with it.
        if let Err(TrySendError::Full((_, Event::Part(part)))) =
            self.sender.try_send((self.choice, event))
        {
            self.pending = part;
        }
    }

    /// Sends what may be missed where there is room for it: how far a prompt is.
    pub(crate) fn hint(&self, event: Event) {
        let _ = self.sender.try_send((self.choice, event));
    }

    /// Whether a part waits for room.
    #[must_use]
    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Waits until there is room for what waits.
    ///
    /// # Errors
    /// A reader that is gone.
    pub(crate) async fn room(&self) -> Result<(), Gone> {
        self.sender.reserve().await.map(drop).map_err(|_| Gone)
    }

    /// Waits until the reader is gone.
    pub(crate) async fn closed(&self) {
        self.sender.closed().await;
    }

    /// Sends what waits and the last event.
    ///
    /// # Errors
    /// A reader that is gone, or that took nothing for `STALL_MAX`.
    pub(crate) async fn finish(mut self, last: Event) -> Result<(), Gone> {
        let rest = async {
            // Other choices send here too, so that the room may be gone again.
            while self.has_pending() {
                self.room().await?;
                self.flush();
            }
            self.sender.send((self.choice, last)).await.map_err(|_| Gone)
        };
        tokio::time::timeout(STALL_MAX, rest).await.unwrap_or(Err(Gone))
    }
}
