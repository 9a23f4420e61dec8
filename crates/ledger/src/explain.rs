//! The verdict of a comparison in words.

use crate::compare::known_difference;
use crate::{Difference, DifferenceCause, Outcome, Place, Record, Setting, Verdict};

/// A count and its noun: `1 step`, `2 steps`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// One or two sentences: what was found, and under greedy decoding what that means.
pub(crate) fn sentence(verdict: &Verdict, a: &Record, b: &Record) -> String {
    let Some(difference) = &verdict.difference else {
        return match verdict.outcome {
            Outcome::EqualSoFar => format!(
                "equal as far as both ran: {}, every token, reason and logits digest; \
                 the first ended by {}, the second by {}",
                counted(verdict.equal_steps, "step"),
                a.end.stop.describe(),
                b.end.stop.describe(),
            ),
            Outcome::Equal | Outcome::Different => format!(
                "equal: {}, every token, reason and logits digest; stop {}",
                counted(verdict.equal_steps, "step"),
                a.end.stop.describe(),
            ),
        };
    };
    let cause = cause_sentence(verdict, difference, a, b);
    match (&difference.place, verdict.greedy) {
        (Place::Step { .. }, true) => format!("{cause}. {}", greedy_sentence(difference, a, b)),
        _ => cause,
    }
}

/// What a difference means where nothing is drawn.
fn greedy_sentence(difference: &Difference, a: &Record, b: &Record) -> &'static str {
    if difference.fields.contains(&"digest") {
        "Both runs are greedy and draw nothing: a difference means a different sequence before \
         it, a different model or different numerics"
    } else if difference.cause == DifferenceCause::Policy
        && a.start.policy.sha256 == b.start.policy.sha256
    {
        "Both runs are greedy and the logits are equal up to here, so it cannot be a draw, a \
         different sequence or a different model"
    } else {
        "Both runs are greedy and the logits are equal up to here, so it cannot be a draw"
    }
}

fn cause_sentence(verdict: &Verdict, difference: &Difference, a: &Record, b: &Record) -> String {
    let named = |names: &[&str]| named_settings(&verdict.settings, names);
    match difference.cause {
        DifferenceCause::Model => format!(
            "model differed: other weights or load settings give other logits{}",
            named(&["model", "weights", "quantisation"]),
        ),
        DifferenceCause::Sequence => match known_difference(a, b) {
            Some(position) => format!(
                "sequence differed: the tokens before this step are not the same, from position \
                 {position} on, and a step depends on every token before it"
            ),
            None => "sequence differed: the same tokens came before this step, but not the same \
                     number of them as response prefill"
                .to_owned(),
        },
        DifferenceCause::Numerics => {
            let settings = named(&["KV type", "numerics version"]);
            let unexplained = match settings.is_empty() {
                true => {
                    ", and no setting explains it: the engine broke its promise, or a record \
                         was changed after it was written"
                }
                false => "",
            };
            format!(
                "engine numerics differed: same model and same tokens before this step, but \
                 other logits{settings}{unexplained}"
            )
        }
        DifferenceCause::Policy => policy_sentence(verdict, difference, a, b),
        DifferenceCause::Draw => format!(
            "draw differed: same logits and same policy, but another key of the draw{}",
            named(&["seed", "choice"]),
        ),
        DifferenceCause::Limits => format!(
            "limits differed: the steps that both ran are equal, but they end by other rules{}",
            named(&["tokens_max", "stop tokens", "eos tokens", "stop strings", "context_len"]),
        ),
        DifferenceCause::Text => format!(
            "text differed: the same tokens were read as another text{}",
            named(&["tokenizer"]),
        ),
    }
}

fn policy_sentence(verdict: &Verdict, difference: &Difference, a: &Record, b: &Record) -> String {
    let same = match difference.place {
        Place::Step { .. } => "same logits",
        Place::End { .. } | Place::Text => "equal steps",
    };
    if a.start.policy.sha256 != b.start.policy.sha256 {
        let changed: Vec<&str> = verdict.settings.iter().map(|setting| &*setting.name).collect();
        let changed: Vec<&str> =
            changed.into_iter().filter(|name| name.starts_with("policy.")).collect();
        return format!("policy differed: {same}, another policy{}", {
            named_settings(&verdict.settings, &changed)
        });
    }
    format!(
        "policy differed: {same} and the same policy file, but another result of it ({}): another \
         engine version evaluated it, or a record was changed after it was written",
        match difference.fields.as_slice() {
            [] => "stop".to_owned(),
            fields => fields.join(", "),
        },
    )
}

/// The named settings that differ, in parentheses; nothing where none of them does. At most
/// four, since a whole policy may have changed.
fn named_settings(settings: &[Setting], names: &[&str]) -> String {
    const SETTINGS_MAX: usize = 4;
    let found: Vec<String> = settings
        .iter()
        .filter(|setting| names.contains(&&*setting.name))
        .map(|Setting { name, a, b }| format!("{name} {a} and {b}"))
        .collect();
    let rest = found.len().saturating_sub(SETTINGS_MAX);
    match (found.is_empty(), rest) {
        (true, _) => String::new(),
        (false, 0) => format!(" ({})", found.join(", ")),
        (false, rest) => format!(" ({}, {rest} more)", found[..SETTINGS_MAX].join(", ")),
    }
}
