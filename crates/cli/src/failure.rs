//! How a command fails, and the exit code that says whose mistake it was.

use std::process::ExitCode;

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
            eprintln!("causeway: {error:#}");
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

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::ReaderGone;
        }
        Self::World(error.into())
    }
}

/// What every command returns.
pub(crate) type Outcome = Result<(), Failure>;
