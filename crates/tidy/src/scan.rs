//! Rust source with its comments and literals blanked out, so that words mean code.

/// What the scanner stands in.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Code,
    Line,
    /// Block comments nest.
    Block(usize),
    /// A string; raw ones end at a quote with this many hashes.
    Text(Option<usize>),
}

/// The source with every comment, string and character blanked; lines keep their numbers.
pub(crate) fn code_of(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut code = String::with_capacity(source.len());
    let mut place = Place::Code;
    let mut at = 0;
    while at < chars.len() {
        let rest = &chars[at..];
        let (next, length) = match place {
            Place::Code => from_code(rest, at.checked_sub(1).map(|before| chars[before])),
            Place::Line if rest[0] == '\n' => (Place::Code, 1),
            Place::Block(1) if rest.starts_with(&['*', '/']) => (Place::Code, 2),
            Place::Block(depth) if rest.starts_with(&['*', '/']) => (Place::Block(depth - 1), 2),
            Place::Block(depth) if rest.starts_with(&['/', '*']) => (Place::Block(depth + 1), 2),
            Place::Text(None) if rest[0] == '\\' => (place, 2),
            Place::Text(None) if rest[0] == '"' => (Place::Code, 1),
            Place::Text(Some(hashes)) if ends_raw(rest, hashes) => (Place::Code, 1 + hashes),
            _ => (place, 1),
        };
        let is_code = place == Place::Code && next == Place::Code && length == 1;
        for &c in rest.iter().take(length) {
            code.push(if is_code || c == '\n' { c } else { ' ' });
        }
        place = next;
        at += length;
    }
    code
}

/// What begins at `rest`, which stands in code, and how many characters belong to it.
fn from_code(rest: &[char], before: Option<char>) -> (Place, usize) {
    let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    match rest {
        ['/', '/', ..] => (Place::Line, 2),
        ['/', '*', ..] => (Place::Block(1), 2),
        ['"', ..] => (Place::Text(None), 1),
        ['r', '#' | '"', ..] if !in_word || before == Some('b') => {
            let hashes = rest[1..].iter().take_while(|&&c| c == '#').count();
            if rest.get(1 + hashes) == Some(&'"') {
                (Place::Text(Some(hashes)), 2 + hashes)
            } else {
                (Place::Code, 1)
            }
        }
        // A character, not a lifetime: it closes within two characters or begins with a backslash.
        ['\'', '\\', _, tail @ ..] => {
            let length = tail.iter().position(|&c| c == '\'').map_or(3, |closing| closing + 4);
            (Place::Code, length)
        }
        ['\'', _, '\'', ..] => (Place::Code, 3),
        _ => (Place::Code, 1),
    }
}

fn ends_raw(rest: &[char], hashes: usize) -> bool {
    rest[0] == '"' && rest.len() > hashes && rest[1..=hashes].iter().all(|&c| c == '#')
}

/// Whether `text` contains `word` as a whole: no letter, digit or underscore goes on at an end of
/// the word that is one itself.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let [opens, closes] = [is_part(word.chars().next()), is_part(word.chars().next_back())];
    text.match_indices(word).any(|(at, _)| {
        let goes_before = opens && is_part(text[..at].chars().next_back());
        let goes_after = closes && is_part(text[at + word.len()..].chars().next());
        !goes_before && !goes_after
    })
}

#[cfg(test)]
mod tests;
