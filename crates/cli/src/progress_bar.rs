//! How far a download is, on one line of a terminal; two lines in all where stderr is a file.

use std::io::{IsTerminal as _, Write as _};

use causeway_models::Progress;

/// The download of one model.
#[derive(Debug)]
pub(crate) struct Bar {
    name: String,
    is_terminal: bool,
    is_announced: bool,
    /// What the line says, so that it is written only where it changes.
    shown: Option<(u64, u64)>,
}

impl Bar {
    pub(crate) fn new(name: String) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { name, is_terminal, is_announced: false, shown: None }
    }

    /// Says what is about to happen, in place of the bar's own first line.
    pub(crate) fn announce(&mut self, line: &str) {
        eprintln!("{line}");
        self.is_announced = true;
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        if self.shown.take().is_some() && self.is_terminal {
            eprint!("\r\x1b[K");
        }
    }
}

impl Progress for Bar {
    fn waiting(&mut self) {
        eprintln!("waiting for another pull to end");
    }

    fn at(&mut self, bytes: u64, bytes_total: u64) {
        let megabytes = bytes_total.div_ceil(1_000_000);
        if !self.is_terminal {
            if !std::mem::replace(&mut self.is_announced, true) {
                eprintln!("fetching {} ({megabytes} MB)", self.name);
            }
            return;
        }
        let percent = bytes.saturating_mul(100).checked_div(bytes_total).unwrap_or(100);
        let now = (percent, bytes / 1_000_000);
        if self.shown != Some(now) {
            self.shown = Some(now);
            eprint!("\r\x1b[K{}: {percent} %, {} of {megabytes} MB", self.name, now.1);
            // A line without an end is written when it is asked for; if it is not, nothing is lost.
            std::io::stderr().flush().ok();
        }
    }
}
