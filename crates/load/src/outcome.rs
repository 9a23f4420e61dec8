//! What became of one request, with every time that was seen.

use serde_json::{Value, json};

use crate::plan::Planned;

/// Tokens as the server counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    pub prompt_tokens: u64,
    /// Of the prompt, those whose keys and values were there already; none if it does not say.
    pub cached_tokens: Option<u64>,
    pub output_tokens: u64,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The stream came to its `[DONE]`.
    Complete,
    /// The client went away, as planned.
    HungUp,
    /// No connection.
    NotConnected,
    /// The connection broke, before or inside the answer.
    Broken,
    /// A status other than 200.
    Refused { status: u16 },
    /// An error as an event of the stream.
    ErrorEvent,
    /// The answer is no stream of events that can be read.
    Unreadable,
    /// The stream ended in good order before its `[DONE]`.
    CutOff,
    /// Longer than the time allowed, from the scheduled arrival.
    TimedOut,
}

impl Ending {
    /// The name of a failure; none for an answer that is whole and a client that went away.
    pub fn failure(self) -> Option<String> {
        Some(match self {
            Self::Complete | Self::HungUp => return None,
            Self::NotConnected => "connect".to_owned(),
            Self::Broken => "reset".to_owned(),
            Self::Refused { status } => format!("http_{status}"),
            Self::ErrorEvent => "error_event".to_owned(),
            Self::Unreadable => "bad_stream".to_owned(),
            Self::CutOff => "cut_off".to_owned(),
            Self::TimedOut => "timeout".to_owned(),
        })
    }
}

/// One request and what came back; times are microseconds since the start of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub planned: Planned,
    pub scheduled_us: u64,
    /// When the client began to connect.
    pub sent_us: u64,
    /// When each piece of text came.
    pub chunks_us: Vec<u64>,
    pub ended_us: u64,
    pub ending: Ending,
    pub answer: Answer,
}

/// What the server said, times aside.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    pub usage: Option<Usage>,
    pub finish_reason: Option<String>,
    /// SHA-256 of the text, its first 16 bytes in hexadecimal; equal for equal answers.
    pub text_sha256: String,
    /// What the server said was wrong.
    pub message: Option<String>,
    pub retry_after_s: Option<u64>,
}

impl Outcome {
    /// Actual minus scheduled sending: what the client itself adds.
    pub fn lag_us(&self) -> u64 {
        self.sent_us.saturating_sub(self.scheduled_us)
    }

    /// From the scheduled arrival to the first text.
    pub fn ttft_us(&self) -> Option<u64> {
        Some(self.chunks_us.first()?.saturating_sub(self.scheduled_us))
    }

    /// The gaps between pieces of text.
    pub fn gaps_us(&self) -> impl Iterator<Item = u64> {
        self.chunks_us.windows(2).map(|pair| pair[1].saturating_sub(pair[0]))
    }

    /// From the scheduled arrival to the end.
    pub fn total_us(&self) -> u64 {
        self.ended_us.saturating_sub(self.scheduled_us)
    }

    /// Tokens of the answer: the server's count, or the pieces of text where it gives none.
    pub fn output_tokens(&self) -> u64 {
        self.answer.usage.map_or(self.chunks_us.len() as u64, |usage| usage.output_tokens)
    }

    /// (last − first) / (n − 1), in microseconds, for answers of two tokens and more.
    #[expect(clippy::cast_precision_loss, reason = "times and counts are far below 2^53")]
    pub fn tpot_us(&self) -> Option<f64> {
        let (first, last) = (self.chunks_us.first()?, self.chunks_us.last()?);
        let gaps = self.output_tokens().checked_sub(1).filter(|&gaps| gaps > 0)?;
        Some((last - first) as f64 / gaps as f64)
    }

    /// Whether the answer came whole.
    pub fn is_complete(&self) -> bool {
        self.ending == Ending::Complete
    }

    /// The outcome as one JSON object; times in milliseconds.
    pub fn to_json(&self) -> Value {
        let Self { planned, scheduled_us, sent_us, chunks_us, ended_us, ending, answer } = self;
        let Answer { usage, finish_reason, text_sha256, message, retry_after_s } = answer;
        let ms = |us: u64| us_as_ms(us);
        json!({
            "index": planned.index,
            "prompt_words": planned.prompt_words,
            "output_tokens_asked": planned.output_tokens,
            "scheduled_ms": ms(*scheduled_us),
            "lag_ms": ms(self.lag_us()),
            "sent_ms": ms(*sent_us),
            "ended_ms": ms(*ended_us),
            "ending": ending.failure().unwrap_or_else(|| {
                if self.is_complete() { "complete".to_owned() } else { "hung_up".to_owned() }
            }),
            "ttft_ms": self.ttft_us().map(ms),
            "tpot_ms": self.tpot_us().map(|us| us / 1e3),
            "total_ms": ms(self.total_us()),
            "chunks": chunks_us.len(),
            "itl_ms": self.gaps_us().map(ms).collect::<Vec<_>>(),
            "prompt_tokens": usage.map(|usage| usage.prompt_tokens),
            "cached_tokens": usage.and_then(|usage| usage.cached_tokens),
            "output_tokens": usage.map(|usage| usage.output_tokens),
            "finish_reason": finish_reason,
            "text_sha256": text_sha256,
            "message": message,
            "retry_after_s": retry_after_s,
        })
    }
}

/// Milliseconds of a time in microseconds.
#[expect(clippy::cast_precision_loss, reason = "times are far below 2^53 microseconds")]
pub(crate) fn us_as_ms(us: u64) -> f64 {
    us as f64 / 1e3
}

#[cfg(test)]
mod tests;
