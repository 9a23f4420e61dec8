//! Stop strings: where the text of an answer ends, found as it comes.

use crate::find::{Found, find};

/// Most stop strings of one request.
pub const STOPS_MAX: usize = 64;
/// Most bytes of one stop string.
pub const STOP_BYTES_MAX: usize = 1024;

/// Stop strings that are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StopError {
    #[error("{count} stop strings are given, the limit is {limit}")]
    Count { count: usize, limit: usize },
    #[error("stop string {index} is empty")]
    Empty { index: usize },
    #[error("stop string {index} is {bytes} bytes long, the limit is {limit}")]
    Length { index: usize, bytes: usize, limit: usize },
}

impl StopError {
    /// Always: stop strings come with the request.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        true
    }
}

/// Text that can be shown, and the stop string that ended it, if one did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Emitted {
    pub text: String,
    /// Index of the stop string, as they were given.
    pub stopped: Option<usize>,
}

/// Watches a text for stop strings.
///
/// The text ends before the stop string that begins first; of those that begin together the
/// shortest is named. Only what may still become one is held back. What comes out does not
/// depend on how the text is cut, so streamed text equals buffered text.
#[derive(Debug, Clone)]
pub struct StopMatcher {
    stops: Vec<String>,
    held: String,
    /// Bytes of `held` in which a stop string does not count.
    exempt: usize,
    stopped: bool,
}

impl StopMatcher {
    /// A matcher for these stop strings; none at all is fine.
    ///
    /// # Errors
    /// Too many, an empty one, one that is too long.
    pub fn new(stops: &[String]) -> Result<Self, StopError> {
        if stops.len() > STOPS_MAX {
            return Err(StopError::Count { count: stops.len(), limit: STOPS_MAX });
        }
        for (index, stop) in stops.iter().enumerate() {
            if stop.is_empty() {
                return Err(StopError::Empty { index });
            }
            if stop.len() > STOP_BYTES_MAX {
                let (bytes, limit) = (stop.len(), STOP_BYTES_MAX);
                return Err(StopError::Length { index, bytes, limit });
            }
        }
        Ok(Self { stops: stops.to_vec(), held: String::new(), exempt: 0, stopped: false })
    }

    /// Takes the next text and gives what can be shown; after a stop, nothing more.
    pub fn push(&mut self, text: &str) -> Emitted {
        if self.stopped {
            return Emitted::default();
        }
        self.held.push_str(text);
        self.take(false)
    }

    /// Takes text of a token before `min_tokens`: a stop string that ends in it does not count.
    pub fn push_exempt(&mut self, text: &str) -> Emitted {
        if self.stopped {
            return Emitted::default();
        }
        self.held.push_str(text);
        self.exempt = self.held.len();
        self.take(false)
    }

    /// The rest, when no more text comes: half a stop string is text, and a whole one that had to
    /// wait for an earlier one counts.
    #[must_use]
    pub fn finish(mut self) -> Emitted {
        if self.stopped { Emitted::default() } else { self.take(true) }
    }

    fn take(&mut self, is_whole: bool) -> Emitted {
        match find(&self.held, &self.stops, self.exempt, is_whole) {
            Found::Match { needle, start, .. } => {
                self.stopped = true;
                self.held.truncate(start);
                Emitted { text: std::mem::take(&mut self.held), stopped: Some(needle) }
            }
            Found::Partial { start } => {
                let kept = self.held.split_off(start);
                self.exempt = self.exempt.saturating_sub(start);
                Emitted { text: std::mem::replace(&mut self.held, kept), stopped: None }
            }
            Found::Nothing => {
                self.exempt = 0;
                Emitted { text: std::mem::take(&mut self.held), stopped: None }
            }
        }
    }
}

#[cfg(test)]
mod tests;
