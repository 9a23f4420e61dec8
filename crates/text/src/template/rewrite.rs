//! What is changed in a template's source before it is parsed, and the literals found in it.

/// A source that minijinja can parse, and the string literals of its tags.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rewritten {
    pub(super) source: String,
    pub(super) literals: Vec<String>,
    /// Words and signs of the longest tag, each string one: its expression is no deeper.
    pub(super) tag_words: usize,
    /// Tags that begin another branch of a condition, each nested in the one before.
    pub(super) branches: usize,
}

/// Turns `{% generation %}` into a block that only holds its body.
///
/// transformers uses the tag to find the assistant's tokens; its body prints as it is. The block
/// chosen has a scope of its own, as the tag's has, and keeps the white space control signs.
pub(super) fn rewrite(source: &str) -> Rewritten {
    let mut rewritten =
        Rewritten { source: String::new(), literals: Vec::new(), tag_words: 0, branches: 0 };
    let mut rest = source;
    while let Some(start) = rest.find('{') {
        let (before, tag) = rest.split_at(start);
        rewritten.source.push_str(before);
        let length = match tag.as_bytes().get(1) {
            Some(b'#') => tag.find("#}").map_or(tag.len(), |end| end + 2),
            Some(b'%') => match word_of(tag) {
                "raw" => raw_length(tag),
                word => {
                    rewritten.branches += usize::from(word == "elif");
                    tag_length(tag, "%}", &mut rewritten)
                }
            },
            Some(b'{') => tag_length(tag, "}}", &mut rewritten),
            _ => 1,
        };
        let (tag, after) = tag.split_at(length);
        rewritten.source.push_str(&replaced(tag));
        rest = after;
    }
    rewritten.source.push_str(rest);
    rewritten
}

/// The first word of a block tag.
fn word_of(tag: &str) -> &str {
    let inside = tag.strip_prefix("{%").unwrap_or("");
    let inside = inside.trim_start_matches(['-', '+']).trim_start();
    let end = inside.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    &inside[..end.unwrap_or(inside.len())]
}

fn replaced(tag: &str) -> String {
    match word_of(tag) {
        "generation" => tag.replacen("generation", "with", 1),
        "endgeneration" => tag.replacen("endgeneration", "endwith", 1),
        _ => tag.to_owned(),
    }
}

/// Bytes up to the end of `{% endraw %}`.
fn raw_length(tag: &str) -> usize {
    let mut at = 2;
    while let Some(found) = tag[at..].find("{%") {
        let start = at + found;
        if word_of(&tag[start..]) == "endraw" {
            return tag[start..].find("%}").map_or(tag.len(), |end| start + end + 2);
        }
        at = start + 2;
    }
    tag.len()
}

/// Bytes of a tag or an expression up to its end, which does not count inside a string or inside
/// brackets.
fn tag_length(tag: &str, end: &str, rewritten: &mut Rewritten) -> usize {
    let (mut at, mut words, mut open, mut in_word) = (2, 0, 0_i64, false);
    while at < tag.len() {
        let rest = &tag[at..];
        if open == 0 && rest.starts_with(end) {
            at += end.len();
            break;
        }
        let letter = rest.chars().next().unwrap_or_default();
        let continues = letter.is_alphanumeric() || letter == '_';
        let goes_on = letter.is_whitespace() || (in_word && continues);
        words += usize::from(!goes_on);
        in_word = continues;
        open += match letter {
            '(' | '[' | '{' => 1,
            ')' | ']' | '}' => -1,
            _ => 0,
        };
        if letter == '"' || letter == '\'' {
            let (literal, length) = literal(rest, letter);
            rewritten.literals.push(literal);
            at += length;
        } else {
            at += letter.len_utf8();
        }
    }
    rewritten.tag_words = rewritten.tag_words.max(words);
    at
}

/// The string that begins `text`, and its length in the source with both quotes.
fn literal(text: &str, quote: char) -> (String, usize) {
    let mut string = String::new();
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some((_, 'n')) => string.push('\n'),
                Some((_, 't')) => string.push('\t'),
                Some((_, 'r')) => string.push('\r'),
                Some((_, other)) => string.push(other),
                None => break,
            },
            _ if letter == quote => return (string, at + 1),
            _ => string.push(letter),
        }
    }
    (string, text.len())
}

#[cfg(test)]
mod tests;
