//! How a command fails, and the exit code that says whose mistake it was.

use std::process::ExitCode;

use causeway_ledger::escaped;

/// A failure and whose it is.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The caller's mistake: exit code 2.
    Caller(anyhow::Error),
    /// The world's failure, or a bad model file: exit code 1.
    World(anyhow::Error),
    /// A comparison that found a difference, already printed: exit code 1.
    Unequal,
    /// Whoever reads the output went away (a closed pipe): exit code 0, nothing to say.
    ReaderGone,
}

impl Failure {
    /// Wraps an error of the caller's making.
    pub(crate) fn caller(error: impl Into<anyhow::Error>) -> Self {
        Self::Caller(error.into())
    }

    /// Wraps an error of the world's making.
    pub(crate) fn world(error: impl Into<anyhow::Error>) -> Self {
        Self::World(error.into())
    }

    /// Wraps an error that knows whose mistake it is.
    pub(crate) fn of(error: impl Into<anyhow::Error>, is_callers_mistake: bool) -> Self {
        if is_callers_mistake { Self::caller(error) } else { Self::world(error) }
    }

    /// Prints the one sentence, if there is one, to stderr.
    pub(crate) fn print(&self) {
        if let Self::Caller(error) | Self::World(error) = self {
            eprintln!("causeway: {}", sentence(error));
        }
    }

    /// The one sentence; empty where there is nothing to say.
    pub(crate) fn said(&self) -> String {
        match self {
            Self::Caller(error) | Self::World(error) => sentence(error),
            Self::Unequal | Self::ReaderGone => String::new(),
        }
    }

    /// The same failure, and what was done as it came about.
    pub(crate) fn within(self, what: String) -> Self {
        match self {
            Self::Caller(error) => Self::Caller(error.context(what)),
            Self::World(error) => Self::World(error.context(what)),
            other => other,
        }
    }

    /// The exit code: 2 for the caller's mistake, 1 for the world's failure.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Caller(_) => 2,
            Self::World(_) | Self::Unequal => 1,
            Self::ReaderGone => 0,
        })
    }
}

/// An error and its causes, each said once.
fn sentence(error: &anyhow::Error) -> String {
    // Some causes draw a picture below their first line, and some quote a file's own words, which
    // may not drive the reader's terminal.
    let first_line = |text: String| escaped(text.lines().next().unwrap_or_default());
    let mut told = String::new();
    let mut last = String::new();
    for cause in error.chain().map(|cause| first_line(cause.to_string())) {
        // Errors that are told to clients by themselves have their cause in their own words.
        if !last.ends_with(&cause) {
            let colon = if told.is_empty() { "" } else { ": " };
            told.push_str(colon);
            told.push_str(&cause);
        }
        last = cause;
    }
    told
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::ReaderGone;
        }
        let is_full = error.kind() == std::io::ErrorKind::StorageFull;
        let error = anyhow::Error::from(error);
        Self::World(if is_full { error.context("the output cannot be written") } else { error })
    }
}

/// Arguments that cannot be read, in one sentence without the page about usage.
pub(crate) fn arguments(error: &clap::Error) -> Failure {
    let page = error.render().to_string();
    let page = page.strip_prefix("error: ").unwrap_or(&page);
    let end = ["\n\nUsage:", "\n\nFor more information"].map(|tail| page.find(tail));
    let end = end.into_iter().flatten().min().unwrap_or(page.len());
    let lines = page[..end].lines().map(str::trim).filter(|line| !line.is_empty());
    let sentence = lines.collect::<Vec<_>>().join(" ").replace(" tip: ", "; tip: ");
    Failure::Caller(anyhow::anyhow!("{sentence}"))
}

/// What every command returns.
pub(crate) type Outcome = Result<(), Failure>;

#[cfg(test)]
mod tests;
