//! Strings looked for in text that is still coming.

/// What a search over the text so far can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// `needle` stands at bytes `start..end`; no needle begins earlier.
    Match {
        needle: usize,
        start: usize,
        end: usize,
    },
    /// From `start` on the text may become a needle, and nothing earlier can.
    Partial {
        start: usize,
    },
    Nothing,
}

/// The leftmost of several needles, the shortest of those that begin together.
///
/// A needle counts only if it ends behind byte `exempt`. With `is_whole`, no text follows, so
/// that half a needle is none. Where an earlier needle is still possible, a later one that is
/// already whole has to wait: so the result does not depend on how the text was cut.
pub(crate) fn find(text: &str, needles: &[String], exempt: usize, is_whole: bool) -> Found {
    let bytes = text.as_bytes();
    for start in 0..bytes.len() {
        let rest = &bytes[start..];
        let mut shortest: Option<usize> = None;
        let mut is_partial = false;
        for (index, needle) in needles.iter().enumerate() {
            let needle = needle.as_bytes();
            if rest.starts_with(needle) {
                let is_shorter = shortest.is_none_or(|found| needle.len() < needles[found].len());
                if start + needle.len() > exempt && is_shorter {
                    shortest = Some(index);
                }
            } else if !is_whole && needle.starts_with(rest) {
                is_partial = true;
            }
        }
        if let Some(needle) = shortest {
            return Found::Match { needle, start, end: start + needles[needle].len() };
        }
        if is_partial {
            return Found::Partial { start };
        }
    }
    Found::Nothing
}
