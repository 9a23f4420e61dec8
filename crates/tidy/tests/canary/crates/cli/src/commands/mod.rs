//! One command.

enum Command {
    /// Has one option.
    Run(Run),
}

struct Run {
    record: String,
}
