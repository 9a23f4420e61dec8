//! The comparison of two records as a page of text.

use std::fmt::Write as _;

use crate::explain::counted;
use crate::{Difference, Pair, Place, Record, Setting, Step, Verdict};

/// The verdict for a reader; `names` are what the two records are called on the page.
#[must_use]
pub fn report(verdict: &Verdict, a: &Record, b: &Record, names: Pair<&str>) -> String {
    let mut page = String::new();
    add_pair(&mut page, "", names, headline(a), headline(b));
    add_table(&mut page, "settings that differ", &verdict.settings, names);
    let conditions = "conditions that differ (none may reach the answer)";
    add_table(&mut page, conditions, &verdict.conditions, names);
    if let Some(difference) = &verdict.difference {
        add_difference(&mut page, difference, a, b, names);
    }
    add_line(&mut page, format_args!("\n{}", verdict.sentence));
    printable(&page)
}

fn add_difference(
    page: &mut String,
    difference: &Difference,
    a: &Record,
    b: &Record,
    names: Pair<&str>,
) {
    let title;
    let (of_a, of_b) = match &difference.place {
        Place::Step { step, a, b } => {
            title =
                format!("first step that differs: {step} (in {})", difference.fields.join(", "));
            (step_line(a), step_line(b))
        }
        Place::End { after_steps, .. } => {
            title = format!("equal for {}, then", counted(*after_steps, "step"));
            (end_line(a), end_line(b))
        }
        Place::Text => {
            title = "the same tokens as text".to_owned();
            (format!("{:?}", a.end.text), format!("{:?}", b.end.text))
        }
    };
    add_line(page, format_args!("\n{title}"));
    add_pair(page, "  ", names, of_a, of_b);
    if let Some(from) = difference.reasons_from {
        add_line(page, format_args!("  the reasons differ from step {from} on"));
    }
}

/// The page without control characters: a record's text may not drive the reader's terminal.
pub(crate) fn printable(page: &str) -> String {
    let mut printable = String::with_capacity(page.len());
    for character in page.chars() {
        match character {
            '\n' => printable.push('\n'),
            character if character.is_control() => printable.extend(character.escape_default()),
            character => printable.push(character),
        }
    }
    printable
}

fn headline(record: &Record) -> String {
    let id = record.id().to_string();
    format!("record {}, {}, {}", &id[..12], record.start.model.name, end_line(record))
}

fn end_line(record: &Record) -> String {
    format!("{}, stop {}", counted(record.steps.len(), "step"), record.end.stop.describe())
}

fn step_line(step: &Step) -> String {
    let reasons = &step.reasons;
    let logprob = reasons.logprob.map_or("-inf".to_owned(), |logprob| format!("{logprob:.6}"));
    format!(
        "token {} {}  logprob {logprob}  rank {}  probability {:.6}  survivors {}  logits {}",
        step.token,
        step.piece.quoted(),
        reasons.rank,
        reasons.probability,
        reasons.survivors,
        step.digest,
    )
}

fn add_table(page: &mut String, title: &str, settings: &[Setting], names: Pair<&str>) {
    if settings.is_empty() {
        return;
    }
    add_line(page, format_args!("\n{title}"));
    let width = settings.iter().map(|setting| setting.name.chars().count()).max().unwrap_or(0);
    for Setting { name, a, b } in settings {
        add_line(page, format_args!("  {name:width$}  {} {a}  {} {b}", names.a, names.b));
    }
}

/// One line for each record, the names in a column.
fn add_pair(page: &mut String, indent: &str, names: Pair<&str>, of_a: String, of_b: String) {
    let width = names.a.chars().count().max(names.b.chars().count());
    add_line(page, format_args!("{indent}{:width$}  {of_a}", names.a));
    add_line(page, format_args!("{indent}{:width$}  {of_b}", names.b));
}

pub(crate) fn add_line(page: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(page, "{text}").expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests;
