//! Server-sent events out of bytes, however they are cut.

/// Most bytes of one event.
const EVENT_BYTES_MAX: usize = 4 << 20;

/// One event: what its lines carry, joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// The value of its `data` lines.
    Text(String),
    /// The value of an `error` line, which some servers send in place of data.
    Error(String),
}

/// Why bytes are no events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Beyond the size that is read.
    Long,
    /// Not UTF-8.
    Encoding,
}

/// Reads events as their bytes come.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    line: Vec<u8>,
    text: String,
    has_text: bool,
    error: Option<String>,
    /// The last byte ended a line as a carriage return, whose line feed may follow.
    ends_in_return: bool,
}

impl Decoder {
    /// The events that `bytes` complete.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Event>, Fault> {
        let mut events = Vec::new();
        for &byte in bytes {
            let is_second_half = byte == b'\n' && self.ends_in_return;
            self.ends_in_return = byte == b'\r';
            match byte {
                b'\n' if is_second_half => {}
                b'\n' | b'\r' => events.extend(self.end_line()?),
                _ if self.line.len() + self.text.len() >= EVENT_BYTES_MAX => {
                    return Err(Fault::Long);
                }
                _ => self.line.push(byte),
            }
        }
        Ok(events)
    }

    /// Takes a whole line; an empty one completes an event.
    fn end_line(&mut self) -> Result<Option<Event>, Fault> {
        let line = std::mem::take(&mut self.line);
        let line = std::str::from_utf8(&line).map_err(|_| Fault::Encoding)?;
        let line = line.strip_prefix('\u{feff}').unwrap_or(line);
        if line.is_empty() {
            let text = std::mem::take(&mut self.text);
            let has_text = std::mem::take(&mut self.has_text);
            let error = self.error.take().map(Event::Error);
            return Ok(error.or(has_text.then_some(Event::Text(text))));
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.has_text {
                    self.text.push('\n');
                }
                self.has_text = true;
                self.text.push_str(value);
            }
            "error" => self.error = Some(value.to_owned()),
            // Comments (an empty field) keep connections alive; event names and ids say nothing
            // that the payload does not.
            _ => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
