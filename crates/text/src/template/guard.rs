//! Who wrote which part of a rendered chat: messages are marked, rendered again, and unmarked.

use std::collections::BTreeSet;
use std::ops::Range;

use minijinja::value::{Value, ValueKind};

use super::python::{entries, is_list, is_map};
use super::{Chat, Names, Rendered};

/// Roles that a template may make control tokens of; any other role is a user's text.
const ROLES: &[&str] =
    &["system", "developer", "user", "assistant", "model", "tool", "function", "ipython"];
/// Marks are taken from here on: Egyptian hieroglyphs, which print as they are everywhere.
const FIRST_MARK: u32 = 0x1_3000;

/// How much of the messages is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// Every letter but those of strings that the template itself looks for.
    EveryLetter,
    /// Only what could become part of a control token: for templates that look into messages.
    ControlTokens,
    /// The same, with other letters in place of signs: for templates that count letters.
    StandIns,
}

/// Characters that occur nowhere else, and what must be known to place them.
#[derive(Debug)]
pub(super) struct Guard<'a> {
    open: char,
    close: char,
    tag: char,
    /// Signs of the control tokens, each with the letter that stands for it.
    stand_ins: Vec<(char, char)>,
    /// Literals of the template that are no part of a control token.
    literals: Vec<&'a str>,
    markers: &'a [&'a str],
}

impl<'a> Guard<'a> {
    pub(super) fn new(
        chat: &Chat,
        names: &Names,
        source: &str,
        literals: &'a [String],
        markers: &'a [&'a str],
    ) -> Self {
        let mut used = BTreeSet::new();
        let mut see = |text: &str| {
            used.extend(text.chars().map(u32::from).filter(|code| *code >= FIRST_MARK));
        };
        see(source);
        names.iter().for_each(|(_, text)| see(text));
        for_each_string(chat, &mut see);
        // Fewer characters than there are code points, or the messages alone were megabytes long.
        let mut free =
            (FIRST_MARK..=0x10_FFFF).filter(|code| !used.contains(code)).filter_map(char::from_u32);
        let mut next = || free.next().unwrap_or(char::REPLACEMENT_CHARACTER);
        let (open, close, tag) = (next(), next(), next());
        let signs: BTreeSet<char> = markers.iter().flat_map(|marker| marker.chars()).collect();
        let signs = signs.into_iter().filter(|sign| !is_word(sign.encode_utf8(&mut [0; 4])));
        let stand_ins = signs.map(|sign| (sign, next())).collect();
        // A plain word inside a control token's spelling is harmless: the rest is marked.
        let of_marker = |literal: &&str| {
            let is_part = |marker: &&str| marker.contains(literal) && !is_word(literal);
            literal.trim().is_empty() || markers.iter().any(|m| is_part(m) || literal.contains(m))
        };
        let literals = literals.iter().map(String::as_str).filter(|text| !of_marker(text));
        Self { open, close, tag, stand_ins, literals: literals.collect(), markers }
    }

    /// The character that stands behind a message to be continued.
    pub(super) fn tag(&self) -> char {
        self.tag
    }

    /// The chat with every letter that a user wrote between marks, as far as `depth` says.
    pub(super) fn mark(&self, chat: &Chat, depth: Depth) -> Chat {
        let marked = |value: &Value| self.mark_value(value, depth, None);
        Chat {
            messages: marked(&chat.messages),
            tools: chat.tools.as_ref().map(marked),
            documents: chat.documents.as_ref().map(marked),
            variables: chat.variables.iter().map(|(k, v)| (k.clone(), marked(v))).collect(),
            ..chat.clone()
        }
    }

    /// The text without marks, and the ranges they stood around.
    pub(super) fn unmark(&self, marked: &str) -> Rendered {
        let mut text = String::with_capacity(marked.len());
        let mut users: Vec<Range<usize>> = Vec::new();
        let mut opened = false;
        let mut last = 0;
        for letter in marked.chars() {
            if letter == self.open {
                opened = true;
            } else if letter == self.close {
                add(&mut users, last..text.len());
            } else {
                last = text.len();
                let sign = self.stand_ins.iter().find(|(_, stand_in)| *stand_in == letter);
                text.push(sign.map_or(letter, |(sign, _)| *sign));
                if std::mem::take(&mut opened) || sign.is_some() {
                    add(&mut users, last..text.len());
                }
            }
        }
        Rendered { text, users }
    }

    /// A control token that some message spells, in whole or at an edge.
    pub(super) fn spelled(&self, chat: &Chat) -> Option<&'a str> {
        let mut found = None;
        for_each_string(chat, &mut |text: &str| {
            let spelled = self.markers.iter().find(|marker| text.contains(**marker));
            let at_edge = || {
                let edge = |marker: &&&str| !edges(text.trim(), marker).is_empty();
                self.markers.iter().find(edge)
            };
            found = found.or_else(|| spelled.or_else(at_edge).copied());
        });
        found
    }

    fn mark_value(&self, value: &Value, depth: Depth, key: Option<&str>) -> Value {
        match value.kind() {
            ValueKind::String => {
                let text = value.as_str().unwrap_or_default();
                let is_name = match key {
                    Some("role") => ROLES.contains(&text),
                    Some("type") => is_word(text),
                    _ => false,
                };
                if is_name {
                    return value.clone();
                }
                Value::from(self.mark_text(text, depth))
            }
            ValueKind::Map => Value::from_pairs(entries(value).into_iter().map(|(key, item)| {
                let item = self.mark_value(&item, depth, key.as_str());
                let key = match key.as_str() {
                    // A key that is a plain word is looked up by the template, not printed as is.
                    Some(text) if !is_word(text) => Value::from(self.mark_text(text, depth)),
                    _ => key,
                };
                (key, item)
            })),
            _ if is_list(value) => {
                let items = value.try_iter().into_iter().flatten();
                items.map(|item| self.mark_value(&item, depth, None)).collect()
            }
            _ => value.clone(),
        }
    }

    fn mark_text(&self, text: &str, depth: Depth) -> String {
        let ranges = match depth {
            Depth::EveryLetter => self.literal_ranges(text),
            Depth::ControlTokens | Depth::StandIns => self.control_letters(text),
        };
        let marks_inside = depth != Depth::EveryLetter;
        let mut ranges = ranges.into_iter().peekable();
        let mut marked = String::with_capacity(text.len() * 2);
        for (at, letter) in text.char_indices() {
            while ranges.next_if(|range| range.end <= at).is_some() {}
            let inside = ranges.peek().is_some_and(|range| range.contains(&at));
            if letter.is_whitespace() || inside != marks_inside {
                marked.push(letter);
            } else if depth == Depth::StandIns {
                let found = self.stand_ins.iter().find(|(sign, _)| *sign == letter);
                marked.push(found.map_or(letter, |(_, stand_in)| *stand_in));
            } else {
                marked.extend([self.open, letter, self.close]);
            }
        }
        marked
    }

    /// Where the template's own literals stand in a text, ascending.
    fn literal_ranges(&self, text: &str) -> Vec<Range<usize>> {
        let found = self.literals.iter().flat_map(|literal| {
            text.match_indices(literal).map(|(at, found)| at..at + found.len())
        });
        merged(found.collect())
    }

    /// Every control token spelled, and the parts of one at either edge.
    fn control_letters(&self, text: &str) -> Vec<Range<usize>> {
        let trimmed = text.trim();
        let shift = text.len() - text.trim_start().len();
        let mut letters = Vec::new();
        for marker in self.markers {
            letters.extend(text.match_indices(marker).map(|(at, found)| at..at + found.len()));
            let edges = edges(trimmed, marker).into_iter();
            letters.extend(edges.map(|edge| edge.start + shift..edge.end + shift));
        }
        merged(letters)
    }
}

/// The parts of `marker` that begin or end `text`, or that are the whole of it; not plain words,
/// which alone make no control token of a template's signs.
fn edges(text: &str, marker: &str) -> Vec<Range<usize>> {
    let mut edges = Vec::new();
    let counts = |part: &str| !is_word(part) || is_word(marker);
    if !text.is_empty() && marker.contains(text) && counts(text) {
        edges.push(0..text.len());
    }
    let cuts = marker.char_indices().skip(1).map(|(at, _)| marker.split_at(at));
    for (head, tail) in cuts {
        if text.ends_with(head) && counts(head) {
            edges.push(text.len() - head.len()..text.len());
        }
        if text.starts_with(tail) && counts(tail) {
            edges.push(0..tail.len());
        }
    }
    edges
}

/// Ranges in order, those that touch made one.
fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut merged = Vec::with_capacity(ranges.len());
    for range in ranges {
        add(&mut merged, range);
    }
    merged
}

/// Appends a range, or widens the last where they touch.
fn add(ranges: &mut Vec<Range<usize>>, range: Range<usize>) {
    match ranges.last_mut() {
        Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
        _ if range.is_empty() => {}
        _ => ranges.push(range),
    }
}

fn is_word(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-')
}

fn for_each_string(chat: &Chat, see: &mut dyn FnMut(&str)) {
    let beside = [chat.tools.as_ref(), chat.documents.as_ref()].into_iter().flatten();
    let variables = chat.variables.iter().map(|(_, value)| value);
    for value in [&chat.messages].into_iter().chain(beside).chain(variables) {
        visit(value, see);
    }
}

fn visit(value: &Value, see: &mut dyn FnMut(&str)) {
    if let Some(text) = value.as_str() {
        see(text);
    } else if is_map(value) {
        for (key, item) in entries(value) {
            visit(&key, see);
            visit(&item, see);
        }
    } else if is_list(value) {
        for item in value.try_iter().into_iter().flatten() {
            visit(&item, see);
        }
    }
}

#[cfg(test)]
mod tests;
