//! The comparison of two records as a page of text.

use std::fmt::Write as _;

use crate::{Pair, Place, Record, Setting, Step, Verdict};

/// The verdict for a reader; `names` are what the two records are called on the page.
#[must_use]
pub fn report(verdict: &Verdict, a: &Record, b: &Record, names: Pair<&str>) -> String {
    let mut page = String::new();
    let width = names.a.chars().count().max(names.b.chars().count());
    for (name, record) in [(names.a, a), (names.b, b)] {
        line(&mut page, format_args!("{name:width$}  {}", headline(record)));
    }
    table(&mut page, "settings that differ", &verdict.settings, names);
    table(
        &mut page,
        "conditions that differ (none may reach the answer)",
        &verdict.conditions,
        names,
    );
    if let Some(difference) = &verdict.difference {
        line(&mut page, format_args!(""));
        match &difference.place {
            Place::Step { step, a, b } => {
                let fields = difference.fields.join(", ");
                line(&mut page, format_args!("first step that differs: {step} (in {fields})"));
                for (name, step) in [(names.a, a), (names.b, b)] {
                    line(&mut page, format_args!("  {name:width$}  {}", step_line(step)));
                }
                if let Some(from) = difference.reasons_from {
                    line(&mut page, format_args!("  the reasons differ from step {from} on"));
                }
            }
            Place::End { after_steps, a: stop_a, b: stop_b } => {
                line(&mut page, format_args!("equal for {after_steps} steps, then:"));
                for (name, record, stop) in [(names.a, a, stop_a), (names.b, b, stop_b)] {
                    let steps = record.steps.len();
                    let stop = stop.describe();
                    line(&mut page, format_args!("  {name:width$}  {steps} steps, stop {stop}"));
                }
            }
            Place::Text => {
                for (name, record) in [(names.a, a), (names.b, b)] {
                    line(&mut page, format_args!("  {name:width$}  {:?}", record.end.text));
                }
            }
        }
    }
    line(&mut page, format_args!("\n{}", verdict.sentence));
    page
}

fn headline(record: &Record) -> String {
    let steps = record.steps.len();
    let model = &record.start.model.name;
    let id = record.id().to_string();
    format!("record {}, {model}, {steps} steps, stop {}", &id[..12], record.end.stop.describe())
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

fn table(page: &mut String, title: &str, settings: &[Setting], names: Pair<&str>) {
    if settings.is_empty() {
        return;
    }
    line(page, format_args!("\n{title}"));
    let width = settings.iter().map(|setting| setting.name.chars().count()).max().unwrap_or(0);
    for Setting { name, a, b } in settings {
        line(page, format_args!("  {name:width$}  {} {a}  {} {b}", names.a, names.b));
    }
}

fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(page, "{text}").expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests;
