//! Compares two runs step by step and names the first difference with its cause.

use serde::Serialize;

use crate::settings::{Setting, conditions, first_difference, settings};
use crate::{Effective, Reasons, Record, RunnerUp, Step, Stop, explain};

/// One of each: the first record's and the second's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Pair<T> {
    pub a: T,
    pub b: T,
}

/// What a comparison found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    pub outcome: Outcome,
    /// Steps that are equal in both, counted from the first.
    pub equal_steps: usize,
    /// Steps that each run has.
    pub steps: Pair<usize>,
    /// Whether neither run drew anything.
    pub greedy: bool,
    pub difference: Option<Difference>,
    /// Settings that may reach the answer and differ, whether they did reach it or not.
    pub settings: Vec<Setting>,
    /// Conditions that differ, which may not reach the answer.
    pub conditions: Vec<Setting>,
    /// The verdict in words.
    pub sentence: String,
}

/// Whether two runs are the same answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Every token, its reasons, every digest, the stop reason and the text.
    Equal,
    /// Every step that both ran; at least one run was cut short from outside.
    EqualSoFar,
    Different,
}

/// The first difference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    pub place: Place,
    pub cause: DifferenceCause,
    /// The fields of the step that differ; empty where no step does.
    pub fields: Vec<&'static str>,
    /// The first step whose reasons alone differed, where it lies before the token or the logits
    /// did.
    pub reasons_from: Option<u32>,
}

/// Where two runs part.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "at", rename_all = "snake_case")]
pub enum Place {
    /// A step that both ran.
    Step { step: u32, a: Box<Step>, b: Box<Step> },
    /// The end: one run went on, or they stopped for different reasons.
    End { after_steps: usize, a: Stop, b: Stop },
    /// The text alone: the same tokens read differently.
    Text,
}

/// Why two runs part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceCause {
    /// The weights, or what was fixed when they were loaded.
    Model,
    /// The tokens before the step.
    Sequence,
    /// Same model, same tokens before it, other logits.
    Numerics,
    /// Same logits; another policy, or another result of the same policy.
    Policy,
    /// Same logits and policy; another seed, choice or step index.
    Draw,
    /// Same steps; another budget, context or list of stops.
    Limits,
    /// Same tokens; another reading of them as text.
    Text,
}

impl Verdict {
    /// Whether nothing that both runs have differs.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.outcome != Outcome::Different
    }

    /// Whether the second run proves the first: it is equal, and it went at least as far.
    #[must_use]
    pub fn is_proof(&self) -> bool {
        self.is_equal() && self.equal_steps == self.steps.a
    }
}

/// Compares a record with another, or with its replay.
///
/// The first difference is the first step whose token or logits differ; where there is none, the
/// first whose reasons do; where there is none, the end. A run that was cut short from outside is
/// compared as far as it ran.
#[must_use]
pub fn compare(recorded: &Record, again: &Record) -> Verdict {
    let (a, b) = (recorded, again);
    let greedy = a.start.policy.greedy && b.start.policy.greedy;
    let difference = step_difference(a, b).or_else(|| end_difference(a, b));
    let is_cut_short = a.end.stop.is_cut_short() || b.end.stop.is_cut_short();
    let shorter = a.steps.len().min(b.steps.len());
    let mut verdict = Verdict {
        outcome: match &difference {
            Some(_) => Outcome::Different,
            None if is_cut_short => Outcome::EqualSoFar,
            None => Outcome::Equal,
        },
        equal_steps: match &difference {
            Some(Difference { place: Place::Step { step, .. }, .. }) => {
                a.steps.iter().take_while(|before| before.step < *step).count()
            }
            _ => shorter,
        },
        steps: Pair { a: a.steps.len(), b: b.steps.len() },
        greedy,
        difference,
        settings: settings(&a.start, &b.start),
        conditions: conditions(&a.start.conditions, &b.start.conditions),
        sentence: String::new(),
    };
    verdict.sentence = explain::sentence(&verdict, a, b);
    verdict
}

/// The first step that both ran and that differs.
fn step_difference(a: &Record, b: &Record) -> Option<Difference> {
    let differing = |(a, b): (&Step, &Step)| {
        let fields = differing_fields(a, b);
        (!fields.is_empty()).then(|| (a.clone(), b.clone(), fields))
    };
    let mut all = a.steps.iter().zip(&b.steps).filter_map(differing);
    let first = all.next()?;
    let first_step = first.0.step;
    let is_hard = |fields: &[&str]| fields.contains(&"token") || fields.contains(&"digest");
    let found = if is_hard(&first.2) {
        first
    } else {
        all.find(|(_, _, fields)| is_hard(fields)).unwrap_or(first)
    };
    let (step_a, step_b, fields) = found;
    Some(Difference {
        cause: step_cause(a, b, &step_a, &step_b),
        reasons_from: (first_step < step_a.step).then_some(first_step),
        fields,
        place: Place::Step { step: step_a.step, a: Box::new(step_a), b: Box::new(step_b) },
    })
}

/// Why a step differs, where every token that was generated before it is the same.
fn step_cause(a: &Record, b: &Record, step_a: &Step, step_b: &Step) -> DifferenceCause {
    let (start_a, start_b) = (&a.start, &b.start);
    if step_a.digest != step_b.digest {
        let (model_a, model_b) = (&start_a.model, &start_b.model);
        return if model_a.sha256 != model_b.sha256 || model_a.settings != model_b.settings {
            DifferenceCause::Model
        } else if known_difference(a, b).is_some() {
            DifferenceCause::Sequence
        } else {
            DifferenceCause::Numerics
        };
    }
    let key = |effective: &Effective, step: &Step| (effective.seed, effective.choice, step.step);
    let (asked_a, asked_b) = (&start_a.request.effective, &start_b.request.effective);
    if known_difference(a, b).is_some()
        || asked_a.prefilled_tokens.len() != asked_b.prefilled_tokens.len()
    {
        DifferenceCause::Sequence
    } else if start_a.policy.sha256 != start_b.policy.sha256 {
        DifferenceCause::Policy
    } else if step_a.token != step_b.token
        && !start_a.policy.greedy
        && key(asked_a, step_a) != key(asked_b, step_b)
    {
        DifferenceCause::Draw
    } else {
        DifferenceCause::Policy
    }
}

/// The first position at which the tokens known before the run differ.
pub(crate) fn known_difference(a: &Record, b: &Record) -> Option<usize> {
    let known = |record: &Record| {
        let effective = &record.start.request.effective;
        [effective.prompt_tokens.as_slice(), &effective.prefilled_tokens].concat()
    };
    let (a, b) = (known(a), known(b));
    (a != b).then(|| first_difference(&a, &b))
}

/// The difference of two runs whose common steps are all equal.
fn end_difference(a: &Record, b: &Record) -> Option<Difference> {
    let (count_a, count_b) = (a.steps.len(), b.steps.len());
    let (cut_a, cut_b) = (a.end.stop.is_cut_short(), b.end.stop.is_cut_short());
    let shorter_was_cut = match count_a.cmp(&count_b) {
        std::cmp::Ordering::Less => cut_a,
        std::cmp::Ordering::Equal => cut_a || cut_b,
        std::cmp::Ordering::Greater => cut_b,
    };
    if shorter_was_cut {
        return None;
    }
    let (cause, place) = if count_a != count_b || a.end.stop != b.end.stop {
        let (stop_a, stop_b) = (a.end.stop.clone(), b.end.stop.clone());
        let after_steps = count_a.min(count_b);
        (end_cause(a, b), Place::End { after_steps, a: stop_a, b: stop_b })
    } else if a.end.text != b.end.text {
        (DifferenceCause::Text, Place::Text)
    } else {
        return None;
    };
    Some(Difference { place, cause, fields: Vec::new(), reasons_from: None })
}

/// Why two runs ended differently after the same steps.
fn end_cause(a: &Record, b: &Record) -> DifferenceCause {
    let limits = |record: &Record| {
        let Effective { tokens_max, stop_tokens, eos_tokens, stop_strings, context_len, .. } =
            record.start.request.effective.clone();
        (tokens_max, stop_tokens, eos_tokens, stop_strings, context_len)
    };
    if limits(a) != limits(b) {
        DifferenceCause::Limits
    } else if known_difference(a, b).is_some() {
        DifferenceCause::Sequence
    } else {
        DifferenceCause::Policy
    }
}

/// The fields of two steps that exactness promises and that differ. Every field is read by name,
/// so that a new one must be decided about here.
fn differing_fields(a: &Step, b: &Step) -> Vec<&'static str> {
    let Step {
        step,
        token,
        piece: _, // the token says it
        cause,
        shown: _, // follows from the text
        reasons,
        pass: _,
        rows: _,
        since_arrival_ns: _,
        digest,
    } = a;
    let Reasons {
        logprob, // by its bits, as every fraction
        rank,
        probability,
        survivors,
        entropy,
        raw_best,
        removed_by,
        forced_by,
        runner_up,
    } = reasons;
    let bits = |value: &Option<f64>| value.map(f64::to_bits);
    let second = |runner_up: &Option<RunnerUp>| {
        runner_up.as_ref().map(|second| (second.token, second.probability.to_bits()))
    };
    let other = &b.reasons;
    let differs = [
        ("digest", *digest != b.digest),
        ("token", *token != b.token),
        ("step", *step != b.step),
        ("cause", *cause != b.cause),
        ("logprob", bits(logprob) != bits(&other.logprob)),
        ("rank", *rank != other.rank),
        ("probability", probability.to_bits() != other.probability.to_bits()),
        ("survivors", *survivors != other.survivors),
        ("entropy", entropy.to_bits() != other.entropy.to_bits()),
        ("raw_best", *raw_best != other.raw_best),
        ("removed_by", *removed_by != other.removed_by),
        ("forced_by", *forced_by != other.forced_by),
        ("runner_up", second(runner_up) != second(&other.runner_up)),
    ];
    differs.into_iter().filter(|(_, differs)| *differs).map(|(field, _)| field).collect()
}

#[cfg(test)]
mod tests;
