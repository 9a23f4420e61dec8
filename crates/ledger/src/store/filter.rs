//! Which records a list or an export takes.

/// Takes every record that meets all conditions that are set; newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// The model's name, or the beginning of its weights' hash.
    pub model: Option<String>,
    /// The policy's name, or the beginning of its hash.
    pub policy: Option<String>,
    /// The stop reason's name.
    pub stop: Option<String>,
    /// The id under which the server answered.
    pub request_id: Option<String>,
    /// Who asked.
    pub owner: Option<String>,
    /// The conversation.
    pub session: Option<String>,
    /// Scheduled at this time or later, in milliseconds from 1970-01-01 UTC.
    pub since_unix_ms: Option<u64>,
    /// At most so many.
    pub limit: Option<usize>,
}
