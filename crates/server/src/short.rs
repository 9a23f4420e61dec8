//! Names of a request as a sentence shows them, for they may be as long as the body.

/// Most characters of a name that are shown.
const CHARS_MAX: usize = 64;

/// A name, or its beginning and an ellipsis.
pub(crate) fn short(name: &str) -> String {
    match name.char_indices().nth(CHARS_MAX) {
        None => name.to_owned(),
        Some((end, _)) => format!("{}…", &name[..end]),
    }
}
