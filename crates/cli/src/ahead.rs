//! What a pass computes beyond the newest token: no bit of any answer depends on it.

use causeway_engine::{Drafts, Limits};

/// Flags of every command that decodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::Args)]
pub(crate) struct AheadFlags {
    /// Give each token that the form leaves no choice about a pass of its own, and draft nothing;
    /// changes no bit of any answer.
    #[arg(long)]
    no_fast_forward: bool,
    /// Whose next tokens are looked up in what they read, and computed beside the newest one
    /// while few answers decode; changes no bit of any answer.
    #[arg(long, value_name = "WHOSE", value_enum, default_value_t)]
    drafts: Whose,
}

/// The answers that are drafted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
enum Whose {
    /// Nobody's: each token that is chosen has a pass of its own
    Off,
    /// Those that are held to a form
    #[default]
    Forms,
    /// Everyone's
    All,
}

impl AheadFlags {
    /// The limits with these choices.
    pub(crate) fn over(self, limits: Limits) -> Limits {
        let drafts = match self.drafts {
            Whose::Off => Drafts::Off,
            Whose::Forms => Drafts::Forms,
            Whose::All => Drafts::All,
        };
        Limits { fast_forward: !self.no_fast_forward, drafts, ..limits }
    }
}
