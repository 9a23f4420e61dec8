//! Pre-tokenizers by name: where a byte-level vocabulary cuts text into words.

use std::ops::Range;

use regex::Regex;

use crate::error::VocabularyError;
use table::{ENTRIES, Edges, Entry, Rule};

mod table;

/// One pass over the words: what it looks for, and how it cuts what it finds.
#[derive(Debug)]
struct Cut {
    expression: Regex,
    manner: Manner,
}

/// How a match becomes words.
#[derive(Debug)]
enum Manner {
    /// It is one.
    Plain,
    /// It is one, and a run of white space leaves its last character to the next.
    Trims {
        /// White space that ends in a line break is another alternative's and stays whole.
        keeps_lines: bool,
    },
    /// White space becomes several.
    Ladder,
    /// Threes from the end.
    Threes(Edges),
}

/// Cuts text into words, in time linear in the text.
#[derive(Debug)]
pub(crate) struct PreTokenizer {
    cuts: Vec<Cut>,
    pub(crate) whole_words: bool,
}

/// Whether a byte-level vocabulary with this pre-tokenizer adds BOS where its file is silent.
pub(crate) fn adds_bos(name: &str) -> bool {
    find(name).is_some_and(|entry| entry.adds_bos)
}

/// Names that GGUF files know a pre-tokenizer by, one for each, those in common use first; each
/// with whether a word that is a token stays whole.
pub(crate) fn names() -> impl Iterator<Item = (&'static str, bool)> {
    let usual = ["llama-bpe", "qwen2", "gpt-2", "smollm", "gpt-4o", "tekken"];
    let usual = usual.into_iter().filter_map(|name| Some((name, find(name)?.whole_words)));
    usual.chain(ENTRIES.iter().map(|entry| (entry.names[0], entry.whole_words)))
}

fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.names.contains(&name))
}

impl PreTokenizer {
    /// The pre-tokenizer of that name.
    pub(crate) fn named(name: &str) -> Result<Self, VocabularyError> {
        let entry = find(name).ok_or_else(|| VocabularyError::PreTokenizer {
            name: name.to_owned(),
            known: ENTRIES.iter().map(|entry| entry.names.len()).sum(),
        })?;
        let cuts = entry.rules.iter().map(|rule| Cut::new(*rule)).collect();
        Ok(Self { cuts, whole_words: entry.whole_words })
    }

    /// The words of `text`, in order; together they are the whole text.
    pub(crate) fn words(&self, text: &str) -> Vec<Range<usize>> {
        let whole = 0..text.len();
        let mut words = if text.is_empty() { Vec::new() } else { vec![whole] };
        for cut in &self.cuts {
            let mut finer = Vec::with_capacity(words.len());
            for word in words {
                cut.apply(&text[word.clone()], word.start, &mut finer);
            }
            words = finer;
        }
        words
    }
}

impl Cut {
    fn new(rule: Rule) -> Self {
        let (expression, manner) = match rule {
            Rule::Match(text) if text.ends_with(r"|\s+") => {
                (text, Manner::Trims { keeps_lines: text.contains(r"\s*[\r\n]") })
            }
            Rule::Match(text) => (text, Manner::Plain),
            Rule::Ladder(text) => (text, Manner::Ladder),
            Rule::Threes { run, edges } => (run, Manner::Threes(edges)),
        };
        let expression = Regex::new(expression).expect("the table's expressions are valid");
        Self { expression, manner }
    }

    /// Appends the matches and the gaps between them, shifted by `offset`.
    fn apply(&self, text: &str, offset: usize, words: &mut Vec<Range<usize>>) {
        let mut ends = Ends { done: 0, offset, words };
        let mut from = 0;
        while from < text.len() {
            let Some(found) = self.expression.find_at(text, from) else { break };
            let (start, end) = (found.start(), found.end());
            match self.manner {
                Manner::Plain => {
                    ends.cut(start);
                    ends.cut(end);
                }
                Manner::Trims { keeps_lines } => {
                    ends.cut(start);
                    ends.cut(trimmed(text, start..end, keeps_lines));
                }
                Manner::Ladder => {
                    ends.cut(start);
                    climb(text, start..end, &mut ends);
                }
                Manner::Threes(edges) => threes(text, start..end, edges, &mut ends),
            }
            // Threes need not cut at all, and must not look at one run twice.
            from = if matches!(self.manner, Manner::Threes(_)) { end } else { ends.done };
        }
        ends.cut(text.len());
    }
}

/// Words so far, each ended by a cut.
struct Ends<'a> {
    /// Where the last word ends, in bytes of the text at hand.
    done: usize,
    offset: usize,
    words: &'a mut Vec<Range<usize>>,
}

impl Ends<'_> {
    fn cut(&mut self, at: usize) {
        if at > self.done {
            self.words.push(self.offset + self.done..self.offset + at);
            self.done = at;
        }
    }
}

/// Whether a match is white space that no alternative for line breaks has taken.
fn is_blank(run: &str, keeps_lines: bool) -> bool {
    !(keeps_lines && run.ends_with(['\r', '\n'])) && run.chars().all(char::is_whitespace)
}

/// Where a match ends: a run of white space before a word gives its last space to the word.
///
/// This is `\s+(?!\S)|\s+` without a look-ahead, which a linear-time engine does not have:
/// the run is greedy, so only its last character can be given back.
fn trimmed(text: &str, found: Range<usize>, keeps_lines: bool) -> usize {
    let run = &text[found.clone()];
    let last = run.chars().next_back().map_or(0, char::len_utf8);
    let gives_back = found.end < text.len() && run.len() > last && is_blank(run, keeps_lines);
    if gives_back { found.end - last } else { found.end }
}

/// Cuts white space by `\s{512}(?!\S)|\s{256}(?!\S)|…|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}`, up to its
/// last character where a word follows; anything else stays whole.
fn climb(text: &str, found: Range<usize>, ends: &mut Ends<'_>) {
    let run = &text[found.clone()];
    if !is_blank(run, true) {
        return ends.cut(found.end);
    }
    let at_end = found.end == text.len();
    let mut left = run.chars().count();
    let mut places = run.char_indices().map(|(place, _)| found.start + place);
    // The iterator stands at the end of what is cut; a character less is a place further.
    let mut place_after = |count: usize| places.nth(count - 1);
    place_after(1);
    loop {
        let step = [512, 256, 128, 64, 32, 16, 8, 4, 2, 1]
            .into_iter()
            .find(|step| *step < left || (at_end && *step == left));
        // One character is left before a word: the word's alternatives come first.
        let Some(step) = step else { break };
        left -= step;
        match place_after(step) {
            Some(place) => ends.cut(place),
            None => return ends.cut(found.end),
        }
    }
    if ends.done <= found.start {
        ends.cut(found.end);
    }
}

/// Cuts a run of digits into threes from its end, the first part having one to three.
fn threes(text: &str, found: Range<usize>, edges: Edges, ends: &mut Ends<'_>) {
    let follows = text[found.end..].chars().next();
    if edges == Edges::CutAtWordEnd && follows.is_some_and(char::is_numeric) {
        return;
    }
    let mut left = text[found.clone()].chars().count();
    for (place, _) in text[found.clone()].char_indices() {
        let is_edge = place == 0 && edges != Edges::Joined;
        if is_edge || left.is_multiple_of(3) {
            ends.cut(found.start + place);
        }
        left -= 1;
    }
    if edges != Edges::Joined {
        ends.cut(found.end);
    }
}

#[cfg(test)]
mod tests;
